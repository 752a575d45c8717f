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

struct Bits(Vec<u64>);

impl Bits {
    fn new(n: usize) -> Self {
        Bits(vec![0; n.div_ceil(64)])
    }
    fn get(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 != 0
    }
    fn set(&mut self, n: usize) {
        self.0[n / 64] |= 1 << (n % 64);
    }
    fn clear(&mut self, n: usize) {
        self.0[n / 64] &= !(1 << (n % 64));
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
        if i.is_guarded() && !i.fresh {
            if let Some((s, width)) = i.written() {
                self.each(s, width, &mut f);
            }
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
    // What is live where a block starts, by iteration to a fixed point.
    let mut starts: Vec<Bits> = f.blocks.iter().map(|_| Bits::new(total)).collect();
    let words = total.div_ceil(64);
    let mut gen_kill: Vec<(Bits, Bits)> = Vec::with_capacity(f.blocks.len());
    for b in &f.blocks {
        let (mut uses, mut kills) = (Bits::new(total), Bits::new(total));
        access.term_reads(&b.term, classes, |u| uses.set(u));
        for i in b.insts.iter().rev() {
            access.writes(i, classes, |u| {
                uses.clear(u);
                kills.set(u);
            });
            access.reads(i, classes, |u| uses.set(u));
        }
        gen_kill.push((uses, kills));
    }
    let successors: Vec<_> = (0..f.blocks.len()).map(|b| f.successors(b)).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for b in (0..f.blocks.len()).rev() {
            for w in 0..words {
                let out = successors[b].iter().fold(0, |x, &s| x | starts[s].0[w]);
                let new = gen_kill[b].0.0[w] | out & !gen_kill[b].1.0[w];
                if new != starts[b].0[w] {
                    starts[b].0[w] = new;
                    changed = true;
                }
            }
        }
    }
    // Dead instructions go first, so that numbers are those of what stays.
    let sp = f.sp;
    for b in 0..f.blocks.len() {
        let mut live = Bits::new(total);
        for &s in &successors[b] {
            live.0.iter_mut().zip(&starts[s].0).for_each(|(x, y)| *x |= y);
        }
        access.term_reads(&f.blocks[b].term, classes, |u| live.set(u));
        let mut keep = vec![true; f.blocks[b].insts.len()];
        for (n, i) in f.blocks[b].insts.iter().enumerate().rev() {
            let mut wanted = false;
            let mut writes = false;
            access.writes(i, classes, |u| {
                writes = true;
                wanted |= live.get(u);
            });
            if writes && !wanted && is_removable(i, sp) {
                keep[n] = false;
                continue;
            }
            access.writes(i, classes, |u| live.clear(u));
            access.reads(i, classes, |u| live.set(u));
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
    let mut number = f.blocks.iter().map(|b| b.insts.len() as u32 + 1).sum::<u32>();
    for b in (0..f.blocks.len()).rev() {
        let block = &f.blocks[b];
        let end = number;
        let start = end - block.insts.len() as u32 - 1;
        // End of the range that is open at this point, by unit.
        let mut open: std::collections::HashMap<usize, u32> = std::collections::HashMap::new();
        let mut add = |u: usize, from: u32, to: u32| match live.ranges[u].last_mut() {
            // Ranges are collected from the last to the first.
            Some(last) if last.0 <= to => *last = (from, last.1.max(to)),
            _ => live.ranges[u].push((from, to)),
        };
        let mut out = Bits::new(total);
        for &s in &successors[b] {
            out.0.iter_mut().zip(&starts[s].0).for_each(|(x, y)| *x |= y);
        }
        for (w, &bits) in out.0.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                open.insert(w * 64 + bits.trailing_zeros() as usize, 2 * end);
                bits &= bits - 1;
            }
        }
        number -= 1;
        access.term_reads(&block.term, classes, |u| {
            open.entry(u).or_insert(2 * number + 1);
        });
        for i in block.insts.iter().rev() {
            number -= 1;
            access.writes(i, classes, |u| {
                let to = open.remove(&u).unwrap_or(2 * number + 2);
                add(u, 2 * number + 1, to);
            });
            access.reads(i, classes, |u| {
                open.entry(u).or_insert(2 * number + 1);
            });
            if matches!(i.op(), Op::Call | Op::Callx) {
                let clobbers = i.call.as_ref().and_then(|c| c.clobbers.clone());
                live.calls.push(Call { at: number, clobbers });
            }
        }
        let mut open: Vec<_> = open.into_iter().collect();
        open.sort_unstable();
        for (u, to) in open {
            add(u, 2 * start, to);
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
