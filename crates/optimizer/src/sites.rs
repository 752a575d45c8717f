//! Which instructions of a block are worth watching, and what is to be recorded there.

use crate::blocks::Blocks;
use crate::profile::Where;
use isa::field::{AtomType, Field, Width};
use isa::{Effects, Op, Operand, PredUse, Role};
use serde::{Deserialize, Serialize};

/// What to record when an instruction is executed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Watch {
    /// The warp enters the block: [`crate::Recorder::enter`], then [`crate::Recorder::value`] of these.
    Entry(Vec<Where>),
    /// A branch, an exit that not all lanes may take, or the first of some instructions with one guard: [`crate::Recorder::branch`], with lanes that are there and lanes whose guard
    /// holds.
    Branch,
    /// In optimized code, at a branch that leaves for the original when an assumption fails: where it does not,
    /// [`crate::Recorder::branch`] with all lanes that are there, and with all or none of them taken.
    Assumed { taken: bool },
    /// In optimized code, at an instruction whose guard holds in the lanes that jump at a branch of the original (`taken`), or in
    /// those that do not: [`crate::Recorder::branch`].
    Converted { taken: bool },
    /// [`crate::Recorder::access`], so many bytes a lane.
    Access { bytes: u32, is_store: bool },
    /// [`crate::Recorder::value`] of the first register loaded, once it is there.
    Loaded { register: u8 },
}

/// A place of the original code, and what to record there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Site {
    pub place: u32,
    pub watch: Watch,
}

/// The sites of a block, in the order of their places; that of the entry comes first.
pub fn sites(blocks: &Blocks, block: u32) -> Vec<Site> {
    let Some(b) = blocks.blocks.get(block as usize) else { return Vec::new() };
    let mut values: Vec<Where> = Vec::new();
    let mut sites = Vec::new();
    let mut read = [false; 256];
    let mut constants = Vec::new();
    let mut guarded_until = 0;
    for &place in &b.places {
        let Some(inst) = blocks.inst(place) else { continue };
        for (r, n) in inst.reads() {
            (0..n).for_each(|k| read[(u32::from(r.0) + k) as usize & 255] = true);
        }
        for s in inst.src {
            if let Operand::Const { bank, offset } = s.operand {
                constants.push(Where::Constant(bank, offset));
            }
        }
        if let Some((bank, offset, words)) = constant_load(inst) {
            constants.extend((0..words).map(|k| Where::Constant(bank, offset + 4 * k)));
        }
        if matches!(inst.op, Op::Bra | Op::Exit) && inst.guard != PredUse::TRUE {
            sites.push(Site { place, watch: Watch::Branch });
        } else if place >= guarded_until
            && let Some(row) = crate::convert::guarded(blocks, b, place)
        {
            guarded_until = row.last().map_or(place, |last| last + 1);
            sites.push(Site { place, watch: Watch::Branch });
        }
        let effects = inst.op.row().effects;
        if let Some(bytes) = access_bytes(inst) {
            let is_store = effects.has(Effects::WRITES);
            sites.push(Site { place, watch: Watch::Access { bytes, is_store } });
            if !is_store && let Some((r, _)) = inst.writes() {
                sites.push(Site { place, watch: Watch::Loaded { register: r.0 } });
            }
        }
    }
    let live = crate::liveness::entry_registers(blocks, b);
    values.extend((0..255u8).filter(|&r| read[r as usize] && live[r as usize]).map(Where::Register));
    constants.sort_unstable();
    constants.dedup();
    values.extend(constants);
    sites.insert(0, Site { place: b.entry, watch: Watch::Entry(values) });
    sites
}

/// Bank, offset and words of a load from a constant bank whose place is known.
pub(crate) fn constant_load(inst: &isa::Inst) -> Option<(u8, u16, u16)> {
    let words = match inst.op {
        Op::Uldc => 1,
        Op::Uldc64 => 2,
        Op::Ldc if inst.get::<Width>() == Width::B32 => 1,
        Op::Ldc if inst.get::<Width>() == Width::B64 => 2,
        _ => return None,
    };
    let at_zero = matches!(
        inst.src[0].operand,
        Operand::None | Operand::Reg(isa::Reg::RZ) | Operand::UReg(isa::UReg::URZ)
    );
    let offset = u16::try_from(inst.offset()).ok()?;
    (at_zero && offset.is_multiple_of(4 * words) && offset.checked_add(4 * words).is_some())
        .then(|| (inst.field(Field::Bank) as u8, offset, words))
}

/// Bytes that a lane of a memory instruction touches; `None` where it is none.
pub(crate) fn access_bytes(inst: &isa::Inst) -> Option<u32> {
    let row = inst.op.row();
    if !row.roles.contains(&Role::Addr) || !row.effects.has(Effects::READS.or(Effects::WRITES)) {
        return None;
    }
    if row.fields.contains(&Field::AtomType) {
        return Some(match inst.get::<AtomType>() {
            AtomType::U64 | AtomType::S64 | AtomType::F64 => 8,
            AtomType::B128 => 16,
            AtomType::F16 | AtomType::Bf16 | AtomType::U16 => 2,
            _ => 4,
        });
    }
    Some(match inst.get::<Width>() {
        Width::U8 | Width::S8 => 1,
        Width::U16 | Width::S16 => 2,
        Width::B32 => 4,
        Width::B64 => 8,
        Width::B128 => 16,
    })
}
