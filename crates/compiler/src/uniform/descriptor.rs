//! The descriptor of global memory, which global and generic accesses name.

use super::{Dominators, File, home, insert, uniform_load};
use crate::mir::{Class, MFunction, MInst, Sub};
use isa::field::Field;
use isa::{Op, abi};

fn names_it(i: &MInst) -> bool {
    let op =
        matches!(i.op(), Op::Ldg | Op::Stg | Op::Ld | Op::St | Op::Atomg | Op::Atom | Op::Redg | Op::Red);
    op && i.inst.flag(Field::E64)
}

pub(super) fn load(f: &mut MFunction, dominators: &Dominators, file: &mut File) {
    let blocks = (0..f.blocks.len()).filter(|&b| f.blocks[b].insts.iter().any(names_it));
    let Some(at) = home(f, dominators, blocks) else { return };
    let Some(reg) = file.take(f, Class::UniformPair) else { return };
    for i in f.blocks.iter_mut().flat_map(|b| &mut b.insts).filter(|i| names_it(i)) {
        i.ur = Some(Sub { reg, at: 0 });
    }
    let i = uniform_load(reg, Class::UniformPair, abi::BANK_LAUNCH, abi::launch::GLOBAL_DESCRIPTOR);
    insert(f, at, i);
}
