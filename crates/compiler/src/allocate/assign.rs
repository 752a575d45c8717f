//! Gives out registers.

use super::Choice;
use super::liveness::Live;
use super::occupied::{Occupied, Points};
use crate::clobbers::Clobbers;
use crate::mir::{Class, MFunction, MInst, VReg};
use isa::Unit;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Who lives in one physical register: start of a range to its end and owner.
type Owners = BTreeMap<u32, (u32, VReg)>;

struct Assigner<'a> {
    f: &'a MFunction,
    live: &'a Live,
    general: Vec<Occupied>,
    preds: Vec<Occupied>,
    uniform: Vec<Occupied>,
    /// General registers and predicates by owner, known once something must make room.
    owners: Option<[Vec<Owners>; 2]>,
    at: Vec<Option<u8>>,
    hints: Vec<smallvec::SmallVec<[(VReg, i16); 2]>>,
    /// What calls overwrite while each register lives across them.
    avoid: Vec<Option<Clobbers>>,
    /// By instruction: reads its registers some time after it was issued.
    reads_late: Vec<bool>,
    choice: Choice,
}

/// Instructions for which a register that a memory instruction read is left alone, where there is another: one that wrote it
/// sooner would wait until the memory instruction has read it (11 to 16 cycles).
const REST: u32 = 11;

/// Registers by virtual register without spilling, the general ones below `within`; gives up at the first that finds no place.
pub fn assign_within(f: &MFunction, live: &Live, limit: u32, within: u32, choice: Choice) -> Option<Vec<u8>> {
    let mut a = Assigner::new(f, live, limit, choice);
    for (_, r) in a.start() {
        a.avoid[r.index()] = a.clobbers_across(r)?;
        let at = a.find(r)?;
        let is_general = !a.is_pred(r) && !f.class(r).is_uniform();
        if is_general && u32::from(at) + f.class(r).units() > within {
            return None;
        }
        a.place(r, at);
    }
    Some(a.finish())
}

/// Registers by virtual register, or what must be spilled. `short` registers cannot be spilled.
pub fn assign(
    f: &MFunction,
    live: &Live,
    limit: u32,
    choice: Choice,
    short: &[bool],
) -> Result<Vec<u8>, Vec<VReg>> {
    let mut a = Assigner::new(f, live, limit, choice);
    let order = a.start();
    let mut spills = Vec::new();
    for &(_, r) in &order {
        let is_short = short.get(r.index()) == Some(&true);
        let Some(avoid) = a.clobbers_across(r) else {
            spills.push(r);
            continue;
        };
        a.avoid[r.index()] = avoid;
        if let Some(at) = a.find(r) {
            a.place(r, at);
        } else if f.class(r).is_uniform() {
            return Err(Vec::new());
        } else {
            // The cheapest of those in the way makes room, unless this one is cheaper.
            let own = if is_short { f32::INFINITY } else { a.cost(r) };
            match a.cheapest_in_the_way(r, short) {
                Some((cost, at, victims)) if cost < own => {
                    for v in victims {
                        a.remove(v);
                        spills.push(v);
                    }
                    a.place(r, at);
                }
                _ if !is_short => spills.push(r),
                _ => return Err(Vec::new()),
            }
        }
    }
    if !spills.is_empty() {
        spills.sort();
        return Err(spills);
    }
    Ok(a.finish())
}

/// Registers that copies tie to each register: the other one, and by how many words it stands higher.
fn hints(f: &MFunction) -> Vec<smallvec::SmallVec<[(VReg, i16); 2]>> {
    let mut hints = vec![smallvec::SmallVec::new(); f.classes.len()];
    for b in &f.blocks {
        for i in &b.insts {
            if let Some((to, from)) = i.as_copy() {
                let d = i16::from(from.at) - i16::from(to.at);
                hints[to.reg.index()].push((from.reg, d));
                hints[from.reg.index()].push((to.reg, -d));
            }
        }
    }
    hints
}

/// Which instructions read registers late, by the numbers of live ranges.
fn reads_late(f: &MFunction) -> Vec<bool> {
    let is_late = |i: &MInst| i.op().row().unit == Unit::Lsu;
    f.blocks.iter().flat_map(|b| b.insts.iter().map(is_late).chain([false])).collect()
}

impl<'a> Assigner<'a> {
    fn new(f: &'a MFunction, live: &'a Live, limit: u32, choice: Choice) -> Self {
        let limit = limit.min(isa::Reg::COUNT as u32) as usize;
        Assigner {
            f,
            live,
            general: vec![Occupied::default(); limit],
            preds: vec![Occupied::default(); isa::Pred::COUNT],
            uniform: vec![Occupied::default(); isa::UReg::COUNT],
            owners: None,
            at: vec![None; f.classes.len()],
            hints: hints(f),
            avoid: vec![None; f.classes.len()],
            reads_late: reads_late(f),
            choice,
        }
    }

    /// Places the fixed registers; the others that live, by where they start.
    fn start(&mut self) -> Vec<(u32, VReg)> {
        let (f, live) = (self.f, self.live);
        let mut order: Vec<(u32, VReg)> = Vec::new();
        for n in 0..f.classes.len() {
            let r = VReg::new(n);
            let start = live.units(f, r).filter_map(|u| live.ranges(u).first()).map(|x| x.0).min();
            let Some(start) = start else { continue };
            match f.fixed[n] {
                Some(at) => self.place(r, at),
                None => order.push((start, r)),
            }
        }
        self.at[f.sp.index()] = Some(isa::abi::STACK_POINTER);
        match self.choice {
            Choice::VectorsFirst => order.sort_by_key(|&(start, r)| (Reverse(f.class(r).units()), start, r)),
            _ => order.sort(),
        }
        order
    }

    fn finish(self) -> Vec<u8> {
        self.at.into_iter().map(|at| at.unwrap_or(u8::MAX)).collect()
    }

    fn is_pred(&self, r: VReg) -> bool {
        self.f.class(r) == Class::Pred
    }

    fn file(&self, r: VReg) -> &[Occupied] {
        match self.f.class(r) {
            Class::Pred => &self.preds,
            Class::Uniform | Class::UniformPair => &self.uniform,
            _ => &self.general,
        }
    }

    fn file_mut(&mut self, r: VReg) -> &mut Vec<Occupied> {
        match self.f.class(r) {
            Class::Pred => &mut self.preds,
            Class::Uniform | Class::UniformPair => &mut self.uniform,
            _ => &mut self.general,
        }
    }

    /// What the calls that `r` lives across overwrite, if any; `None` where no register is safe from one of them.
    fn clobbers_across(&self, r: VReg) -> Option<Option<Clobbers>> {
        let mut all: Option<Clobbers> = None;
        if self.f.class(r).is_uniform() {
            return Some(all);
        }
        for &(from, to) in self.live.units(self.f, r).flat_map(|u| self.live.ranges(u)) {
            // Live before the call and after it.
            let n = self.live.calls.partition_point(|c| 2 * c.at < from);
            for call in self.live.calls[n..].iter().take_while(|c| 2 * c.at + 1 < to) {
                all.get_or_insert_default().merge(call.clobbers.as_ref()?);
            }
        }
        Some(all)
    }

    /// Would a call that `r` lives across overwrite it at this place?
    fn is_clobbered(&self, r: VReg, at: usize, units: usize) -> bool {
        let is_pred = self.is_pred(r);
        self.avoid[r.index()].as_ref().is_some_and(|c| (at..at + units).any(|at| c.has(is_pred, at)))
    }

    /// Where each unit of `r` lives.
    fn points(&self, r: VReg) -> smallvec::SmallVec<[Points<'a>; 4]> {
        self.live.units(self.f, r).map(|u| Points::new(self.live.ranges(u))).collect()
    }

    fn fits(&self, r: VReg, at: usize, units: &[Points]) -> bool {
        let file = self.file(r);
        if at + units.len() > file.len() || self.is_clobbered(r, at, units.len()) {
            return false;
        }
        if self.f.class(r).is_uniform() {
            return file[at..at + units.len()].iter().all(Occupied::is_empty);
        }
        if !self.is_pred(r) && self.f.uses_stack {
            let sp = usize::from(isa::abi::STACK_POINTER);
            if (at..at + units.len()).contains(&sp) {
                return false;
            }
        }
        units.iter().zip(&file[at..]).all(|(points, taken)| points.are_free(taken))
    }

    /// The end of a range with the rest that follows it.
    fn rest_end(&self, end: u32) -> u32 {
        let is_late = end % 2 == 1 && self.reads_late.get(end as usize / 2) == Some(&true);
        if is_late { end + 2 * REST } else { end }
    }

    /// Nothing else that lives in the registers is at rest when `r` starts, nor starts while `r` is.
    fn is_rested(&self, r: VReg, at: usize) -> bool {
        let file = self.file(r);
        self.live.units(self.f, r).enumerate().all(|(k, u)| {
            self.live.ranges(u).iter().all(|&(from, to)| {
                let near = (from.saturating_sub(2 * REST), self.rest_end(to));
                file[at + k].last_end(near).is_none_or(|end| self.rest_end(end) <= from)
            })
        })
    }

    fn find(&self, r: VReg) -> Option<u8> {
        let step = self.f.class(r).units() as usize;
        let units = self.points(r);
        for &(other, d) in &self.hints[r.index()] {
            if let Some(at) = self.at[other.index()]
                && let Ok(at) = usize::try_from(i16::from(at) + d)
                && at % step == 0
                && other != self.f.sp
                && self.fits(r, at, &units)
            {
                return Some(at as u8);
            }
        }
        let fits = |at: &usize| self.fits(r, *at, &units);
        let size = self.file(r).len();
        let among = |count: u32| (0..size.min(count as usize)).step_by(step).filter(fits);
        let is_general = matches!(self.f.class(r), Class::Word | Class::Pair | Class::Quad);
        let found = match self.choice {
            Choice::Rested(count) if is_general => among(count).find(|&at| self.is_rested(r, at)),
            // The first of those with the most neighbours.
            Choice::Snug(count) if is_general => {
                among(count).min_by_key(|&at| Reverse(self.neighbours(at, &units)))
            }
            _ => None,
        };
        found.or_else(|| (0..size).step_by(step).find(fits)).map(|at| at as u8)
    }

    /// Registers of the aligned four around a place that others have while a value with these points lives.
    fn neighbours(&self, at: usize, units: &[Points]) -> usize {
        let four = at / 4 * 4..(at / 4 * 4 + 4).min(self.general.len());
        let others = four.filter(|n| !(at..at + units.len()).contains(n));
        let is_taken = |n: &usize| units.iter().any(|points| !points.are_free(&self.general[*n]));
        others.filter(is_taken).count()
    }

    fn place(&mut self, r: VReg, at: u8) {
        self.at[r.index()] = Some(at);
        if r == self.f.sp {
            return;
        }
        let units = self.live.units(self.f, r);
        let live = self.live;
        let file = self.file_mut(r);
        for (k, u) in units.enumerate() {
            // A fixed register past the limit is an argument: it exists all the same.
            if at as usize + k >= file.len() {
                file.resize(at as usize + k + 1, Occupied::default());
            }
            live.ranges(u).iter().for_each(|&range| file[at as usize + k].take(range));
        }
        self.note_owner(r, at);
    }

    fn remove(&mut self, r: VReg) {
        let Some(at) = self.at[r.index()].take() else { return };
        let units = self.live.units(self.f, r);
        let live = self.live;
        let file = self.file_mut(r);
        for (k, u) in units.clone().enumerate() {
            live.ranges(u).iter().for_each(|&range| file[at as usize + k].free(range));
        }
        let file = usize::from(self.is_pred(r));
        if let Some(owners) = &mut self.owners {
            for (k, u) in units.enumerate() {
                for (from, _) in live.ranges(u) {
                    owners[file][at as usize + k].remove(from);
                }
            }
        }
    }

    /// Records whose the register is, where that is kept.
    fn note_owner(&mut self, r: VReg, at: u8) {
        let file = usize::from(self.is_pred(r));
        let units = self.live.units(self.f, r);
        if self.f.class(r).is_uniform() {
            return;
        }
        if let Some(owners) = &mut self.owners {
            let end = at as usize + units.len();
            if owners[file].len() < end {
                owners[file].resize(end, Owners::new());
            }
            for (k, u) in units.enumerate() {
                let ranges = self.live.ranges(u).iter().map(|&(from, to)| (from, (to, r)));
                owners[file][at as usize + k].extend(ranges);
            }
        }
    }

    /// Finds out who lives where.
    fn find_owners(&mut self) {
        if self.owners.is_some() {
            return;
        }
        self.owners = Some([&self.general, &self.preds].map(|file| vec![Owners::new(); file.len()]));
        for n in 0..self.at.len() {
            let r = VReg::new(n);
            if let Some(at) = self.at[n].filter(|_| r != self.f.sp) {
                self.note_owner(r, at);
            }
        }
    }

    /// What a spill of `r` costs for the room it makes.
    fn cost(&self, r: VReg) -> f32 {
        let length: u32 =
            self.live.units(self.f, r).flat_map(|u| self.live.ranges(u)).map(|x| x.1 - x.0).sum();
        self.live.weight[r.index()] / (length as f32 + 1.0)
    }

    /// Where the least would have to go to make room for `r`.
    fn cheapest_in_the_way(&mut self, r: VReg, short: &[bool]) -> Option<(f32, u8, Vec<VReg>)> {
        self.find_owners();
        let step = self.f.class(r).units() as usize;
        let file = &self.owners.as_ref()?[usize::from(self.is_pred(r))];
        let mut best: Option<(f32, u8, Vec<VReg>)> = None;
        for at in (0..file.len()).step_by(step) {
            let units = self.live.units(self.f, r);
            if at + units.len() > file.len() {
                break;
            }
            let sp = usize::from(isa::abi::STACK_POINTER);
            let is_stack = !self.is_pred(r) && self.f.uses_stack && (at..at + units.len()).contains(&sp);
            if is_stack || self.is_clobbered(r, at, units.len()) {
                continue;
            }
            let mut victims: Vec<VReg> = Vec::new();
            for (k, u) in units.enumerate() {
                for &(from, to) in self.live.ranges(u) {
                    let before =
                        file[at + k].range(..from).next_back().filter(|(_, v)| v.0 > from).map(|(_, v)| v.1);
                    victims.extend(before);
                    victims.extend(file[at + k].range(from..to).map(|(_, v)| v.1));
                }
            }
            victims.sort();
            victims.dedup();
            let fixed = |v: &VReg| self.f.fixed[v.index()].is_some() || short.get(v.index()) == Some(&true);
            if victims.iter().any(fixed) {
                continue;
            }
            let cost = victims.iter().map(|&v| self.cost(v)).sum();
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, at as u8, victims));
            }
        }
        best
    }
}
