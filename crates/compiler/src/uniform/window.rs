//! Addresses in the CTA's part of shared memory.
//!
//! The parts of a cluster's CTAs follow each other in one window, so an address of a CTA's own part is made from its rank in
//! the cluster.

use super::{Dominators, home, insert};
use crate::mir::{Class, MFunction, MInst, MSrc, Sub, VReg};
use isa::field::Field;
use isa::{Op, Special};

/// Uniform registers beyond those of the addresses: the rank, the place, sums of it.
pub(super) const MORE_REGISTERS: u32 = 8;
/// The bit of a shared address where the rank starts.
const RANK_SHIFT: u32 = 24;

pub(super) fn make(f: &mut MFunction, dominators: &Dominators) {
    let read_in = |f: &MFunction, reg: VReg| {
        let reads = |i: &MInst| {
            let mut reads = false;
            i.for_each_read(|s, _| reads |= s.reg == reg);
            reads
        };
        (0..f.blocks.len()).filter(|&b| f.blocks[b].insts.iter().any(reads)).collect::<Vec<_>>()
    };
    let windows = f.windows.clone();
    let mut homes: Vec<(u32, VReg, usize)> = Vec::new();
    for (at, reg) in windows {
        if let Some(block) = home(f, dominators, read_in(f, reg).into_iter()) {
            homes.push((at, reg, block));
        }
    }
    // What nobody reads but to have it in a general register is made there.
    let (moved, homes): (Vec<_>, Vec<_>) = homes.into_iter().partition(|h| only_moved(f, h.1));
    make_general(f, dominators, &moved);
    let Some(top) = home(f, dominators, homes.iter().map(|h| h.2)) else { return };
    let uniform = |f: &mut MFunction| Sub { reg: f.new_reg(Class::Uniform), at: 0 };
    let (rank, start) = (uniform(f), uniform(f));
    for (at, reg, block) in homes {
        let mut place = start;
        let mut sum = None;
        if at != 0 {
            place = uniform(f);
            sum = Some(MInst::new(Op::Uiadd3).dst(place).a(MSrc::uniform(start)).b(MSrc::imm(at)));
        }
        let lea = MInst::new(Op::Ulea).dst(Sub { reg, at: 0 }).a(MSrc::uniform(rank)).b(MSrc::uniform(place));
        insert(f, block, lea.num(Field::Shift, RANK_SHIFT));
        if let Some(sum) = sum {
            insert(f, block, sum);
        }
    }
    // An immediate of its own, though it is zero.
    let zero = MSrc { src: isa::Src::imm(0), reg: None };
    insert(f, top, MInst::new(Op::Umov).dst(start).b(zero));
    insert(f, top, MInst::new(Op::S2ur).dst(rank).num(Field::Sr, Special::ClusterCtaRank as u32));
}

/// All that is done with a uniform register is to move it to a general one.
fn only_moved(f: &MFunction, reg: VReg) -> bool {
    f.blocks.iter().flat_map(|b| &b.insts).all(|i| {
        let mut reads = false;
        i.for_each_read(|s, _| reads |= s.reg == reg);
        !reads || i.op() == Op::Mov && !i.is_guarded()
    })
}

/// Makes addresses in general registers, and the moves of `windows` copies of these.
fn make_general(f: &mut MFunction, dominators: &Dominators, windows: &[(u32, VReg, usize)]) {
    let Some(top) = home(f, dominators, windows.iter().map(|h| h.2)) else { return };
    let word = |f: &mut MFunction| Sub { reg: f.new_reg(Class::Word), at: 0 };
    let rank = word(f);
    for &(at, reg, block) in windows {
        let (address, place) = (word(f), word(f));
        for i in f.blocks.iter_mut().flat_map(|b| &mut b.insts) {
            if i.op() == Op::Mov && i.src[1].reg.is_some_and(|s| s.reg == reg) {
                i.src[1] = MSrc::reg(address);
            }
        }
        let lea = MInst::new(Op::Lea).dst(address).a(MSrc::reg(rank)).b(MSrc::reg(place));
        insert(f, block, lea.num(Field::Shift, RANK_SHIFT));
        insert(f, block, MInst::new(Op::Mov).dst(place).b(MSrc { src: isa::Src::imm(at), reg: None }));
    }
    insert(f, top, MInst::new(Op::S2r).dst(rank).num(Field::Sr, Special::ClusterCtaRank as u32));
}
