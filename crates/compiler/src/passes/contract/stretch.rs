//! Stretches: the parts of blocks within which products fuse.

use crate::passes::expand_approx::is_branch;
use ir::{Function, Op, Type};

/// The stretch of every instruction, by instruction; numbers differ between blocks.
pub fn stretches(f: &Function) -> Vec<u32> {
    let mut of = vec![u32::MAX; f.insts.len()];
    let mut current = 0;
    for &b in &f.layout {
        current += 1;
        for &i in &f.block(b).insts {
            of[i.index()] = current;
            if ends_stretch(f, i) {
                current += 1;
            }
        }
    }
    of
}

/// The assembler makes a branch or a call of it, so what follows is another block.
fn ends_stretch(f: &Function, i: ir::InstId) -> bool {
    let inst = f.inst(i);
    let width = inst.args.first().map(|&v| f.ty(v));
    match inst.op {
        Op::Load(_) | Op::Store(_) | Op::Atom(_) | Op::Red(_) | Op::Bar { .. } | Op::Hint(..) => {
            inst.guard.is_some()
        }
        Op::Trap => inst.guard.is_some(),
        Op::Fence { .. } | Op::Call(_) | Op::CallIndirect | Op::Syscall(_) | Op::Brkpt | Op::PmEvent(_) => {
            true
        }
        Op::FDiv { .. } | Op::FRcp { .. } | Op::FSqrt { .. } => true,
        Op::Approx { f, ty, ftz } => is_branch(f, ty, ftz),
        Op::Div { signed } | Op::Rem { signed } => match width {
            Some(Type::B64) => true,
            Some(Type::B32) => signed,
            _ => false,
        },
        _ => false,
    }
}
