//! What policies want to know of a program's instructions.

use super::grant::Step;
use super::spec::Accesses;
use isa::field::{Cache, Field, Order};
use isa::image::Image;
use isa::{Inst, Op};

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Waits for the grant.
    pub is_access: bool,
    pub step: Step,
    /// Regions of divergent control flow around it.
    pub nesting: u8,
    pub calls: bool,
    pub returns: bool,
}

/// A program, by place in its code.
#[derive(Clone, Debug, Default)]
pub struct Program {
    rows: Vec<Row>,
}

fn step(i: &Inst) -> Step {
    let has = |f: Field| i.op.row().fields.contains(&f) && i.field(f) != 0;
    if has(Field::PhaseStep) {
        Step::Phase
    } else if has(Field::TexStep) {
        Step::Tex
    } else {
        Step::None
    }
}

/// A load that may be answered by the first-level cache.
fn is_cached_load(i: &Inst) -> bool {
    i.op == Op::Ldg && i.get::<Order>() == Order::Weak && !matches!(i.get(), Cache::Cv | Cache::Cg)
}

impl Program {
    pub fn new(image: &Image, accesses: Accesses) -> Program {
        let mut rows: Vec<Row> = image
            .code
            .iter()
            .map(|i| Row {
                step: step(i),
                calls: matches!(i.op, Op::Call | Op::Callx),
                returns: i.op == Op::Ret,
                ..Row::default()
            })
            .collect();
        // Loads without phases would hold each other up for as long as their CTAs run.
        let loads = accesses == Accesses::Loads
            && image.code.iter().zip(&rows).any(|(i, r)| i.op == Op::Ldg && r.step != Step::None);
        for (row, i) in rows.iter_mut().zip(&image.code) {
            row.is_access = match i.op {
                Op::Tex | Op::Tld4 => accesses != Accesses::None,
                _ => loads && is_cached_load(i),
            };
        }
        // Lanes that part behind a BSSY meet at its target: what lies between is one region deeper.
        for (n, i) in image.code.iter().enumerate() {
            if i.op == Op::Bssy
                && let Some(to) = i.target()
                && let Some(inside) = rows.get_mut(n + 1..(to as usize).max(n + 1))
            {
                inside.iter_mut().for_each(|r| r.nesting = r.nesting.saturating_add(1));
            }
        }
        Program { rows }
    }

    #[inline(always)]
    pub fn row(&self, pc: u32) -> Row {
        self.rows.get(pc as usize).copied().unwrap_or_default()
    }
}
