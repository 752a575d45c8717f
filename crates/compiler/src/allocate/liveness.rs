//! Live ranges of every word of every virtual register, and removal of instructions whose results nobody reads.
//!
//! Instruction `n` reads at `2n` and writes at `2n + 1`; a range is half open, so what is read last by an instruction may
//! share a register with what the instruction writes.

use crate::clobbers::Clobbers;
use crate::groups::Groups;
use crate::mir::{Class, MFunction, MInst, MTerm, Sub, VReg};
use isa::{Effects, Op, Unit};

pub struct Live {
    /// First unit of each virtual register.
    pub base: Vec<u32>,
    /// Ranges of each unit, ascending.
    ranges: Groups<(u32, u32)>,
    /// The calls, ascending.
    pub calls: Vec<Call>,
    /// Cost of keeping each virtual register in memory.
    pub weight: Vec<f32>,
}

/// A call: its number, and what it overwrites if that is known.
pub struct Call {
    pub at: u32,
    pub clobbers: Option<Clobbers>,
}

impl Live {
    pub fn units(&self, f: &MFunction, r: VReg) -> std::ops::Range<usize> {
        let first = self.base[r.index()] as usize;
        first..first + f.class(r).units() as usize
    }

    /// Where a unit lives, ascending.
    pub fn ranges(&self, unit: usize) -> &[(u32, u32)] {
        self.ranges.of(unit)
    }
}

/// First unit of each virtual register, and how many there are.
fn number_units(classes: &[Class]) -> (Vec<u32>, usize) {
    let mut base = Vec::with_capacity(classes.len());
    let mut total = 0;
    for c in classes {
        base.push(total);
        total += c.units();
    }
    (base, total as usize)
}

/// The units that are live where each block starts. The order of the instructions within blocks does not change them.
pub struct Starts {
    base: Vec<u32>,
    total: usize,
    live: Groups<u32>,
}

impl Starts {
    /// First unit of each virtual register.
    pub fn base(&self) -> &[u32] {
        &self.base
    }

    /// How many units there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// What lives where a block ends; a unit may come more than once.
    pub fn after<'a>(&'a self, f: &'a MFunction, b: usize) -> impl Iterator<Item = u32> + 'a {
        f.successors(b).into_iter().flat_map(|s| self.live.of(s).iter().copied())
    }

    /// Gives units new names, those of one name never having lived at once.
    pub fn rename(&mut self, mut name: impl FnMut(u32) -> u32) {
        self.live.items_mut().iter_mut().for_each(|u| *u = name(*u));
    }
}

/// What one instruction reads and writes, in units.
struct Access<'a> {
    base: &'a [u32],
    sp: VReg,
}

impl Access<'_> {
    fn each(&self, s: Sub, width: u32, mut f: impl FnMut(usize)) {
        if s.reg != self.sp {
            let first = self.base[s.reg.index()] + u32::from(s.at);
            (first..first + width).for_each(|u| f(u as usize));
        }
    }

    fn writes(&self, i: &MInst, classes: &[Class], mut f: impl FnMut(usize)) {
        if let Some((s, width)) = i.written() {
            self.each(s, width, &mut f);
        }
        i.pd.iter().flatten().for_each(|p| f(self.base[p.index()] as usize));
        if let Some(call) = &i.call {
            for &r in &call.defs {
                self.each(Sub { reg: r, at: 0 }, classes[r.index()].units(), &mut f);
            }
        }
    }

    fn reads(&self, i: &MInst, classes: &[Class], mut f: impl FnMut(usize)) {
        i.for_each_read(|s, width| self.each(s, width, &mut f));
        i.for_each_pred_read(|p| f(self.base[p.index()] as usize));
        if i.is_guarded()
            && !i.fresh
            && let Some((s, width)) = i.written()
        {
            self.each(s, width, &mut f);
        }
        if i.keeps_preds() {
            i.pd.iter().flatten().for_each(|p| f(self.base[p.index()] as usize));
        }
        if let Some(call) = &i.call {
            for &r in &call.uses {
                self.each(Sub { reg: r, at: 0 }, classes[r.index()].units(), &mut f);
            }
        }
    }

    fn term_reads(&self, t: &MTerm, classes: &[Class], mut f: impl FnMut(usize)) {
        match t {
            MTerm::Branch { cond, .. } => {
                if let Some(p) = cond.reg {
                    f(self.base[p.index()] as usize);
                }
            }
            MTerm::Table { place, .. } => self.each(*place, 1, f),
            MTerm::Return { to, results } => {
                self.each(*to, 1, &mut f);
                for &r in results {
                    self.each(Sub { reg: r, at: 0 }, classes[r.index()].units(), &mut f);
                }
            }
            _ => {}
        }
    }
}

/// Nothing happens but the writing of registers.
fn is_removable(i: &MInst, sp: VReg) -> bool {
    let row = i.op().row();
    let effects = Effects::WRITES
        .or(Effects::JUMPS)
        .or(Effects::ENDS)
        .or(Effects::LANES)
        .or(Effects::BARRIER)
        .or(Effects::FENCE)
        .or(Effects::VOLATILE)
        .or(Effects::READS);
    let pure = !row.effects.has(effects) && !matches!(row.unit, Unit::Branch | Unit::Misc);
    let special = matches!(i.op(), Op::S2r | Op::S2ur | Op::Mov | Op::BmovR);
    (pure || special) && i.call.is_none() && i.op() != Op::Cctl && i.dst.is_none_or(|d| d.reg != sp)
}

/// No range is open.
const NOT_OPEN: u32 = u32::MAX;

/// The units that are live where each block starts, ascending: from every read that no write in its block precedes, back along
/// all ways to the writes. The time is that of the answer's length, however many blocks and units there are.
fn live_at_starts(f: &MFunction, access: &Access, total: usize) -> Groups<u32> {
    let count = f.blocks.len();
    let edges = (0..count).flat_map(|b| f.successors(b).into_iter().map(move |s| (s as u32, b as u32)));
    let predecessors = Groups::new(count, edges);
    // Units with the blocks that read them first, and with the blocks that write them.
    let mut reads: Vec<(u32, u32)> = Vec::new();
    let mut writes: Vec<(u32, u32)> = Vec::new();
    // The block in which a unit is read before it is written, or written, and one.
    let (mut read_in, mut written_in) = (vec![0u32; total], vec![0u32; total]);
    for (b, block) in f.blocks.iter().enumerate() {
        let here = b as u32 + 1;
        let reads_from = reads.len();
        access.term_reads(&block.term, &f.classes, |u| {
            if std::mem::replace(&mut read_in[u], here) != here {
                reads.push((u as u32, b as u32));
            }
        });
        for i in block.insts.iter().rev() {
            access.writes(i, &f.classes, |u| {
                read_in[u] = 0;
                if std::mem::replace(&mut written_in[u], here) != here {
                    writes.push((u as u32, b as u32));
                }
            });
            access.reads(i, &f.classes, |u| {
                if std::mem::replace(&mut read_in[u], here) != here {
                    reads.push((u as u32, b as u32));
                }
            });
        }
        // Reads behind a write do not count, and those on both sides of one stand here twice.
        let mut n = reads_from;
        for k in reads_from..reads.len() {
            let (u, _) = reads[k];
            if std::mem::replace(&mut read_in[u as usize], 0) == here {
                reads[n] = reads[k];
                n += 1;
            }
        }
        reads.truncate(n);
    }
    let reads = Groups::new(total, reads.into_iter());
    let writes = Groups::new(total, writes.into_iter());
    let (mut seen, mut stops) = (vec![u32::MAX; count], vec![u32::MAX; count]);
    // Blocks at whose starts each unit lives, one unit after the other.
    let mut found: Vec<u32> = Vec::new();
    let mut found_ends: Vec<u32> = Vec::with_capacity(total);
    let mut work: Vec<u32> = Vec::new();
    for unit in 0..total {
        let u = unit as u32;
        work.extend(reads.of(unit));
        if !work.is_empty() {
            writes.of(unit).iter().for_each(|&b| stops[b as usize] = u);
        }
        while let Some(b) = work.pop() {
            if std::mem::replace(&mut seen[b as usize], u) == u {
                continue;
            }
            found.push(b);
            let goes_on = |p: &&u32| stops[**p as usize] != u && seen[**p as usize] != u;
            work.extend(predecessors.of(b as usize).iter().filter(goes_on));
        }
        found_ends.push(found.len() as u32);
    }
    let blocks_of = |u: usize| {
        let start = if u == 0 { 0 } else { found_ends[u - 1] };
        &found[start as usize..found_ends[u] as usize]
    };
    Groups::new(count, (0..total).flat_map(|u| blocks_of(u).iter().map(move |&b| (b, u as u32))))
}

/// Removes instructions whose results nobody reads; whether less lives where some block starts.
fn remove_dead(f: &mut MFunction, access: &Access, starts: &Groups<u32>, total: usize) -> bool {
    let (sp, classes) = (f.sp, &f.classes);
    // The block in which a unit was last found live, and one.
    let mut live = vec![0u32; total];
    let mut keep: Vec<bool> = Vec::new();
    let mut less = false;
    for b in 0..f.blocks.len() {
        let here = b as u32 + 1;
        for s in f.successors(b) {
            starts.of(s).iter().for_each(|&u| live[u as usize] = here);
        }
        let block = &mut f.blocks[b];
        access.term_reads(&block.term, classes, |u| live[u] = here);
        keep.clear();
        keep.resize(block.insts.len(), true);
        for (n, i) in block.insts.iter().enumerate().rev() {
            let mut wanted = false;
            let mut writes = false;
            access.writes(i, classes, |u| {
                writes = true;
                wanted |= live[u] == here;
            });
            if writes && !wanted && is_removable(i, sp) {
                keep[n] = false;
                continue;
            }
            access.writes(i, classes, |u| live[u] = 0);
            access.reads(i, classes, |u| live[u] = here);
        }
        if keep.contains(&false) {
            let mut kept = keep.iter();
            block.insts.retain(|_| kept.next() != Some(&false));
            less |= starts.of(b).iter().any(|&u| live[u as usize] != here);
        }
    }
    less
}

/// How often dead instructions are looked for: what kept one alive may have been dead itself, in another block.
const ROUNDS: usize = 3;

/// Finds what lives where blocks start, and removes instructions whose results nobody reads.
pub fn starts(f: &mut MFunction) -> Starts {
    let (base, total) = number_units(&f.classes);
    let access = Access { base: &base, sp: f.sp };
    let mut live = live_at_starts(f, &access, total);
    for round in 1..=ROUNDS {
        if !remove_dead(f, &access, &live, total) || round == ROUNDS {
            break;
        }
        live = live_at_starts(f, &access, total);
    }
    Starts { base, total, live }
}

/// The ranges of units, found from the last to the first.
struct Collector {
    /// The first range of each unit so far.
    first: Vec<(u32, u32)>,
    /// Those behind it.
    behind: Vec<(u32, (u32, u32))>,
}

/// A range of nothing.
const NOWHERE: (u32, u32) = (u32::MAX, u32::MAX);

impl Collector {
    fn add(&mut self, u: usize, from: u32, to: u32) {
        let first = &mut self.first[u];
        if first.0 <= to {
            *first = (from, first.1.max(to));
        } else {
            if *first != NOWHERE {
                self.behind.push((u as u32, *first));
            }
            *first = (from, to);
        }
    }

    fn finish(self) -> Groups<(u32, u32)> {
        let first = self.first.iter().enumerate().filter(|(_, r)| **r != NOWHERE);
        let first = first.map(|(u, &r)| (u as u32, r));
        Groups::new(self.first.len(), first.chain(self.behind.iter().rev().copied()))
    }
}

/// Finds the live ranges of a function; what lives where its blocks start is known.
pub fn ranges(f: &MFunction, starts: &Starts) -> Live {
    let (base, total) = (starts.base.clone(), starts.total);
    let access = Access { base: &base, sp: f.sp };
    let classes = &f.classes;
    let mut calls = Vec::new();
    let mut weight = vec![0.0; f.classes.len()];
    let mut found = Collector { first: vec![NOWHERE; total], behind: Vec::new() };
    // End of the range that is open at this point, by unit; those that were opened in this block.
    let mut open = vec![NOT_OPEN; total];
    let mut opened: Vec<usize> = Vec::new();
    let mut number = f.blocks.iter().map(|b| b.insts.len() as u32 + 1).sum::<u32>();
    for b in (0..f.blocks.len()).rev() {
        let block = &f.blocks[b];
        let end = number;
        let start = end - block.insts.len() as u32 - 1;
        let mut read = |open: &mut [u32], u: usize, to: u32| {
            if open[u] == NOT_OPEN {
                open[u] = to;
                opened.push(u);
            }
        };
        starts.after(f, b).for_each(|u| read(&mut open, u as usize, 2 * end));
        number -= 1;
        access.term_reads(&block.term, classes, |u| read(&mut open, u, 2 * number + 1));
        for i in block.insts.iter().rev() {
            number -= 1;
            access.writes(i, classes, |u| {
                let to = std::mem::replace(&mut open[u], NOT_OPEN);
                found.add(u, 2 * number + 1, if to == NOT_OPEN { 2 * number + 2 } else { to });
            });
            access.reads(i, classes, |u| read(&mut open, u, 2 * number + 1));
            if matches!(i.op(), Op::Call | Op::Callx) {
                let clobbers = i.call.as_ref().and_then(|c| c.clobbers.clone());
                calls.push(Call { at: number, clobbers });
            }
        }
        for u in opened.drain(..) {
            // A unit that was written and read again stands here twice.
            let to = std::mem::replace(&mut open[u], NOT_OPEN);
            if to != NOT_OPEN {
                found.add(u, 2 * start, to);
            }
        }
        let cost = 10f32.powi(block.depth.min(6) as i32);
        let mut note = |r: VReg| weight[r.index()] += cost;
        for i in &block.insts {
            i.for_each_read(|s, _| note(s.reg));
            i.for_each_pred_read(&mut note);
            i.dst.iter().for_each(|d| note(d.reg));
            i.pd.iter().flatten().for_each(|&p| note(p));
        }
    }
    calls.reverse();
    Live { base, ranges: found.finish(), calls, weight }
}

/// Finds the live ranges of a function, and removes instructions whose results nobody reads.
pub fn analyse(f: &mut MFunction) -> Live {
    let starts = starts(f);
    ranges(f, &starts)
}
