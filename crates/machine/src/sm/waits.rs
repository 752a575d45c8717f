//! What an instruction waits for, as far as the code alone tells.
//!
//! Arithmetic has fixed latencies. So the cycles from the issue of one instruction to that of the next follow from the
//! code, and are found once a program, the way an assembler writes them into the control words of real instructions:
//! a warp that was held up in between still waits that long. Only results whose time is not known before they issue
//! (memory, special functions) have a place on the scoreboard of a warp that is looked at, and only by the first
//! instruction that needs them.

use super::code::{Code, Kind, Producer, Timing};
use super::spec::Spec;
use isa::image::Image;
use isa::{Inst, Op, Pred};

/// The place is checked for the memory operations that read it, not for its value.
pub(super) const FOR_READERS: u16 = 1 << 15;

/// Most cycles between two issues that the code can ask for.
const LONGEST: u16 = u8::MAX as u16;

/// A result that is not there yet: its place, the cycles from the last issue, and whether a multiply-add pipe makes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pending {
    place: u16,
    cycles: u16,
    is_fma: bool,
}

/// Results that are not there yet. There are only ever a few.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Results(Vec<Pending>);

impl Results {
    fn pass(&mut self, cycles: u16) {
        self.0.retain_mut(|p| {
            p.cycles = p.cycles.saturating_sub(cycles);
            p.cycles > 0
        });
    }

    /// Adds a result; a later one of the two at a place counts. Whether anything changed.
    fn add(&mut self, new: Pending) -> bool {
        match self.0.iter_mut().find(|p| p.place == new.place && p.is_fma == new.is_fma) {
            Some(p) if p.cycles >= new.cycles => false,
            Some(p) => {
                p.cycles = new.cycles;
                true
            }
            None => {
                self.0.push(new);
                true
            }
        }
    }

    fn merge(&mut self, other: &Results) -> bool {
        let mut changed = false;
        for &p in &other.0 {
            changed |= self.add(p);
        }
        changed
    }

    /// Cycles until a place can be read; those of `crossing` more if `crosses` says so of the kind of pipe that writes it.
    fn until(&self, place: u16, crossing: u16, crosses: impl Fn(bool) -> bool) -> u16 {
        let of = self.0.iter().filter(|p| p.place == place);
        of.map(|p| if crosses(p.is_fma) { p.cycles + crossing } else { p.cycles }).max().unwrap_or(0)
    }
}

/// Sets of places whose time is not known: for their values, for the memory operations that read them, and, among the
/// values, those of atomics, which are not in the registers before.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Open {
    words: usize,
    bits: Vec<u64>,
}

#[derive(Clone, Copy)]
enum Plane {
    Value,
    Readers,
    Atomic,
}

impl Open {
    fn new(places: usize) -> Open {
        let words = places.div_ceil(64);
        Open { words, bits: vec![0; 3 * words] }
    }

    fn at(&self, plane: Plane, place: u16) -> (usize, u64) {
        (plane as usize * self.words + usize::from(place) / 64, 1 << (place % 64))
    }

    fn has(&self, plane: Plane, place: u16) -> bool {
        let (word, bit) = self.at(plane, place);
        self.bits[word] & bit != 0
    }

    fn set(&mut self, plane: Plane, place: u16) {
        let (word, bit) = self.at(plane, place);
        self.bits[word] |= bit;
    }

    fn clear(&mut self, plane: Plane, place: u16) {
        let (word, bit) = self.at(plane, place);
        self.bits[word] &= !bit;
    }

    fn merge(&mut self, other: &Open) -> bool {
        let mut changed = false;
        for (a, &b) in self.bits.iter_mut().zip(&other.bits) {
            changed |= b & !*a != 0;
            *a |= b;
        }
        changed
    }
}

/// Instructions that run one after the other, and where the last of them may go.
struct Block {
    start: usize,
    end: usize,
    /// Blocks that follow, and the cycles that pass on the way there at least.
    next: Vec<(usize, u16)>,
    /// The last instruction goes to a place that is not in the code.
    is_wild: bool,
    /// Such an instruction may come here.
    is_target: bool,
}

/// Whether an instruction of this kind takes part in what the warp alone does: nobody sees when it executes.
pub fn is_quiet(t: &Timing) -> bool {
    t.is_known || (t.kind == Kind::Fixed && !t.reads_time)
}

/// Whether it executes in all lanes that come to it.
pub fn is_always(i: &Inst) -> bool {
    i.guard.pred == Pred::PT && !i.guard.neg
}

/// Cycles from an instruction to the one behind it, and to its target, at least.
fn gaps(t: &Timing, spec: &Spec) -> (u16, u16) {
    let l = &spec.latency;
    let gap = |n: u32| n.clamp(1, u32::from(LONGEST)) as u16;
    match t.kind {
        Kind::Branch | Kind::Exit => (gap(l.branch_not_taken.min(l.branch)), gap(l.branch)),
        Kind::Barrier => (gap(l.barrier), 1),
        _ => (1, 1),
    }
}

/// `ways` are places that warps may go to from others, beside what the code says.
fn blocks(image: &Image, timings: &[Timing], ways: &[(u32, u32)], spec: &Spec) -> Vec<Block> {
    let code = &image.code;
    let mut leads = vec![false; code.len() + 1];
    let mut may_come = vec![false; code.len() + 1];
    leads[0] = true;
    let anywhere = code.iter().any(|i| i.op == Op::Brx);
    for f in &image.functions {
        leads[f.start as usize] = true;
        may_come[f.start as usize] = true;
    }
    for (n, i) in code.iter().enumerate() {
        if let Some(t) = i.target() {
            leads[t as usize] = true;
            may_come[t as usize] |= i.op == Op::Call;
        }
        if matches!(timings[n].kind, Kind::Branch | Kind::Exit | Kind::Barrier) {
            leads[n + 1] = true;
            may_come[n + 1] |= matches!(i.op, Op::Call | Op::Callx);
        }
    }
    for &(_, to) in ways {
        leads[to as usize] = true;
    }
    let starts: Vec<usize> = (0..code.len()).filter(|&n| leads[n]).collect();
    let number = |pc: usize| starts.binary_search(&pc).ok();
    (0..starts.len())
        .map(|b| {
            let (start, end) = (starts[b], starts.get(b + 1).copied().unwrap_or(code.len()));
            let (last, timing) = (&code[end - 1], &timings[end - 1]);
            let (behind, taken) = gaps(timing, spec);
            let mut next = Vec::new();
            // Lanes that do not jump go on behind; others come back there after a call, and when splits meet.
            let ends = matches!(last.op, Op::Bra | Op::Brx | Op::Ret | Op::Exit) && is_always(last);
            if !ends {
                next.extend(number(end).map(|n| (n, behind)));
            }
            next.extend(last.target().and_then(|t| number(t as usize)).map(|n| (n, taken)));
            let others = ways.iter().filter(|w| w.0 as usize == end - 1);
            next.extend(others.filter_map(|w| number(w.1 as usize)).map(|n| (n, behind)));
            Block {
                start,
                end,
                next,
                is_wild: matches!(last.op, Op::Brx | Op::Callx | Op::Ret),
                is_target: anywhere || may_come[start],
            }
        })
        .collect()
}

/// Runs a function over blocks until nothing changes: it takes a block's state at its start and adds its state at the
/// end to those of blocks that follow.
fn settle<S: Clone>(
    blocks: &[Block],
    states: &mut [S],
    empty: &S,
    mut end: impl FnMut(usize, &S) -> S,
    mut merge: impl FnMut(&mut S, &S, u16) -> bool,
) {
    let mut is_due = vec![true; blocks.len()];
    let mut wild = empty.clone();
    loop {
        let mut any = false;
        let mut wilder = false;
        for (b, block) in blocks.iter().enumerate() {
            if !std::mem::take(&mut is_due[b]) {
                continue;
            }
            let out = end(b, &states[b]);
            for &(n, gap) in &block.next {
                if merge(&mut states[n], &out, gap) {
                    is_due[n] = true;
                    any |= n <= b;
                }
            }
            wilder |= block.is_wild && merge(&mut wild, &out, 1);
        }
        if wilder {
            for (b, _) in blocks.iter().enumerate().filter(|(_, b)| b.is_target) {
                if merge(&mut states[b], &wild, 1) {
                    is_due[b] = true;
                    any = true;
                }
            }
        }
        if !any {
            return;
        }
    }
}

/// The analysis of a program.
struct Analysis<'c> {
    code: &'c Code,
    crossing: u16,
}

impl Analysis<'_> {
    /// Cycles from the issue before to that of an instruction, none if it could issue with it; what is pending passes on
    /// to its issue.
    fn step(&self, n: usize, results: &mut Results) -> u16 {
        let t = self.code.timing_of(n as u32);
        let (writes, reads) = self.code.places(t);
        let latest = reads.iter().map(|&p| {
            // Registers leave for the load-store unit from a pipe of its own.
            let leaves = t.is_memory() && p >= self.code.first_register;
            results.until(p, self.crossing, |is_fma| leaves || is_fma != t.is_fma)
        });
        let latest = latest.max();
        let wait = latest.unwrap_or(0).min(LONGEST);
        results.pass(wait.max(1));
        if t.is_static {
            for (k, &place) in writes.iter().enumerate() {
                let cycles = t.latency_of(k);
                results.0.retain(|p| p.place != place);
                results.add(Pending { place, cycles, is_fma: t.producer == Producer::Fma });
            }
        }
        wait
    }

    /// What an instruction checks, and what is open after it.
    fn check(&self, n: usize, open: &mut Open, mut found: impl FnMut(u16, bool)) {
        let t = self.code.timing_of(n as u32);
        let (writes, reads) = self.code.places(t);
        let checked = writes[..t.checked as usize].iter();
        for &p in checked.clone().chain(reads) {
            if open.has(Plane::Value, p) {
                found(p, open.has(Plane::Atomic, p));
                open.clear(Plane::Value, p);
                open.clear(Plane::Atomic, p);
            }
        }
        for &p in checked {
            if open.has(Plane::Readers, p) {
                found(p | FOR_READERS, false);
                open.clear(Plane::Readers, p);
            }
        }
        if !t.is_static {
            for &p in writes {
                open.set(Plane::Value, p);
                if t.kind == Kind::Atomic {
                    open.set(Plane::Atomic, p);
                }
            }
        }
        if t.is_memory() {
            reads.iter().for_each(|&p| open.set(Plane::Readers, p));
        }
    }
}

/// What the code tells of each instruction.
#[derive(Default)]
pub struct Waits {
    /// Cycles from the issue before; none where it could issue with it.
    pub cycles: Vec<u8>,
    /// Places to check, for one instruction after the other, and the end of each one's.
    pub checks: Vec<u16>,
    pub ends: Vec<u32>,
    /// Instructions from here on that can be executed at once.
    pub runs: Vec<u8>,
    /// Those that need the result of an atomic, which another SM may have a part in.
    pub is_late: Vec<bool>,
}

pub fn analyse(code: &Code, image: &Image, ways: &[(u32, u32)], spec: &Spec) -> Waits {
    let blocks = blocks(image, code.timings(), ways, spec);
    let analysis = Analysis { code, crossing: spec.latency.pipe_crossing.min(u32::from(LONGEST)) as u16 };

    // Each block by itself: how long it takes, what it leaves behind.
    let own: Vec<(u16, Results)> = blocks
        .iter()
        .map(|b| {
            let mut results = Results::default();
            let cycles = (b.start..b.end)
                .fold(0u16, |sum, n| sum.saturating_add(analysis.step(n, &mut results).max(1)));
            (cycles, results)
        })
        .collect();
    let mut before = vec![Results::default(); blocks.len()];
    settle(
        &blocks,
        &mut before,
        &Results::default(),
        |b, state| {
            let mut out = state.clone();
            out.pass(own[b].0);
            out.merge(&own[b].1);
            out
        },
        |state, out, gap| {
            let mut out = out.clone();
            out.pass(gap - 1);
            state.merge(&out)
        },
    );
    let mut open = vec![Open::new(code.scoreboard); blocks.len()];
    settle(
        &blocks,
        &mut open,
        &Open::new(code.scoreboard),
        |b, state| {
            let mut out = state.clone();
            (blocks[b].start..blocks[b].end).for_each(|n| analysis.check(n, &mut out, |_, _| {}));
            out
        },
        |state, out, _| state.merge(out),
    );

    let mut waits = Waits::default();
    for ((block, mut results), mut open) in blocks.iter().zip(before).zip(open) {
        for n in block.start..block.end {
            waits.cycles.push(analysis.step(n, &mut results) as u8);
            let mut late = false;
            analysis.check(n, &mut open, |place, is_atomic| {
                waits.checks.push(place);
                late |= is_atomic;
            });
            waits.is_late.push(late);
            waits.ends.push(waits.checks.len() as u32);
        }
    }
    // The engine's guard behind the last instruction.
    waits.cycles.push(1);
    waits.ends.push(waits.checks.len() as u32);
    waits.is_late.push(false);
    waits.runs = vec![0; code.len()];
    let mut behind = 0u8;
    for n in (0..image.code.len()).rev() {
        let quiet = is_quiet(code.timing_of(n as u32));
        waits.runs[n] = if quiet { behind.saturating_add(1) } else { 0 };
        behind = if waits.is_late[n] { 0 } else { waits.runs[n] };
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn waits(text: &[&str]) -> Waits {
        let code = text.iter().map(|line| isa::text::parse(line).expect("assembles")).collect();
        let image = Image { code, ..Image::default() };
        let config = Config::preset("h200").expect("is there");
        let code = Code::new(&image, 64, &config.sm);
        analyse(&code, &image, &[], &config.sm)
    }

    #[test]
    fn an_instruction_waits_for_the_rest_of_a_latency() {
        // Four cycles for a sum, of which two have passed; one more from the integer pipe to the multiply-add pipe.
        let w = waits(&[
            "FADD R1, R2, R3",
            "FADD R4, R2, R3",
            "FADD R5, R1, R2",
            "IADD3 R6, PT, R2, R3, RZ, PT",
            "FADD R7, R6, R2",
            "EXIT",
        ]);
        assert_eq!(w.cycles[..5], [0, 0, 3, 0, 5]);
    }

    #[test]
    fn only_the_first_reader_looks_a_load_up() {
        let w = waits(&[
            "LDS R1, [R2]",
            "FADD R4, R1, R1",
            "FADD R5, R1, R1",
            "IADD3 R2, PT, R2, R3, RZ, PT",
            "EXIT",
        ]);
        let of = |n: usize| &w.checks[if n == 0 { 0 } else { w.ends[n - 1] as usize }..w.ends[n] as usize];
        assert_eq!((of(0).len(), of(1).len(), of(2).len()), (0, 1, 0));
        // What the load reads must have been read before it is written.
        assert_eq!(of(3).len(), 1);
        assert_ne!(of(3)[0] & FOR_READERS, 0);
    }

    #[test]
    fn what_needs_an_atomic_is_not_executed_ahead() {
        let w = waits(&[
            "ATOMS.ADD R1, [R2], R3, RZ",
            "FADD R4, R2, R3",
            "FADD R5, R2, R3",
            "FADD R6, R1, R3",
            "FADD R7, R6, R3",
            "EXIT",
        ]);
        assert_eq!(w.runs[..6], [0, 2, 1, 2, 1, 0]);
    }

    #[test]
    fn what_never_changes_is_executed_ahead() {
        let w = waits(&[
            "S2R R0, SR_CTAID.X",
            "LDC R1, c[0x0][RZ+0x28]",
            "FADD R2, R0, R1",
            "S2R R3, SR_CLOCKLO",
            "LDC R4, c[0x0][R2+0x28]",
            "FADD R5, R2, R1",
            "EXIT",
        ]);
        assert_eq!(w.runs[..7], [3, 2, 1, 0, 0, 1, 0]);
    }
}
