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

use crate::analysis::{Divergence, DomTree, LoopId, Loops, PostDominators};
use crate::prepare::insert_before;
use ir::{Block, Function, Op, Space, Terminator, Value};
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
    /// Members, ascending; neither start nor meeting block.
    inside: Vec<Block>,
    register: u8,
    /// A larger one with the same meeting block took its place.
    is_replaced: bool,
}

impl Region {
    fn contains(&self, b: Block) -> bool {
        self.inside.binary_search(&b).is_ok()
    }
}

/// Finds the regions of a function, inserts their landing blocks.
pub fn converge(f: &mut Function) -> Convergence {
    let dom = DomTree::new(f);
    let loops = Loops::new(f, &dom);
    let post = PostDominators::new(f);
    let divergence = Divergence::new(f, &post);
    let mut regions: Vec<Region> = Vec::new();
    let mut by_meet: HashMap<Block, Vec<usize>> = HashMap::new();
    {
        let finder = Finder { f, dom: &dom, loops: &loops, post: &post };
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
            let known = there.iter().any(|&n| {
                let r: &Region = &regions[n];
                r.start == start || r.contains(start)
            });
            if !known {
                let new = Region {
                    start,
                    meet,
                    inside: finder.inside(start, meet),
                    register: 0,
                    is_replaced: false,
                };
                there.retain(|&n| {
                    regions[n].is_replaced = new.contains(regions[n].start);
                    !regions[n].is_replaced
                });
                there.push(regions.len());
                regions.push(new);
            }
        }
    }
    regions.retain(|r| !r.is_replaced);
    assign_registers(f, &mut regions);
    let spins = spinning_loops(f, &loops);
    let together = (0..f.blocks.len()).map(|b| !divergence.branch_diverges(Block::new(b))).collect();
    let mut found = Convergence { together, ..Convergence::default() };
    for r in regions.iter().filter(|r| r.register < REGISTERS) {
        let soft = spins.iter().any(|&l| {
            let header = loops.get(l).header;
            r.contains(header) || (header == r.meet && loops.contains(l, r.start))
        });
        let mut froms: Vec<Block> = std::iter::once(&r.start)
            .chain(&r.inside)
            .copied()
            .filter(|&b| f.block(b).term.calls().iter().any(|c| c.block == r.meet))
            .collect();
        if froms.is_empty() {
            continue;
        }
        froms.sort_unstable();
        let landing = insert_before(f, r.meet, &froms);
        found.starts.resize(f.blocks.len(), Vec::new());
        found.meets.resize(f.blocks.len(), None);
        found.starts[r.start.index()].push((r.register, landing, soft));
        found.meets[landing.index()] = Some(r.register);
        found.used = found.used.max(r.register + 1);
    }
    found
}

/// Gives each region a register that no region around it, inside it or at its start has. Larger regions come first, so that
/// what is left out when registers run out is inside.
fn assign_registers(f: &Function, regions: &mut [Region]) {
    // Registers of the regions that a block is in, and of those that start there, as bits.
    let mut around = vec![0u32; f.blocks.len()];
    let mut starting = vec![0u32; f.blocks.len()];
    for r in regions {
        let at = r.start.index();
        let taken = r.inside.iter().fold(around[at] | starting[at], |t, b| t | starting[b.index()]);
        r.register = taken.trailing_ones().min(u32::from(REGISTERS)) as u8;
        if r.register < REGISTERS {
            starting[at] |= 1 << r.register;
            r.inside.iter().for_each(|b| around[b.index()] |= 1 << r.register);
        }
    }
}

struct Finder<'a> {
    f: &'a Function,
    dom: &'a DomTree,
    loops: &'a Loops,
    post: &'a PostDominators,
}

impl Finder<'_> {
    /// Start and meeting block for the lanes that part at the end of `b`.
    fn region_of(&self, b: Block) -> Option<(Block, Block)> {
        let mut meet = self.post.ipdom(b)?;
        // Each step goes outward, so there are few.
        for _ in 0..64 {
            let mut start = Some(b);
            while let Some(s) = start {
                let s = self.before_loops(s, meet)?;
                if !self.post_dominates(meet, s) {
                    break;
                }
                if self.same_loops(s, meet) && self.dominates_region(s, meet) {
                    return Some((s, meet));
                }
                start = self.dom.idom(s);
            }
            meet = self.post.ipdom(meet)?;
        }
        None
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

    fn post_dominates(&self, meet: Block, s: Block) -> bool {
        let mut at = self.post.ipdom(s);
        while let Some(p) = at {
            if p == meet {
                return true;
            }
            at = self.post.ipdom(p);
        }
        false
    }

    fn inside(&self, start: Block, meet: Block) -> Vec<Block> {
        let mut inside = HashSet::new();
        let mut stack: Vec<Block> = self.f.successors(start).to_vec();
        while let Some(b) = stack.pop() {
            if b != meet && b != start && inside.insert(b) {
                stack.extend(self.f.successors(b));
            }
        }
        let mut inside: Vec<Block> = inside.into_iter().collect();
        inside.sort_unstable();
        inside
    }

    fn dominates_region(&self, start: Block, meet: Block) -> bool {
        // The start itself may be met again only through the meeting block.
        self.inside(start, meet)
            .iter()
            .all(|&b| self.dom.dominates(start, b) && !self.f.successors(b).contains(&start))
    }
}

/// Loops that may wait for another thread: an exit depends on memory read in the loop.
fn spinning_loops(f: &Function, loops: &Loops) -> Vec<LoopId> {
    let mut home: Vec<Option<Block>> = vec![None; f.insts.len()];
    for &b in &f.layout {
        f.block(b).insts.iter().for_each(|i| home[i.index()] = Some(b));
    }
    let mut found = Vec::new();
    for n in 0..loops.loops.len() {
        let id = LoopId(n);
        let mut seen = HashSet::new();
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
                        found.push(id);
                        break;
                    }
                    work.extend(f.inst_values(i));
                }
                ir::ValueDef::BlockParam(b, k) if loops.contains(id, b) => {
                    for &p in &loops.get(id).blocks {
                        for call in f.block(p).term.calls() {
                            if call.block == b {
                                work.push(call.args[k as usize]);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }
    found
}
