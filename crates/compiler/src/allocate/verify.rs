//! Checks an allocation: along every path, each read finds in its physical register the virtual register it names.

use super::Allocation;
use crate::mir::{Class, MFunction, MInst, MTerm, Sub, VReg};

/// What a physical register holds: the unit of a virtual register, or nothing that is known.
type Held = Option<(VReg, u8)>;

#[derive(Clone, PartialEq)]
struct State {
    general: Vec<Held>,
    preds: Vec<Held>,
    uniform: Vec<Held>,
}

impl State {
    fn file(&self, class: Class) -> &Vec<Held> {
        match class {
            Class::Pred => &self.preds,
            Class::Uniform | Class::UniformPair => &self.uniform,
            _ => &self.general,
        }
    }

    fn file_mut(&mut self, class: Class) -> &mut Vec<Held> {
        match class {
            Class::Pred => &mut self.preds,
            Class::Uniform | Class::UniformPair => &mut self.uniform,
            _ => &mut self.general,
        }
    }
}

/// An error says which read would find something else.
pub fn verify(f: &MFunction, a: &Allocation) -> Result<(), String> {
    let unknown = State {
        general: vec![None; isa::Reg::COUNT + 1],
        preds: vec![None; isa::Pred::COUNT + 1],
        uniform: vec![None; isa::UReg::COUNT + 1],
    };
    let mut starts: Vec<Option<State>> = vec![None; f.blocks.len()];
    let mut first = unknown;
    for &r in &f.arguments {
        set(f, a, &mut first, r, 0, f.class(r).units());
    }
    starts[0] = Some(first);
    let mut work = vec![0];
    while let Some(b) = work.pop() {
        let Some(mut state) = starts[b].clone() else { continue };
        for i in &f.blocks[b].insts {
            step(f, a, &mut state, i).map_err(|e| format!("{}: block {b}: {e}: {i:?}", f.name))?;
        }
        match &f.blocks[b].term {
            MTerm::Branch { cond, .. } => {
                if let Some(p) = cond.reg {
                    check(f, a, &state, Sub { reg: p, at: 0 }, 1)?;
                }
            }
            MTerm::Table { place, .. } => check(f, a, &state, *place, 1)?,
            MTerm::Return { to, results } => {
                check(f, a, &state, *to, 1)?;
                for &r in results {
                    check(f, a, &state, Sub { reg: r, at: 0 }, f.class(r).units())?;
                }
            }
            _ => {}
        }
        for s in f.successors(b) {
            let next = match &starts[s] {
                None => state.clone(),
                Some(old) => {
                    let mut next = old.clone();
                    let both = next
                        .general
                        .iter_mut()
                        .chain(&mut next.preds)
                        .chain(&mut next.uniform)
                        .zip(state.general.iter().chain(&state.preds).chain(&state.uniform));
                    both.for_each(|(x, y)| {
                        if x != y {
                            *x = None;
                        }
                    });
                    next
                }
            };
            if starts[s].as_ref() != Some(&next) {
                starts[s] = Some(next);
                work.push(s);
            }
        }
    }
    Ok(())
}

fn set(f: &MFunction, a: &Allocation, state: &mut State, r: VReg, at: u8, width: u32) {
    let file = state.file_mut(f.class(r));
    for n in at..at + width as u8 {
        if let Some(held) = file.get_mut(usize::from(a.registers[r.index()]) + usize::from(n)) {
            *held = Some((r, n));
        }
    }
}

fn check(f: &MFunction, a: &Allocation, state: &State, s: Sub, width: u32) -> Result<(), String> {
    if s.reg == f.sp {
        return Ok(());
    }
    let file = state.file(f.class(s.reg));
    for n in s.at..s.at + width as u8 {
        let at = usize::from(a.registers[s.reg.index()]) + usize::from(n);
        if file.get(at).copied().flatten() != Some((s.reg, n)) {
            return Err(format!("register {at} does not hold {:?}.{n} but {:?}", s.reg, file.get(at)));
        }
    }
    Ok(())
}

fn step(f: &MFunction, a: &Allocation, state: &mut State, i: &MInst) -> Result<(), String> {
    let mut result = Ok(());
    let mut note = |r: Result<(), String>| {
        if result.is_ok() {
            result = r;
        }
    };
    i.for_each_read(|s, width| note(check(f, a, state, s, width)));
    i.for_each_pred_read(|p| note(check(f, a, state, Sub { reg: p, at: 0 }, 1)));
    if let Some(call) = &i.call {
        for &r in &call.uses {
            note(check(f, a, state, Sub { reg: r, at: 0 }, f.class(r).units()));
        }
        for (is_pred, file) in [(false, &mut state.general), (true, &mut state.preds)] {
            for (at, held) in file.iter_mut().enumerate() {
                if call.clobbers.as_ref().is_none_or(|c| c.has(is_pred, at)) {
                    *held = None;
                }
            }
        }
    }
    result?;
    if let Some((s, width)) = i.written()
        && s.reg != f.sp
    {
        set(f, a, state, s.reg, s.at, width);
    }
    for &p in i.pd.iter().flatten() {
        set(f, a, state, p, 0, 1);
    }
    if let Some(call) = &i.call {
        for &r in &call.defs {
            set(f, a, state, r, 0, f.class(r).units());
        }
    }
    Ok(())
}
