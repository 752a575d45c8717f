//! Operand modifiers of operations that do not apply them themselves: the operands go through scratch rows first.

use super::bodies;
use crate::lanes::{Lanes, Pair, Row};
use crate::uop::{ROW, Uop};
use arith::fp64;
use isa::field::{Field, From};
use isa::{Inst, Op, Role, Unit};

/// How a source's sign is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Two's complement.
    Int,
    Int64,
    /// Bitwise complement.
    Not,
    F32,
    F64,
    /// Both halves.
    F16x2,
}

/// One source to change: from which row to which, and how.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub from: u32,
    pub to: u32,
    pub kind: Kind,
    pub neg: bool,
    pub abs: bool,
}

/// An instruction behind changed sources.
#[derive(Clone, Debug)]
pub struct Modified {
    pub changes: Vec<Change>,
    pub inner: Uop,
}

/// Whether the operation's own body deals with modifiers.
pub fn is_inline(i: &Inst) -> bool {
    let op = i.op;
    let row = op.row();
    let single = matches!(op, Op::Fadd | Op::Fmul | Op::Ffma | Op::Fsetp | Op::Fmnmx | Op::Fchk | Op::Ftestp);
    single
        || op == Op::Iadd3
        || (op == Op::Mufu && i.field(Field::Mufu) < 10)
        || row.roles.iter().any(|r| matches!(r, Role::Addr | Role::CAddr | Role::Target))
}

pub fn kind(i: &Inst, role: Role) -> Kind {
    let wide = i.width(role) == 2;
    match i.op.row().unit {
        _ if matches!(i.op, Op::Lop3 | Op::Ulop3) => Kind::Not,
        Unit::Fp64 => Kind::F64,
        Unit::Half if i.op != Op::F2fp => Kind::F16x2,
        _ if i.op == Op::F2fp => Kind::F32,
        _ if i.op == Op::Mufu => Kind::F16x2,
        _ if matches!(i.op, Op::F2f | Op::F2i) => match i.get::<From>() {
            From::F64 => Kind::F64,
            From::F32 | From::Tf32 => Kind::F32,
            _ => Kind::F16x2,
        },
        _ if wide => Kind::Int64,
        _ => Kind::Int,
    }
}

fn change(kind: Kind, neg: bool, abs: bool, x: u64) -> u64 {
    let signs = match kind {
        Kind::F32 => 0x8000_0000,
        Kind::F16x2 => 0x8000_8000,
        _ => 0,
    };
    match kind {
        Kind::Int => {
            let x = if abs { (x as u32 as i32).wrapping_abs() } else { x as u32 as i32 };
            u64::from(if neg { x.wrapping_neg() } else { x } as u32)
        }
        Kind::Int64 => {
            let x = if abs { (x as i64).wrapping_abs() } else { x as i64 };
            (if neg { x.wrapping_neg() } else { x }) as u64
        }
        Kind::Not => {
            if neg {
                !x
            } else {
                x
            }
        }
        Kind::F64 => {
            let x = if abs { fp64::abs_operand(x) } else { x };
            if neg { fp64::neg_operand(x) } else { x }
        }
        Kind::F32 | Kind::F16x2 => {
            let x = if abs { x & !signs } else { x };
            if neg { x ^ signs } else { x }
        }
    }
}

/// Fills the scratch rows.
///
/// # Safety
/// As [`crate::uop::Handler`].
unsafe fn prepare(l: &mut Lanes, changes: &[Change]) {
    for c in changes {
        // SAFETY: the decoder made these rows.
        unsafe {
            if matches!(c.kind, Kind::F64 | Kind::Int64) {
                let x = Pair::at(l, c.from);
                let (mut low, mut high): (Row, Row) = ([0; 32], [0; 32]);
                for i in 0..32 {
                    let r = change(c.kind, c.neg, c.abs, x.get(i));
                    (low[i], high[i]) = (r as u32, (r >> 32) as u32);
                }
                *l.row(c.to) = low;
                *l.row(c.to + ROW) = high;
            } else {
                let x = *l.row(c.from);
                let to = &mut *l.row(c.to);
                for i in 0..32 {
                    to[i] = change(c.kind, c.neg, c.abs, u64::from(x[i])) as u32;
                }
            }
        }
    }
}

bodies! {
    /// `imm` is the place in the kernel's list; operations with an address or a target never come here.
    Run |l, u| {
        let modified = &(&(*l.kernel).modified)[u.imm as usize];
        prepare(l, &modified.changes);
        (modified.inner.handler)(l, &modified.inner)
    };
}
