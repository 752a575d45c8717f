//! Integer arithmetic on uniform values, done once a warp.
//!
//! The uniform datapath adds, multiplies, shifts and combines bits; its results serve instructions that have room for a
//! uniform register. A value whose sources something else wants in general registers anyway stays there with them.

use super::File;
use super::constants::{loaded, writers};
use crate::groups::Groups;
use crate::mir::{Class, MFunction, MInst, MSrc, PSrc, Sub, VReg};
use isa::field::Field;
use isa::{Op, Operand, Role, Unit};
use std::collections::HashMap;

/// Uniform registers to leave for constants.
const SPARE: u32 = 16;

/// Instructions that read each register, by block and place, each as often as it reads it.
struct Readers(Groups<(u32, u32)>);

impl Readers {
    fn of(&self, r: VReg) -> impl ExactSizeIterator<Item = (usize, usize)> + '_ {
        self.0.of(r.index()).iter().map(|&(b, n)| (b as usize, n as usize))
    }
}

pub(super) fn select(f: &mut MFunction, file: &mut File) {
    let writers = writers(f);
    // Registers that the words will need which the new instructions read.
    let mut wanted = 0;
    let mut changed = true;
    while changed {
        changed = false;
        let readers = readers(f);
        let loads = loads(f, &writers);
        for b in 0..f.blocks.len() {
            for n in 0..f.blocks[b].insts.len() {
                let Some(new) = uniform_form(f, &f.blocks[b].insts[n], &writers, &readers, &loads) else {
                    continue;
                };
                let words = new.src.iter().filter(|s| matches!(s.src.operand, Operand::Const { .. })).count();
                let Some(dst) = new.dst.filter(|_| file.left >= wanted + SPARE) else { continue };
                file.left -= 2;
                wanted += 2 * words as u32;
                f.blocks[b].insts[n] = new;
                f.classes[dst.reg.index()] = Class::Uniform;
                for (b, n) in readers.of(dst.reg) {
                    for s in f.blocks[b].insts[n].src.iter_mut().filter(|s| s.reg == Some(dst)) {
                        s.src.operand = MSrc::uniform(dst).src.operand;
                    }
                }
                changed = true;
            }
        }
    }
    let readers = readers(f);
    for b in &mut f.blocks {
        let read =
            |i: &MInst| i.dst.is_some_and(|d| readers.of(d.reg).len() > 0 || writers[d.reg.index()] > 1);
        b.insts.retain(|i| loaded(i).is_none() || read(i));
    }
}

fn readers(f: &MFunction) -> Readers {
    let mut reads: Vec<(u32, (u32, u32))> = Vec::new();
    for (b, block) in f.blocks.iter().enumerate() {
        for (n, i) in block.insts.iter().enumerate() {
            i.for_each_read(|s, _| reads.push((s.reg.index() as u32, (b as u32, n as u32))));
        }
    }
    Readers(Groups::new(f.classes.len(), reads.into_iter()))
}

/// Words of banks that registers hold for as long as they live.
fn loads(f: &MFunction, writers: &[u32]) -> HashMap<VReg, (u8, u16)> {
    let words = f.blocks.iter().flat_map(|b| &b.insts).filter_map(|i| {
        let (word, width) = loaded(i)?;
        let to = i.dst.filter(|d| d.at == 0 && width == 1 && writers[d.reg.index()] == 1)?;
        Some((to.reg, word))
    });
    words.collect()
}

/// The instruction on the uniform datapath, where all its sources can be there and all its readers can take the result.
fn uniform_form(
    f: &MFunction,
    i: &MInst,
    writers: &[u32],
    readers: &Readers,
    loads: &HashMap<VReg, (u8, u16)>,
) -> Option<MInst> {
    let op = match i.op() {
        Op::Iadd3 if !i.inst.flag(Field::X) => Op::Uiadd3,
        Op::Imad => Op::Uimad,
        Op::Lop3 => Op::Ulop3,
        Op::Shf => Op::Ushf,
        Op::Lea if !i.inst.flag(Field::X) && !i.inst.flag(Field::Hi) => Op::Ulea,
        _ => return None,
    };
    let dst = i.dst?;
    let alone = f.class(dst.reg) == Class::Word && writers[dst.reg.index()] == 1;
    if !alone || i.is_guarded() || i.frame.is_some() || i.pd != [None; 2] || i.ps[0] != PSrc::TRUE {
        return None;
    }
    let mut new = MInst::new(op).dst(dst);
    new.loc = i.loc;
    match op {
        Op::Ulop3 | Op::Ushf => new.inst.mods = i.inst.mods,
        Op::Ulea => new = new.num(Field::Shift, i.inst.field(Field::Shift)),
        _ => {}
    }
    let mut from_banks = 0;
    let mut immediates = 0;
    for k in 0..3 {
        let s = i.src[k];
        if s.src.neg || s.src.abs {
            return None;
        }
        new.src[k] = match (s.reg, s.src.operand) {
            (None, Operand::None) => s,
            (None, Operand::Imm(_)) => {
                immediates += 1;
                s
            }
            (None, Operand::Const { .. }) => {
                from_banks += 1;
                s
            }
            (Some(r), _) if f.class(r.reg) == Class::Uniform => s,
            (Some(r), _) if readers.of(r.reg).len() == 1 => {
                let &(bank, offset) = loads.get(&r.reg)?;
                from_banks += 1;
                MSrc::constant(bank, offset)
            }
            _ => return None,
        };
    }
    let has_input = from_banks > 0 || new.src.iter().any(|s| s.reg.is_some());
    let takes = |(b, n): (usize, usize)| takes_uniform(&f.blocks[b].insts[n], dst);
    let read = readers.of(dst.reg).len() > 0 && readers.of(dst.reg).all(takes);
    (has_input && immediates <= 1 && read).then_some(new)
}

/// The instruction has room for a uniform register where it reads `reg`.
fn takes_uniform(i: &MInst, reg: Sub) -> bool {
    let row = i.op().row();
    let arithmetic = matches!(row.unit, Unit::Alu | Unit::Fma | Unit::Imad) && i.op() != Op::Mov;
    let plain = row.roles.iter().all(|r| !matches!(r, Role::E | Role::E2 | Role::CW | Role::CT | Role::Addr));
    let here = (0..3).filter(|&k| i.src[k].reg == Some(reg) && i.source_width(k) == 1).count();
    arithmetic && plain && i.call.is_none() && here == 1 && i.src.iter().all(|s| !s.is_wide())
}
