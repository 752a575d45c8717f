//! Registers that a kernel may read before it writes them: the ones that must be zeros when a warp starts.

use isa::{Inst, Op, PredUse};

/// A set of registers.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Set([u64; 4]);

impl Set {
    fn put(&mut self, first: u8, count: u32, on: bool) {
        for r in u32::from(first)..(u32::from(first) + count).min(256) {
            let bit = 1 << (r % 64);
            let word = &mut self.0[(r / 64) as usize];
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    fn join(&mut self, other: Set) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a |= b;
        }
    }
}

/// Whether the instruction gives its destination a value in every lane that comes by.
fn defines(i: &Inst) -> bool {
    i.guard == PredUse::TRUE && !matches!(i.op, Op::Bar | Op::Syscall)
}

/// Registers live at the start of a function's code; `None` where calls and computed jumps hide the flow.
pub fn registers(code: &[Inst], start: u32, end: u32) -> Option<Vec<u8>> {
    let body = &code[start as usize..end as usize];
    if body.iter().any(|i| matches!(i.op, Op::Call | Op::Callx | Op::Brx | Op::Ret)) {
        return None;
    }
    let inside = |pc: u32| (start..end).contains(&pc);
    if body.iter().any(|i| i.target().is_some_and(|t| !inside(t))) {
        return None;
    }
    // Live sets in front of each instruction, found backward until nothing changes.
    let mut live = vec![Set::default(); body.len() + 1];
    loop {
        let mut changed = false;
        for n in (0..body.len()).rev() {
            let i = &body[n];
            let mut set = Set::default();
            let always = i.guard == PredUse::TRUE;
            let ends = always && (matches!(i.op, Op::Exit | Op::Bra));
            if !ends {
                set.join(live[n + 1]);
            }
            if let (Op::Bra, Some(t)) = (i.op, i.target()) {
                set.join(live[(t - start) as usize]);
            }
            if let (true, Some((r, count))) = (defines(i), i.writes()) {
                set.put(r.0, count, false);
            }
            for (r, count) in i.reads() {
                set.put(r.0, count, true);
            }
            if set != live[n] {
                live[n] = set;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let first = live[0];
    Some((0..=254u8).filter(|&r| first.0[usize::from(r / 64)] >> (r % 64) & 1 != 0).collect())
}

#[cfg(test)]
mod tests {
    fn live(lines: &[&str]) -> Option<Vec<u8>> {
        let code: Vec<_> = lines.iter().map(|l| isa::text::parse(l).expect("an instruction")).collect();
        super::registers(&code, 0, code.len() as u32)
    }

    #[test]
    fn reads_before_writes_are_found_along_all_paths() {
        assert_eq!(live(&["MOV R1, R2", "MOV R3, R1", "EXIT"]), Some(vec![2]));
        // A guarded write leaves the old value in some lanes.
        assert_eq!(live(&["@P0 MOV R1, 0x5", "MOV R2, R1", "EXIT"]), Some(vec![1]));
        // Around the loop R4 is read before it is written.
        assert_eq!(
            live(&["IADD3 R5, PT, R4, 0x1, RZ, PT", "MOV R4, R5", "@P0 BRA 0x0", "EXIT"]),
            Some(vec![4])
        );
        assert_eq!(live(&["@P0 BRA 0x2", "MOV R1, 0x1", "MOV R2, R1", "EXIT"]), Some(vec![1]));
        assert_eq!(live(&["CALL R2, 0x1", "EXIT"]), None);
    }
}
