//! Which entries a warp's scoreboard has.

use super::{Code, Timing};

impl Code {
    /// Gives entries of a warp's scoreboard only to places that somebody looks up: thousands of warps take turns in the host's
    /// caches, and most of what their instructions write is never looked up.
    pub(super) fn pack(&mut self, checks: &mut [u16]) {
        let mut is_used = vec![false; self.warp_places];
        checks.iter().for_each(|&p| is_used[usize::from(p)] = true);
        // What one answer brings stays together.
        let results = |t: &Timing| t.first as usize..t.first as usize + usize::from(t.registers);
        let brought: Vec<&[u16]> =
            self.timings.iter().filter(|t| !t.is_static).map(|t| &self.places[results(t)]).collect();
        loop {
            let is_split = |r: &&&[u16]| {
                let used = r.iter().filter(|&&p| is_used[usize::from(p)]).count();
                used != 0 && used != r.len()
            };
            let Some(&split) = brought.iter().find(is_split) else { break };
            split.iter().for_each(|&p| is_used[usize::from(p)] = true);
        }
        let mut used = 0;
        let numbers: Vec<Option<u16>> = is_used
            .into_iter()
            .map(|is| {
                used += u16::from(is);
                is.then(|| used - 1)
            })
            .collect();
        // Others are all written to the same entries, behind these.
        let mut entries = self.entries.to_vec();
        let mut most = 0;
        for t in self.timings.iter() {
            let first = t.first as usize;
            most = most.max(usize::from(t.writes));
            for (k, p) in entries[first..first + usize::from(t.writes)].iter_mut().enumerate() {
                *p = numbers[usize::from(*p)].unwrap_or(used + k as u16);
            }
        }
        for p in checks {
            *p = numbers[usize::from(*p)].unwrap_or(used);
        }
        self.entries = entries.into();
        self.warp_places = usize::from(used) + most;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Room, Spec, UNIFORMS};
    use super::*;
    use crate::Config;
    use isa::image::Image;

    fn image() -> Image {
        let code = PROGRAM.iter().map(|line| isa::text::parse(line).expect("assembles")).collect();
        Image { code, ..Image::default() }
    }

    fn machine(name: &str) -> Spec {
        Config::preset(name).expect("is there").sm
    }

    const PROGRAM: [&str; 7] = [
        "LDG.128 R4, [R2]",
        "LDG.64 R14, [R8]",
        "LDG R20, [R8]",
        "FADD R12, R5, R13",
        "FADD R13, R12, R12",
        "IADD3 R2, PT, R2, R3, RZ, PT",
        "EXIT",
    ];

    #[test]
    fn only_what_is_looked_up_has_an_entry() {
        let packed = Code::new(&image(), 64, &machine("h200"));
        let of = |pc: u32| packed.writes(packed.timing_of(pc));
        let checks = |pc: u32| packed.checks(packed.timing_of(pc));
        // R4 to R7, since an answer brings all of what a load writes, and the readers of R2: nobody looks the others up.
        assert_eq!(packed.warp_places(), 5 + 4);
        assert_eq!((of(0), of(1)), (&[0, 1, 2, 3][..], &[5, 6][..]));
        assert_eq!((of(2), of(3)), (&[5][..], &[5][..]));
        assert_eq!((checks(3), checks(5)), (&[1][..], &[4][..]));
        // Of two that issue at once, one looks at more.
        let all = Code::new(&image(), 64, &machine("classic"));
        assert_eq!(all.warp_places(), 2 * all.scoreboard);
    }

    #[test]
    fn code_that_more_is_put_behind_keeps_all_entries() {
        let room = Room { registers: 64, uniforms: 4 };
        let grows = Code::with_room(&image(), room, &[], &machine("h200"));
        assert_eq!(grows.warp_places(), 2 * (usize::from(UNIFORMS) + 4 + 64));
    }
}
