//! The grant: one TILE.PHASE.TEX value of an SM whose holders may access caches.
//!
//! Every warp has a value: TILE is its CTA, PHASE and TEX are stepped by modifiers of the accesses that it issues. While
//! a warp holds the granted value, only warps with that value issue accesses; when none does, the next access that
//! issues makes its warp's value the grant. Everything else issues as if there were no grant.
//!
//! So that no program waits for ever, a warp that has ended, sleeps or waits at a barrier does not hold the grant, and one
//! under which nothing was accessed for long can be taken over. Pods come one after the other in a cycle: the lower takes
//! a free grant first, and the higher finds it taken.

use super::bits::{Bits, remap, remap_set};
use super::spec::{self, Accesses};
use serde::{Deserialize, Serialize};

/// What an access does to its warp's counters when it has issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Step {
    #[default]
    None,
    /// Steps TEX.
    Tex,
    /// Steps PHASE and clears TEX.
    Phase,
}

/// A warp's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TilePhaseTex {
    pub tile: u16,
    pub phase: u16,
    pub tex: u16,
}

impl std::fmt::Display for TilePhaseTex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.tile, self.phase, self.tex)
    }
}

/// Warps of a pod that agree with the grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Granted {
    /// In the whole value.
    pub value: u64,
    /// In TILE and PHASE.
    pub tile_phase: u64,
}

/// The warps of one pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pod {
    #[serde(with = "simt::arrays")]
    values: [TilePhaseTex; 64],
    live: u64,
    /// Sleep, or wait at a barrier.
    resting: u64,
    /// Ask for an access.
    asking: u64,
    granted: Granted,
}

/// The grant of an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grants {
    spec: spec::Grants,
    pods: Vec<Pod>,
    grant: Option<TilePhaseTex>,
    /// When something was accessed last under it.
    used: u64,
}

impl Grants {
    pub fn new(spec: &spec::Grants, pods: usize) -> Grants {
        let pod = Pod {
            values: [TilePhaseTex::default(); 64],
            live: 0,
            resting: 0,
            asking: 0,
            granted: Granted::default(),
        };
        Grants { spec: spec.clone(), pods: vec![pod; pods], grant: None, used: 0 }
    }

    /// Grants are given at all.
    pub fn is_on(&self) -> bool {
        self.spec.accesses != Accesses::None
    }

    pub fn grant(&self) -> Option<TilePhaseTex> {
        self.grant
    }

    pub fn value(&self, pod: usize, bit: u32) -> TilePhaseTex {
        self.pods[pod].values[bit as usize % 64]
    }

    /// The value that is compared.
    fn key(&self, v: TilePhaseTex) -> u64 {
        let fields = (u64::from(v.tile) << self.spec.phase_bits | u64::from(v.phase)) << self.spec.tex_bits
            | u64::from(v.tex);
        match self.spec.value {
            spec::Value::Fields => fields,
            spec::Value::Hash => {
                let bits = self.spec.tile_bits + self.spec.phase_bits + self.spec.tex_bits;
                // An odd constant spreads the fields over the word; its upper half is taken.
                (fields + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)
            }
        }
    }

    fn agrees(&self, v: TilePhaseTex) -> (bool, bool) {
        self.grant
            .map_or((false, false), |g| (self.key(g) == self.key(v), (g.tile, g.phase) == (v.tile, v.phase)))
    }

    fn refresh(&mut self, pod: usize, bit: u32) {
        let (value, tile_phase) = self.agrees(self.pods[pod].values[bit as usize % 64]);
        let g = &mut self.pods[pod].granted;
        g.value = g.value & !(1 << bit) | u64::from(value) << bit;
        g.tile_phase = g.tile_phase & !(1 << bit) | u64::from(tile_phase) << bit;
    }

    // --- what happens to warps ----------------------------------------------------------------------------------

    /// A warp of the SM's CTA number `cta` starts.
    pub fn add(&mut self, pod: usize, bit: u32, cta: u64) {
        let tile = (cta & ((1 << self.spec.tile_bits) - 1)) as u16;
        let p = &mut self.pods[pod];
        p.values[bit as usize % 64] = TilePhaseTex { tile, phase: 0, tex: 0 };
        p.live |= 1 << bit;
        p.resting &= !(1 << bit);
        p.asking &= !(1 << bit);
        self.refresh(pod, bit);
    }

    pub fn remove(&mut self, pod: usize, bit: u32) {
        let p = &mut self.pods[pod];
        for set in
            [&mut p.live, &mut p.resting, &mut p.asking, &mut p.granted.value, &mut p.granted.tile_phase]
        {
            *set &= !(1 << bit);
        }
    }

    /// The warp sleeps or waits at a barrier.
    pub fn rest(&mut self, pod: usize, bit: u32) {
        self.pods[pod].resting |= 1 << bit;
    }

    /// It goes on.
    pub fn wake(&mut self, pod: usize, bit: u32) {
        self.pods[pod].resting &= !(1 << bit);
    }

    /// The warp has an instruction to issue, an access or not.
    #[inline]
    pub fn ask(&mut self, pod: usize, bit: u32, is_access: bool) {
        let p = &mut self.pods[pod];
        p.resting &= !(1 << bit);
        p.asking = p.asking & !(1 << bit) | u64::from(is_access) << bit;
    }

    /// An access issued: it takes the grant where that is free, and steps the warp's counters.
    pub fn issued(&mut self, pod: usize, bit: u32, step: Step, now: u64) {
        let value = self.pods[pod].values[bit as usize % 64];
        if self.pods[pod].granted.value >> bit & 1 == 0 {
            self.grant = Some(value);
            for n in 0..self.pods.len() {
                for b in Bits(self.pods[n].live) {
                    self.refresh(n, b);
                }
            }
        }
        self.used = now;
        self.pods[pod].asking &= !(1 << bit);
        let v = &mut self.pods[pod].values[bit as usize % 64];
        let step_of = |field: u16, bits: u32| ((u32::from(field) + 1) & ((1 << bits) - 1)) as u16;
        match step {
            Step::None => return,
            Step::Tex => v.tex = step_of(v.tex, self.spec.tex_bits),
            Step::Phase => (v.phase, v.tex) = (step_of(v.phase, self.spec.phase_bits), 0),
        }
        self.refresh(pod, bit);
    }

    // --- who may go ---------------------------------------------------------------------------------------------

    /// Nobody holds the grant, or it went unused for long.
    pub fn is_free(&self, now: u64) -> bool {
        self.expires() <= now || self.pods.iter().all(|p| p.granted.value & p.live & !p.resting == 0)
    }

    /// When an unused grant can be taken over.
    fn expires(&self) -> u64 {
        if self.grant.is_none() { 0 } else { self.used + u64::from(self.spec.timeout) }
    }

    /// Warps of a pod that may issue what they ask for.
    #[inline]
    pub fn allowed(&self, pod: usize, now: u64) -> u64 {
        let p = &self.pods[pod];
        if p.asking == 0 || self.is_free(now) { u64::MAX } else { !p.asking | p.granted.value }
    }

    pub fn granted(&self, pod: usize) -> Granted {
        self.pods[pod].granted
    }

    /// When a warp of the pod that is held may go although nothing else happens.
    pub fn next(&self, pod: usize, now: u64) -> u64 {
        if self.allowed(pod, now) == u64::MAX { u64::MAX } else { self.expires() }
    }

    /// Some warp of the pod asks for an access.
    pub fn is_asked(&self, pod: usize) -> bool {
        self.pods[pod].asking != 0
    }

    pub fn remap(&mut self, pod: usize, old: &[u8]) {
        let p = &mut self.pods[pod];
        remap(&mut p.values, old);
        for set in
            [&mut p.live, &mut p.resting, &mut p.asking, &mut p.granted.value, &mut p.granted.tile_phase]
        {
            remap_set(set, old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn grants(change: impl Fn(&mut spec::Grants)) -> Grants {
        let mut spec = Config::preset("tiny").expect("the preset").sm.scheduler.grants;
        spec.accesses = Accesses::Loads;
        change(&mut spec);
        Grants::new(&spec, 2)
    }

    /// Two CTAs of two warps: each has a warp in each pod, at bits 0 and 1.
    fn two_tiles() -> Grants {
        let mut g = grants(|_| ());
        for cta in 0..2 {
            for pod in 0..2 {
                g.add(pod, cta as u32, cta);
                g.ask(pod, cta as u32, true);
            }
        }
        g
    }

    #[test]
    fn the_grant_stays_until_the_last_warp_of_the_tile_has_gone_on() {
        let mut g = two_tiles();
        assert_eq!((g.allowed(0, 5), g.allowed(1, 5)), (u64::MAX, u64::MAX));
        // Both pods could take it in cycle 5; pod 0 comes first, and pod 1 finds it taken: only tile 0 may go there.
        g.issued(0, 0, Step::Tex, 5);
        assert_eq!(g.grant().map(|v| v.to_string()).as_deref(), Some("0.0.0"));
        assert_eq!(g.allowed(1, 5), !0b10);
        assert_eq!(g.allowed(0, 5), !0b10);
        // The first warp went on to its next access, 0.0.1, and is held too.
        g.ask(0, 0, true);
        assert_eq!(g.allowed(0, 6), !0b11);
        // Mathematics is never held.
        g.ask(0, 1, false);
        assert_eq!(g.allowed(0, 6), !0b01);
        g.ask(0, 1, true);
        // The last holder goes on: whoever comes next takes the grant.
        g.issued(1, 0, Step::Tex, 6);
        assert_eq!((g.allowed(0, 6), g.allowed(1, 7)), (u64::MAX, u64::MAX));
        g.issued(1, 1, Step::Phase, 7);
        assert_eq!(g.grant(), Some(TilePhaseTex { tile: 1, phase: 0, tex: 0 }));
        assert_eq!(g.value(1, 1), TilePhaseTex { tile: 1, phase: 1, tex: 0 });
        assert_eq!(g.allowed(0, 7), !0b01);
    }

    #[test]
    fn who_ends_sleeps_or_waits_does_not_hold_it() {
        for leave in [|g: &mut Grants| g.remove(1, 0), |g: &mut Grants| g.rest(1, 0)] {
            let mut g = two_tiles();
            g.issued(0, 0, Step::Tex, 5);
            assert!(!g.is_free(6));
            leave(&mut g);
            assert!(g.is_free(6));
        }
        let mut g = two_tiles();
        g.issued(0, 0, Step::Tex, 5);
        g.rest(1, 0);
        g.ask(1, 0, false);
        assert!(!g.is_free(6), "it woke, and holds it again");
    }

    #[test]
    fn an_unused_grant_is_taken_over() {
        let mut g = grants(|s| s.timeout = 100);
        g.add(0, 0, 0);
        g.add(0, 1, 1);
        g.ask(0, 1, true);
        g.issued(0, 1, Step::None, 10);
        g.add(0, 2, 2);
        g.ask(0, 2, true);
        // Warp 1 spins without a further access and keeps its value.
        assert_eq!((g.allowed(0, 20), g.next(0, 20)), (!0b100, 110));
        assert_eq!((g.allowed(0, 110), g.next(0, 110)), (u64::MAX, u64::MAX));
        g.issued(0, 2, Step::None, 110);
        assert_eq!(g.grant().map(|v| v.tile), Some(2));
    }

    #[test]
    fn fields_wrap_alone() {
        let mut g = grants(|_| ());
        // 6, 5 and 3 bits.
        g.add(0, 7, 64 + 3);
        assert_eq!(g.value(0, 7).to_string(), "3.0.0");
        for _ in 0..8 {
            g.issued(0, 7, Step::Tex, 1);
        }
        assert_eq!(g.value(0, 7).to_string(), "3.0.0", "TEX comes around without a step of PHASE");
        g.issued(0, 7, Step::Tex, 1);
        for n in 1..32 {
            g.issued(0, 7, Step::Phase, 1);
            assert_eq!(g.value(0, 7).to_string(), format!("3.{n}.0"));
        }
        g.issued(0, 7, Step::Phase, 1);
        assert_eq!(g.value(0, 7).to_string(), "3.0.0", "PHASE comes around without a step of TILE");
    }

    #[test]
    fn hashes_of_equal_values_are_equal() {
        let mut g = grants(|s| s.value = spec::Value::Hash);
        g.add(0, 0, 5);
        g.add(1, 0, 5);
        g.add(1, 1, 6);
        for (pod, bit) in [(0, 0), (1, 0), (1, 1)] {
            g.ask(pod, bit, true);
        }
        g.issued(0, 0, Step::Phase, 1);
        assert_eq!(g.granted(1), Granted { value: 1, tile_phase: 1 });
        assert_eq!(g.allowed(1, 2), !0b10);
    }
}
