//! Convergence points: where lanes that a branch parted wait for each other.
//!
//! A *region* starts at a block that all its lanes run together (BSSY stands at its end) and ends where they meet: the
//! edges from the region to its meeting block go through a *landing* block with BSYNC. The rules that make it safe:
//! 1. Every path from the start comes to the meeting block, or ends the thread.
//! 2. The start dominates the whole region, so nobody arrives who did not announce it.
//! 3. Start and landing are in the same loops, so they alternate.
//!
//! A branch without such a region is left alone: lanes then stay apart, which costs time and changes no result. Waiting is
//! *soft* where other lanes may spin on memory: those that wait go on alone after a while.

use crate::analysis::{Divergence, DomTree, LoopId, Loops, PostDominators, Regions};
use crate::prepare::{block_before, place_before};
use ir::{Block, Function, Op, Space, Terminator, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// Convergence registers of the machine.
const REGISTERS: u8 = isa::BReg::COUNT as u8;

#[derive(Default)]
pub struct Convergence {
    starts: Vec<Vec<(u8, Block, bool)>>,
    meets: Vec<Option<u8>>,
    used: u8,
    /// Blocks that all lanes which run them together leave to the same block.
    together: Vec<bool>,
}

impl Convergence {
    /// Regions that start at the end of `b`: register, landing block, soft.
    pub fn starts(&self, b: Block) -> &[(u8, Block, bool)] {
        self.starts.get(b.index()).map_or(&[], |s| s)
    }

    /// The register whose lanes meet at the start of `b`.
    pub fn meets(&self, b: Block) -> Option<u8> {
        self.meets.get(b.index()).copied().flatten()
    }

    /// Lanes that run `b` together stay together at its end.
    pub fn stays_together(&self, b: Block) -> bool {
        self.together.get(b.index()) == Some(&true)
    }

    /// Registers in use, from 0 on.
    pub fn registers(&self) -> std::ops::Range<u8> {
        0..self.used
    }
}

struct Region {
    start: Block,
    meet: Block,
    register: u8,
    /// A larger one with the same meeting block took its place.
    is_replaced: bool,
}

/// Finds the regions of a function, inserts their landing blocks.
pub fn converge(f: &mut Function) -> Convergence {
    let dom = DomTree::new(f);
    let loops = Loops::new(f, &dom);
    let post = PostDominators::new(f);
    let divergence = Divergence::new(f, &dom, &post);
    let parts = Regions::new(f, &dom);
    let preds = f.predecessors();
    let mut regions = find_regions(f, Finder::new(&dom, &loops, &post, &parts), &divergence);
    assign_registers(f, &parts, &mut regions);
    let spins = Spins::new(f, &loops, &dom, &preds);
    let together = (0..f.blocks.len()).map(|b| !divergence.branch_diverges(Block::new(b))).collect();
    let mut found = Convergence { together, ..Convergence::default() };
    let mut landings: Vec<(Block, Block)> = Vec::new();
    for r in regions.iter().filter(|r| r.register < REGISTERS) {
        let is_inside = |&b: &Block| b == r.start || parts.contains(r.start, r.meet, b);
        let mut froms: Vec<Block> = preds[r.meet.index()].iter().copied().filter(is_inside).collect();
        if froms.is_empty() {
            continue;
        }
        froms.sort_unstable();
        froms.dedup();
        let landing = block_before(f, r.meet, &froms);
        landings.push((r.meet, landing));
        found.starts.resize(f.blocks.len(), Vec::new());
        found.meets.resize(f.blocks.len(), None);
        found.starts[r.start.index()].push((r.register, landing, spins.are_in(r, &loops, &parts)));
        found.meets[landing.index()] = Some(r.register);
        found.used = found.used.max(r.register + 1);
    }
    place_before(f, &landings);
    found
}

/// The regions that lanes of divergent branches need, outer ones first.
fn find_regions(f: &Function, mut finder: Finder, divergence: &Divergence) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let mut by_meet: HashMap<Block, Vec<usize>> = HashMap::new();
    for b in f.reverse_postorder() {
        if !divergence.branch_diverges(b) {
            continue;
        }
        let Some((start, meet)) = finder.region_of(b) else { continue };
        // There is no need to meet in order to end.
        if f.block(meet).insts.is_empty() && f.block(meet).term == Terminator::Exit {
            continue;
        }
        // Lanes that wait for the same place in a region around this one need no second appointment.
        let there = by_meet.entry(meet).or_default();
        let is_known = |&n: &usize| {
            let around: Block = regions[n].start;
            around == start || finder.parts.contains(around, meet, start)
        };
        if !there.iter().any(is_known) {
            there.retain(|&n| {
                regions[n].is_replaced = finder.parts.contains(start, meet, regions[n].start);
                !regions[n].is_replaced
            });
            there.push(regions.len());
            regions.push(Region { start, meet, register: 0, is_replaced: false });
        }
    }
    regions.retain(|r| !r.is_replaced);
    regions
}

/// Gives each region a register that no region around it, inside it or at its start has. Larger regions come first, so that
/// what is left out when registers run out is inside.
fn assign_registers(f: &Function, parts: &Regions, regions: &mut [Region]) {
    // Registers of the regions that a block is in, and of those that start there, as bits.
    let mut around = vec![0u32; f.blocks.len()];
    let mut starting = vec![0u32; f.blocks.len()];
    const ALL: u32 = (1 << REGISTERS) - 1;
    for r in regions {
        let at = r.start.index();
        let mut taken = around[at] | starting[at];
        // Deep inside there is none left, so a block is looked at for as many regions as there are registers.
        if taken != ALL {
            parts.inside(r.start, r.meet).for_each(|b| taken |= starting[b.index()]);
        }
        r.register = taken.trailing_ones().min(u32::from(REGISTERS)) as u8;
        if r.register < REGISTERS {
            starting[at] |= 1 << r.register;
            parts.inside(r.start, r.meet).for_each(|b| around[b.index()] |= 1 << r.register);
        }
    }
}

/// What came of looking for the start of a region with a given meeting block.
#[derive(Clone, Copy)]
enum Search {
    Found(Block),
    /// There is none; a later meeting block may have one.
    Outward,
    Impossible,
}

struct Finder<'a> {
    dom: &'a DomTree,
    loops: &'a Loops,
    post: &'a PostDominators,
    parts: &'a Regions<'a>,
    /// What was found from a block for a meeting block.
    tried: HashMap<(Block, Block), Search>,
}

impl<'a> Finder<'a> {
    fn new(dom: &'a DomTree, loops: &'a Loops, post: &'a PostDominators, parts: &'a Regions<'a>) -> Self {
        Finder { dom, loops, post, parts, tried: HashMap::new() }
    }

    /// Start and meeting block for the lanes that part at the end of `b`.
    fn region_of(&mut self, b: Block) -> Option<(Block, Block)> {
        let mut meet = self.post.ipdom(b)?;
        // Each step goes outward, so there are few.
        for _ in 0..64 {
            match self.start_for(b, meet) {
                Search::Found(start) => return Some((start, meet)),
                Search::Impossible => return None,
                Search::Outward => meet = self.post.ipdom(meet)?,
            }
        }
        None
    }

    /// The first block, from `b` up the dominator tree, at which a region with this meeting block can start.
    fn start_for(&mut self, b: Block, meet: Block) -> Search {
        let mut path = Vec::new();
        let mut at = b;
        let found = loop {
            if let Some(&known) = self.tried.get(&(at, meet)) {
                break known;
            }
            path.push(at);
            let Some(s) = self.before_loops(at, meet) else { break Search::Impossible };
            if !self.post.post_dominates(meet, s) {
                break Search::Outward;
            }
            if self.same_loops(s, meet) && self.parts.is_closed(s, Some(meet)) {
                break Search::Found(s);
            }
            match self.dom.idom(s) {
                Some(up) => at = up,
                None => break Search::Outward,
            }
        };
        self.tried.extend(path.into_iter().map(|s| ((s, meet), found)));
        found
    }

    /// `s`, or the preheader of the outermost loop around it that the meeting block is not in.
    fn before_loops(&self, s: Block, meet: Block) -> Option<Block> {
        let mut at = s;
        while let Some(l) = self.outermost_without(at, meet) {
            at = self.loops.get(l).preheader?;
        }
        Some(at)
    }

    fn outermost_without(&self, s: Block, meet: Block) -> Option<LoopId> {
        let mut found = None;
        let mut at = self.loops.innermost(s);
        while let Some(l) = at {
            if !self.loops.contains(l, meet) {
                found = Some(l);
            }
            at = self.loops.get(l).parent;
        }
        found
    }

    /// No loop has the landing without the start. (A loop whose header is the meeting block is entered after it.)
    fn same_loops(&self, s: Block, meet: Block) -> bool {
        let mut at = self.loops.innermost(meet);
        while let Some(l) = at {
            if !self.loops.contains(l, s) && self.loops.get(l).header != meet {
                return false;
            }
            at = self.loops.get(l).parent;
        }
        true
    }
}

/// Loops that may wait for another thread: an exit depends on memory read in the loop.
struct Spins {
    /// The loop with this header, if it may wait.
    by_header: HashMap<Block, LoopId>,
    /// Headers of such loops before each place in the preorder of the dominator tree.
    before: Vec<u32>,
}

impl Spins {
    fn new(f: &Function, loops: &Loops, dom: &DomTree, preds: &[SmallVec<[Block; 2]>]) -> Self {
        let mut home: Vec<Option<Block>> = vec![None; f.insts.len()];
        for &b in &f.layout {
            f.block(b).insts.iter().for_each(|i| home[i.index()] = Some(b));
        }
        let all = (0..loops.loops.len()).map(LoopId);
        let by_header: HashMap<Block, LoopId> = all
            .filter(|&id| may_spin(f, loops, id, &home, preds))
            .map(|id| (loops.get(id).header, id))
            .collect();
        let mut before = vec![0];
        for (n, b) in dom.preorder().iter().enumerate() {
            before.push(before[n] + u32::from(by_header.contains_key(b)));
        }
        Spins { by_header, before }
    }

    /// Lanes that wait at the end of the region may do so for others that wait in it.
    fn are_in(&self, r: &Region, loops: &Loops, parts: &Regions) -> bool {
        let around = self.by_header.get(&r.meet).is_some_and(|&l| loops.contains(l, r.start));
        let inside: u32 = parts
            .parts(r.start, Some(r.meet))
            .into_iter()
            .map(|range| self.before[range.end] - self.before[range.start])
            .sum();
        around || inside > u32::from(self.by_header.contains_key(&r.start))
    }
}

fn may_spin(
    f: &Function,
    loops: &Loops,
    id: LoopId,
    home: &[Option<Block>],
    preds: &[SmallVec<[Block; 2]>],
) -> bool {
    let mut seen: HashSet<Value> = HashSet::new();
    let mut work: Vec<Value> = Vec::new();
    for &(from, _) in &loops.get(id).exits {
        match f.block(from).term {
            Terminator::Branch { cond: v, .. } | Terminator::Switch { index: v, .. } => work.push(v),
            _ => {}
        }
    }
    // Which memory a loop-carried value came from matters no less: parameters are followed to their arguments.
    while let Some(v) = work.pop() {
        if !seen.insert(v) {
            continue;
        }
        match f.def(v) {
            ir::ValueDef::Inst(i, _) if home[i.index()].is_some_and(|b| loops.contains(id, b)) => {
                let reads = match f.inst(i).op {
                    Op::Load(a) => !matches!(a.space, Space::Param | Space::Const | Space::Local),
                    Op::Atom(_) | Op::Call(_) | Op::CallIndirect => true,
                    _ => false,
                };
                if reads {
                    return true;
                }
                work.extend(f.inst_values(i));
            }
            ir::ValueDef::BlockParam(b, k) if loops.contains(id, b) => {
                for &p in preds[b.index()].iter().filter(|&&p| loops.contains(id, p)) {
                    let calls = f.block(p).term.calls();
                    work.extend(calls.iter().filter(|c| c.block == b).map(|c| c.args[k as usize]));
                }
            }
            _ => {}
        }
    }
    false
}
