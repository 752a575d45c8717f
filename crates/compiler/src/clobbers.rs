//! Which registers a function overwrites. Its callers keep what lives across the call in the others, so a call of a
//! small routine costs its callers nothing but the call.

use crate::allocate::Allocation;
use crate::mir::{Class, MFunction};

/// Registers that a function and all it calls write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Clobbers {
    general: [u64; 4],
    preds: u64,
}

impl Clobbers {
    /// What `f` overwrites; `None` where it calls something of which that is not known.
    pub fn of(f: &MFunction, a: &Allocation) -> Option<Clobbers> {
        let mut all = Clobbers::default();
        for i in f.blocks.iter().flat_map(|b| &b.insts) {
            if let Some((s, width)) = i.written()
                && s.reg != f.sp
                && !f.class(s.reg).is_uniform()
            {
                let first = u32::from(a.registers[s.reg.index()]) + u32::from(s.at);
                (first..first + width).for_each(|at| all.insert(f.class(s.reg), at as usize));
            }
            for p in i.pd.iter().flatten() {
                all.insert(Class::Pred, a.registers[p.index()].into());
            }
            if let Some(call) = &i.call {
                all.merge(call.clobbers.as_ref()?);
            }
        }
        Some(all)
    }

    fn insert(&mut self, class: Class, at: usize) {
        if class == Class::Pred {
            self.preds |= 1 << (at & 63);
        } else if let Some(word) = self.general.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub fn merge(&mut self, other: &Clobbers) {
        self.general.iter_mut().zip(other.general).for_each(|(x, y)| *x |= y);
        self.preds |= other.preds;
    }

    /// Does the register at this place of its file change?
    pub fn has(&self, is_pred: bool, at: usize) -> bool {
        let word = if is_pred { self.preds } else { self.general.get(at / 64).copied().unwrap_or(u64::MAX) };
        word >> (at % 64) & 1 != 0
    }
}
