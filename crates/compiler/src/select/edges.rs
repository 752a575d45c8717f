//! Block arguments: copies that happen at once, put into an order.

use super::{Result, Selector};
use crate::mir::{MSrc, PSrc, Sub, VReg};
use ir::{BlockCall, Type};

impl Selector<'_> {
    /// Copies the arguments of a jump to the parameters of its target.
    pub(super) fn pass_arguments(&mut self, call: &BlockCall) -> Result<()> {
        let params = &self.f.block(call.block).params;
        let mut words: Vec<(Sub, MSrc)> = Vec::new();
        let mut preds: Vec<(VReg, PSrc)> = Vec::new();
        for (&v, &param) in call.args.iter().zip(params) {
            if v == param {
                continue;
            }
            let to = Sub { reg: self.value_reg(param), at: 0 };
            match self.f.ty(v) {
                Type::P => {
                    let p = self.pred(v);
                    preds.push((to.reg, p));
                }
                Type::B64 => {
                    let w = self.words(v)?;
                    words.push((to, w[0]));
                    words.push((to.word(1), w[1]));
                }
                _ => {
                    let s = self.src(v)?;
                    words.push((to, s));
                }
            }
        }
        self.copy_words(words);
        self.copy_preds(preds);
        Ok(())
    }

    pub(super) fn copy_words(&mut self, mut pending: Vec<(Sub, MSrc)>) {
        pending.retain(|(to, from)| from.reg != Some(*to));
        let mut readers: std::collections::HashMap<Sub, u32> = std::collections::HashMap::new();
        for (_, from) in &pending {
            if let Some(s) = from.reg {
                *readers.entry(s).or_default() += 1;
            }
        }
        while !pending.is_empty() {
            let before = pending.len();
            let mut rest = Vec::new();
            for (to, from) in std::mem::take(&mut pending) {
                if readers.get(&to).copied().unwrap_or(0) > 0 {
                    rest.push((to, from));
                    continue;
                }
                self.mov(to, from);
                if let Some(n) = from.reg.and_then(|s| readers.get_mut(&s)) {
                    *n -= 1;
                }
            }
            pending = rest;
            // Only cycles are left: one word steps aside.
            if pending.len() == before
                && let Some(aside) = pending.iter().find_map(|p| p.1.reg)
            {
                let t = self.word();
                self.mov(t, MSrc::reg(aside));
                for (_, from) in &mut pending {
                    if from.reg == Some(aside) {
                        from.reg = Some(t);
                    }
                }
                readers.insert(aside, 0);
            }
        }
    }

    fn copy_preds(&mut self, mut pending: Vec<(VReg, PSrc)>) {
        pending.retain(|(to, from)| *from != PSrc::reg(*to));
        while !pending.is_empty() {
            let free = pending.iter().position(|&(to, _)| {
                // A predicate that only its own copy reads may be overwritten.
                !pending.iter().any(|&(other, from)| from.reg == Some(to) && other != to)
            });
            match free {
                Some(n) => {
                    let (to, from) = pending.swap_remove(n);
                    self.pred_mov(to, from);
                }
                None => {
                    let t = self.pred_temp();
                    let Some(aside) = pending[0].1.reg else { return };
                    self.pred_mov(t, PSrc::reg(aside));
                    for (_, from) in &mut pending {
                        if from.reg == Some(aside) {
                            from.reg = Some(t);
                        }
                    }
                }
            }
        }
    }
}
