//! The dependences between the instructions of a region: which must come before which, and by how many cycles.
//!
//! Registers are followed word by word. Virtual registers that are tied to a physical one share its words, since two of
//! them may be tied to the same. Memory is followed by space; two accesses through the same value of the same address register
//! are apart where their offsets say so.

use super::effects::{Spaces, Touches, access_bytes};
use super::latency::{Need, latency, reading};
use crate::mir::{Class, MFunction, MInst, MSrc, Sub, VReg};
use smallvec::SmallVec;

/// Where each word and each predicate is kept in tables by number.
pub struct Units {
    first: Vec<u32>,
    classes: Vec<Class>,
    pub count: usize,
    /// Which count of living values each takes part in.
    pub file: Vec<File>,
}

/// A register file whose size bounds how many values may live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum File {
    General,
    Preds,
    /// Nothing comes near the size of the others.
    Other,
}

impl File {
    fn of(class: Class) -> File {
        if matches!(class, Class::Word | Class::Pair | Class::Quad) {
            File::General
        } else if class == Class::Pred {
            File::Preds
        } else {
            File::Other
        }
    }
}

impl Units {
    pub fn new(f: &MFunction) -> Units {
        // Fixed registers come first, by their physical number: general ones, then predicates.
        let general = isa::Reg::COUNT as u32 + 1;
        let fixed = general + isa::Pred::COUNT as u32 + 1;
        let mut first = Vec::with_capacity(f.classes.len());
        let mut file = vec![File::General; general as usize];
        file.resize(fixed as usize, File::Preds);
        for (class, at) in f.classes.iter().zip(&f.fixed) {
            match at {
                Some(at) if *class == Class::Pred => first.push(general + u32::from(*at)),
                Some(at) => first.push(u32::from(*at)),
                None => {
                    first.push(file.len() as u32);
                    file.extend((0..class.units()).map(|_| File::of(*class)));
                }
            }
        }
        Units { first, classes: f.classes.clone(), count: file.len(), file }
    }

    pub fn of(&self, s: Sub, width: u32) -> std::ops::Range<u32> {
        let first = self.first[s.reg.index()] + u32::from(s.at);
        first..first + width
    }

    pub fn all_of(&self, r: VReg) -> std::ops::Range<u32> {
        self.of(Sub { reg: r, at: 0 }, self.classes[r.index()].units())
    }

    /// Calls `f` on every unit that an instruction writes.
    pub fn for_each_write(&self, i: &MInst, mut f: impl FnMut(u32)) {
        if let Some((s, width)) = i.written() {
            self.of(s, width).for_each(&mut f);
        }
        i.pd.iter().flatten().for_each(|&p| self.all_of(p).for_each(&mut f));
        i.call.iter().flat_map(|c| &c.defs).for_each(|&r| self.all_of(r).for_each(&mut f));
    }

    /// Calls `f` on every unit that did not live before an instruction wrote it.
    pub fn for_each_made(&self, i: &MInst, mut f: impl FnMut(u32)) {
        self.for_each_write(i, |u| {
            if !i.is_guarded() || self.is_fresh(i, u) {
                f(u);
            }
        });
    }

    /// The unit is a predicate that a guarded instruction writes and nobody reads who finds the old one.
    fn is_fresh(&self, i: &MInst, unit: u32) -> bool {
        i.fresh_preds && i.pd.iter().flatten().any(|&p| self.all_of(p).contains(&unit))
    }

    /// Calls `f` on every unit that an instruction reads; a guarded one reads what it may leave as it was.
    pub fn for_each_read(&self, i: &MInst, mut f: impl FnMut(u32)) {
        i.for_each_read(|s, width| self.of(s, width).for_each(&mut f));
        i.for_each_pred_read(|p| self.all_of(p).for_each(&mut f));
        if i.is_guarded() {
            self.for_each_write(i, |u| {
                if !self.is_fresh(i, u) {
                    f(u);
                }
            });
        }
        i.call.iter().flat_map(|c| &c.uses).for_each(|&r| self.all_of(r).for_each(&mut f));
    }
}

/// What a region's instruction needs from another: which one and after how many cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u32,
    pub cycles: u32,
}

/// The dependences of a region, and what its instructions read and write.
pub struct Graph {
    edges: Vec<Edge>,
    edges_end: Vec<u32>,
    /// Units that live no longer above an instruction, and units that live above it.
    units: Vec<u32>,
    units_end: Vec<(u32, u32)>,
}

impl Graph {
    pub fn len(&self) -> usize {
        self.edges_end.len()
    }

    /// What must come before instruction `n`.
    pub fn before(&self, n: usize) -> &[Edge] {
        let start = if n == 0 { 0 } else { self.edges_end[n - 1] };
        &self.edges[start as usize..self.edges_end[n] as usize]
    }

    /// Units made by instruction `n`, and units it reads.
    pub fn made_and_read(&self, n: usize) -> (&[u32], &[u32]) {
        let start = if n == 0 { 0 } else { self.units_end[n - 1].1 };
        let (made, read) = self.units_end[n];
        (&self.units[start as usize..made as usize], &self.units[made as usize..read as usize])
    }
}

/// An address that can be compared with others: the words of the base with the number of their writes so far, and bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    base: SmallVec<[(u32, u32); 4]>,
    from: i64,
    to: i64,
}

impl Address {
    /// No byte is in both.
    fn is_apart(&self, other: &Address) -> bool {
        self.base == other.base && (self.to <= other.from || other.to <= self.from)
    }
}

/// An instruction that touches memory.
struct Access {
    node: u32,
    touches: Touches,
    address: Option<Address>,
}

impl Access {
    fn may_meet(&self, other: &Access) -> bool {
        match (&self.address, &other.address) {
            (Some(a), Some(b)) => !a.is_apart(b),
            _ => true,
        }
    }
}

/// Accesses that are remembered one by one; with more the next store closes them all.
const REMEMBERED: usize = 96;

/// Builds graphs; keeps its tables from region to region.
pub struct Builder {
    last_write: Vec<u32>,
    writes: Vec<u32>,
    readers: Vec<SmallVec<[u32; 4]>>,
    touched: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;

impl Builder {
    pub fn new(units: &Units) -> Builder {
        Builder {
            last_write: vec![NOBODY; units.count],
            writes: vec![0; units.count],
            readers: vec![SmallVec::new(); units.count],
            touched: Vec::new(),
        }
    }

    pub fn build(&mut self, units: &Units, insts: &[MInst]) -> Graph {
        let mut graph = Graph {
            edges: Vec::new(),
            edges_end: Vec::with_capacity(insts.len()),
            units: Vec::new(),
            units_end: Vec::with_capacity(insts.len()),
        };
        let mut stores: Vec<Access> = Vec::new();
        let mut loads: Vec<Access> = Vec::new();
        let mut last_lanes = NOBODY;
        for (n, i) in insts.iter().enumerate() {
            let n = n as u32;
            let touches = Touches::of(i);
            let first_edge = graph.edges.len();
            let access = Access { node: n, touches, address: self.address(units, i, touches) };
            let edges = &mut graph.edges;
            let guard = i.guard.reg.map(|p| units.all_of(p));
            units.for_each_read(i, |u| {
                let writer = self.last_write[u as usize];
                let need = match units.file[u as usize] {
                    File::Preds if guard.as_ref().is_some_and(|g| g.contains(&u)) => Need::Guard,
                    File::Preds => Need::Predicate,
                    _ => Need::Register,
                };
                if writer != NOBODY {
                    let cycles = latency(&insts[writer as usize], i, need);
                    edges.push(Edge { from: writer, cycles });
                }
            });
            if touches.is_memory() {
                memory_edges(&mut stores, &mut loads, access, edges);
            }
            if touches.lanes {
                if last_lanes != NOBODY {
                    edges.push(Edge { from: last_lanes, cycles: 1 });
                }
                last_lanes = n;
            }
            units.for_each_write(i, |u| {
                let u = u as usize;
                if self.last_write[u] != NOBODY {
                    edges.push(Edge { from: self.last_write[u], cycles: 1 });
                }
                let behind = |from: u32| Edge { from, cycles: reading(insts[from as usize].op()) };
                edges.extend(self.readers[u].drain(..).map(behind));
            });
            self.note(units, i, n);
            dedup(&mut graph.edges, first_edge);
            graph.edges_end.push(graph.edges.len() as u32);
            note_units(units, i, &mut graph);
        }
        for u in self.touched.drain(..) {
            let u = u as usize;
            self.last_write[u] = NOBODY;
            self.writes[u] = 0;
            self.readers[u].clear();
        }
        graph
    }

    /// Remembers what an instruction read and wrote.
    fn note(&mut self, units: &Units, i: &MInst, n: u32) {
        units.for_each_write(i, |u| {
            self.touched.push(u);
            self.last_write[u as usize] = n;
            self.writes[u as usize] += 1;
        });
        units.for_each_read(i, |u| {
            self.touched.push(u);
            // What this instruction wrote is ordered by that already.
            if self.last_write[u as usize] != n {
                self.readers[u as usize].push(n);
            }
        });
    }

    fn address(&self, units: &Units, i: &MInst, touches: Touches) -> Option<Address> {
        let bytes = access_bytes(i).filter(|_| touches.is_plain)?;
        // An offset that depends on the size of the frame is known only to itself.
        if i.frame.is_some() || (i.src[0].reg.is_none() && !i.src[0].is_zero()) {
            return None;
        }
        let base = address_units(units, i).map(|u| (u, self.writes[u as usize])).collect();
        let offset = i64::from(i.src[1].imm_bits()? as i32);
        Some(Address { base, from: offset, to: offset + i64::from(bytes) })
    }
}

/// Units that make up the address of a load or store, beside its offset.
pub fn address_units(units: &Units, i: &MInst) -> impl Iterator<Item = u32> {
    // All that it reads but the data it stores.
    let mut address = MInst { call: None, ..i.clone() };
    address.src[2] = MSrc::ZERO;
    let mut found: SmallVec<[u32; 4]> = SmallVec::new();
    address.for_each_read(|s, width| found.extend(units.of(s, width)));
    found.into_iter()
}

/// Orders an access behind the earlier ones it may meet.
fn memory_edges(stores: &mut Vec<Access>, loads: &mut Vec<Access>, access: Access, edges: &mut Vec<Edge>) {
    let Touches { reads, writes, .. } = access.touches;
    let mut behind = |earlier: &Access| edges.push(Edge { from: earlier.node, cycles: 1 });
    let touched =
        |earlier: &Access| earlier.touches.writes.meets(reads) || earlier.touches.writes.meets(writes);
    stores.iter().filter(|s| touched(s) && s.may_meet(&access)).for_each(&mut behind);
    if writes == Spaces::NONE {
        loads.push(access);
        return;
    }
    let overwritten = |l: &&Access| l.touches.reads.meets(writes) && l.may_meet(&access);
    loads.iter().filter(overwritten).for_each(&mut behind);
    if writes == Spaces::ALL {
        stores.clear();
        loads.clear();
    } else if stores.len() + loads.len() > REMEMBERED {
        // Too many to compare one by one: this one stands behind all of them, and all that follow behind it.
        stores.drain(..).for_each(|s| behind(&s));
        loads.drain(..).for_each(|l| behind(&l));
        let touches = Touches { writes: Spaces::ALL, ..access.touches };
        stores.push(Access { touches, address: None, ..access });
        return;
    }
    stores.push(access);
}

/// One edge from each instruction, the longest.
fn dedup(edges: &mut Vec<Edge>, first: usize) {
    edges[first..].sort_unstable_by_key(|e| (e.from, std::cmp::Reverse(e.cycles)));
    let mut kept = first;
    for k in first..edges.len() {
        if kept == first || edges[kept - 1].from != edges[k].from {
            edges[kept] = edges[k];
            kept += 1;
        }
    }
    edges.truncate(kept);
}

fn note_units(units: &Units, i: &MInst, graph: &mut Graph) {
    let all = &mut graph.units;
    units.for_each_made(i, |u| all.push(u));
    let made = all.len();
    units.for_each_read(i, |u| {
        if !all[made..].contains(&u) {
            all.push(u);
        }
    });
    graph.units_end.push((made as u32, all.len() as u32));
}
