//! Live ranges of every word of every virtual register, and removal of instructions whose results nobody reads.
//!
//! Instruction `n` reads at `2n` and writes at `2n + 1`; a range is half open, so what is read last by an instruction may
//! share a register with what the instruction writes.

use crate::clobbers::Clobbers;
use crate::mir::{MFunction, MInst, MTerm, Sub, VReg};
use isa::{Effects, Op, Unit};

pub struct Live {
    /// First unit of each virtual register.
    pub base: Vec<u32>,
    /// Ranges of each unit, ascending.
    pub ranges: Vec<Vec<(u32, u32)>>,
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

    fn writes(&self, i: &MInst, classes: &[crate::mir::Class], mut f: impl FnMut(usize)) {
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

    fn reads(&self, i: &MInst, classes: &[crate::mir::Class], mut f: impl FnMut(usize)) {
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

    fn term_reads(&self, t: &MTerm, classes: &[crate::mir::Class], mut f: impl FnMut(usize)) {
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
fn live_at_starts(
    f: &MFunction,
    access: &Access,
    total: usize,
    successors: &[smallvec::SmallVec<[usize; 2]>],
) -> Vec<Vec<u32>> {
    let count = f.blocks.len();
    let mut predecessors: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (b, list) in successors.iter().enumerate() {
        list.iter().for_each(|&s| predecessors[s].push(b as u32));
    }
    // Blocks that read a unit first, and blocks that write it.
    let mut reads: Vec<(u32, u32)> = Vec::new();
    let mut writes: Vec<(u32, u32)> = Vec::new();
    // The block in which a unit is read before it is written, or written, and one.
    let (mut read_in, mut written_in) = (vec![0usize; total], vec![0usize; total]);
    for (b, block) in f.blocks.iter().enumerate() {
        let here = b + 1;
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
        reads[reads_from..].sort_unstable();
        let mut n = reads_from;
        for k in reads_from..reads.len() {
            let (u, _) = reads[k];
            if read_in[u as usize] == here && (n == reads_from || reads[n - 1].0 != u) {
                reads[n] = reads[k];
                n += 1;
            }
        }
        reads.truncate(n);
    }
    reads.sort_unstable();
    writes.sort_unstable();
    let mut starts: Vec<Vec<u32>> = vec![Vec::new(); count];
    let (mut seen, mut stops) = (vec![u32::MAX; count], vec![u32::MAX; count]);
    let mut work: Vec<u32> = Vec::new();
    let (mut at, mut write) = (0, 0);
    while let Some(&(u, _)) = reads.get(at) {
        while writes.get(write).is_some_and(|w| w.0 < u) {
            write += 1;
        }
        while let Some(&(_, b)) = writes.get(write).filter(|w| w.0 == u) {
            stops[b as usize] = u;
            write += 1;
        }
        while let Some(&(_, b)) = reads.get(at).filter(|r| r.0 == u) {
            at += 1;
            work.push(b);
        }
        while let Some(b) = work.pop() {
            if std::mem::replace(&mut seen[b as usize], u) == u {
                continue;
            }
            starts[b as usize].push(u);
            work.extend(
                predecessors[b as usize].iter().filter(|&&p| stops[p as usize] != u && seen[p as usize] != u),
            );
        }
    }
    starts
}

pub fn analyse(f: &mut MFunction) -> Live {
    let mut base = Vec::with_capacity(f.classes.len());
    let mut total = 0;
    for c in &f.classes {
        base.push(total);
        total += c.units();
    }
    let total = total as usize;
    let access = Access { base: &base, sp: f.sp };
    let classes = &f.classes;
    let successors: Vec<_> = (0..f.blocks.len()).map(|b| f.successors(b)).collect();
    let starts = live_at_starts(f, &access, total, &successors);
    // Dead instructions go first, so that numbers are those of what stays.
    let sp = f.sp;
    // The block in which a unit was last found live, and one.
    let mut live = vec![0usize; total];
    for b in 0..f.blocks.len() {
        let here = b + 1;
        for &s in &successors[b] {
            starts[s].iter().for_each(|&u| live[u as usize] = here);
        }
        access.term_reads(&f.blocks[b].term, classes, |u| live[u] = here);
        let mut keep = vec![true; f.blocks[b].insts.len()];
        for (n, i) in f.blocks[b].insts.iter().enumerate().rev() {
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
        let mut n = 0;
        f.blocks[b].insts.retain(|_| {
            n += 1;
            keep[n - 1]
        });
    }
    let mut live = Live {
        base: Vec::new(),
        ranges: vec![Vec::new(); total],
        calls: Vec::new(),
        weight: vec![0.0; f.classes.len()],
    };
    // End of the range that is open at this point, by unit; those that were opened in this block.
    let mut open = vec![NOT_OPEN; total];
    let mut opened: Vec<usize> = Vec::new();
    let mut number = f.blocks.iter().map(|b| b.insts.len() as u32 + 1).sum::<u32>();
    for b in (0..f.blocks.len()).rev() {
        let block = &f.blocks[b];
        let end = number;
        let start = end - block.insts.len() as u32 - 1;
        let mut add = |u: usize, from: u32, to: u32| match live.ranges[u].last_mut() {
            // Ranges are collected from the last to the first.
            Some(last) if last.0 <= to => *last = (from, last.1.max(to)),
            _ => live.ranges[u].push((from, to)),
        };
        let mut read = |open: &mut [u32], u: usize, to: u32| {
            if open[u] == NOT_OPEN {
                open[u] = to;
                opened.push(u);
            }
        };
        for &s in &successors[b] {
            starts[s].iter().for_each(|&u| read(&mut open, u as usize, 2 * end));
        }
        number -= 1;
        access.term_reads(&block.term, classes, |u| read(&mut open, u, 2 * number + 1));
        for i in block.insts.iter().rev() {
            number -= 1;
            access.writes(i, classes, |u| {
                let to = std::mem::replace(&mut open[u], NOT_OPEN);
                add(u, 2 * number + 1, if to == NOT_OPEN { 2 * number + 2 } else { to });
            });
            access.reads(i, classes, |u| read(&mut open, u, 2 * number + 1));
            if matches!(i.op(), Op::Call | Op::Callx) {
                let clobbers = i.call.as_ref().and_then(|c| c.clobbers.clone());
                live.calls.push(Call { at: number, clobbers });
            }
        }
        for u in opened.drain(..) {
            // A unit that was written and read again stands here twice.
            let to = std::mem::replace(&mut open[u], NOT_OPEN);
            if to != NOT_OPEN {
                add(u, 2 * start, to);
            }
        }
        let cost = 10f32.powi(block.depth.min(6) as i32);
        let weight = &mut live.weight;
        let mut note = |r: VReg| weight[r.index()] += cost;
        for i in &block.insts {
            i.for_each_read(|s, _| note(s.reg));
            i.for_each_pred_read(&mut note);
            i.dst.iter().for_each(|d| note(d.reg));
            i.pd.iter().flatten().for_each(|&p| note(p));
        }
    }
    for r in &mut live.ranges {
        r.reverse();
    }
    live.calls.reverse();
    live.base = base;
    live
}
