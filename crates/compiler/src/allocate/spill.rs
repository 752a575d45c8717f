//! Moves virtual registers to memory, predicates to words; a value that one move makes is made again instead.

use super::coalesce::overlap;
use super::liveness::Live;
use crate::mir::{Class, MFunction, MInst, MSrc, MTerm, PSrc, Sub, VReg};
use isa::field::{Cmp, Field, Sign, Width};
use isa::{Op, Src};

/// A place in the frame and what lives there.
struct Slot {
    at: u32,
    units: u32,
    ranges: Vec<(u32, u32)>,
}

/// Offset of a slot for `r`: one whose owners never live when `r` does, or a new one.
fn slot(f: &mut MFunction, r: VReg, live: &Live, slots: &mut Vec<Slot>) -> u32 {
    let units = f.class(r).units();
    let mut own = Vec::new();
    for u in live.units(f, r) {
        own = cover(&own, live.ranges(u));
    }
    if let Some(s) = slots.iter_mut().find(|s| s.units == units && !overlap(&s.ranges, &own)) {
        s.ranges = cover(&s.ranges, &own);
        return s.at;
    }
    let at = f.frame_bytes.next_multiple_of(4 * units);
    f.frame_bytes = at + 4 * units;
    slots.push(Slot { at, units, ranges: own });
    at
}

/// All points of two ascending lists, as one.
fn cover(a: &[(u32, u32)], b: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::with_capacity(all.len());
    for r in all {
        match out.last_mut() {
            Some(last) if last.1 >= r.0 => last.1 = last.1.max(r.1),
            _ => out.push(r),
        }
    }
    out
}

#[derive(Clone, Copy)]
enum Home {
    /// Byte offset in the frame.
    Frame(u32),
    /// A predicate as zero or one in a word.
    Word(VReg),
    /// Each word is a literal or constant.
    Again([MSrc; 4]),
}

pub fn spill(f: &mut MFunction, regs: &[VReg], live: &Live) {
    let mut slots: Vec<Slot> = Vec::new();
    let mut homes: Vec<Option<Home>> = vec![None; f.classes.len()];
    let sources = single_moves(f);
    for &r in regs {
        let class = f.class(r);
        homes[r.index()] = Some(if class == Class::Pred {
            Home::Word(f.new_reg(Class::Word))
        } else if let Some(words) = sources[r.index()] {
            Home::Again(words)
        } else {
            let at = slot(f, r, live, &mut slots);
            f.uses_stack = true;
            Home::Frame(at)
        });
    }
    for b in 0..f.blocks.len() {
        let old = std::mem::take(&mut f.blocks[b].insts);
        let mut out = Vec::with_capacity(old.len() * 2);
        for mut i in old {
            let made_again =
                i.dst.is_some_and(|d| matches!(homes.get(d.reg.index()), Some(Some(Home::Again(_)))));
            if made_again {
                continue;
            }
            rewrite(f, &homes, &mut i, &mut out);
        }
        let loc = f.blocks[b].term_loc;
        let mut term = std::mem::replace(&mut f.blocks[b].term, MTerm::Trap);
        match &mut term {
            MTerm::Branch { cond, .. } => {
                if let Some(p) = &mut cond.reg
                    && let Some(Some(home)) = homes.get(p.index())
                {
                    let t = f.new_reg(Class::Pred);
                    load(f, *home, Sub { reg: t, at: 0 }, 0, 1, loc, &mut out);
                    *p = t;
                }
            }
            MTerm::Table { place, .. } | MTerm::Return { to: place, .. } => {
                if let Some(Some(home)) = homes.get(place.reg.index()) {
                    let t = f.new_reg(f.class(place.reg));
                    load(f, *home, Sub { reg: t, at: 0 }, place.at, 1, loc, &mut out);
                    place.reg = t;
                }
            }
            _ => {}
        }
        f.blocks[b].term = term;
        f.blocks[b].insts = out;
    }
}

/// Registers all of whose words are written once, each by a move of a literal or constant.
fn single_moves(f: &MFunction) -> Vec<Option<[MSrc; 4]>> {
    let mut words: Vec<Option<([Option<MSrc>; 4], bool)>> = vec![None; f.classes.len()];
    for i in f.blocks.iter().flat_map(|b| &b.insts) {
        let Some((d, width)) = i.written() else { continue };
        let entry = words[d.reg.index()].get_or_insert(([None; 4], true));
        let plain = !i.is_guarded() && i.frame.is_none();
        // What each word of the destination gets.
        let source = match (i.op(), i.src[1].imm_bits()) {
            (Op::Mov, _) if plain && i.src[1].reg.is_none() => Some(i.src[1]),
            (Op::Ldc, Some(offset)) if plain && i.src[0].is_zero() && width <= 2 => {
                let narrow = !matches!(i.inst.get::<Width>(), Width::B32 | Width::B64);
                let offset = u16::try_from(offset).ok().filter(|_| !narrow);
                offset.map(|at| MSrc::constant(i.inst.field(Field::Bank) as u8, at))
            }
            _ => None,
        };
        for n in 0..width as u8 {
            let known = source.map(|s| entry.0[(d.at + n) as usize].replace(s.word(n)));
            entry.1 &= known == Some(None);
        }
    }
    let defined_by_calls: std::collections::HashSet<VReg> = f
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .filter_map(|i| i.call.as_ref())
        .flat_map(|c| c.defs.iter().copied())
        .collect();
    words
        .into_iter()
        .enumerate()
        .map(|(n, w)| {
            let (w, simple) = w?;
            let units = f.classes[n].units() as usize;
            let all =
                simple && w[..units].iter().all(|x| x.is_some()) && !defined_by_calls.contains(&VReg::new(n));
            all.then(|| w.map(|x| x.unwrap_or(MSrc::ZERO)))
        })
        .collect()
}

/// Puts loads before and stores behind an instruction that names spilled registers.
fn rewrite(f: &mut MFunction, homes: &[Option<Home>], i: &mut MInst, out: &mut Vec<MInst>) {
    let home = |r: VReg| homes.get(r.index()).copied().flatten();
    let (guarded, keeps_preds) = (i.is_guarded(), i.keeps_preds());
    // One short register for each spilled one, however often it is named.
    let mut temps: smallvec::SmallVec<[(VReg, VReg); 4]> = smallvec::SmallVec::new();
    let mut loads: smallvec::SmallVec<[(VReg, u8, u32); 4]> = smallvec::SmallVec::new();
    let mut stores: smallvec::SmallVec<[(VReg, u8, u32); 2]> = smallvec::SmallVec::new();
    i.for_each_sub_mut(|s, width, written| {
        if home(s.reg).is_some() {
            if written {
                stores.push((s.reg, s.at, width));
            }
            if !written || guarded {
                loads.push((s.reg, s.at, width));
            }
        }
    });
    i.for_each_pred_mut(|p, written| {
        if home(*p).is_some() {
            if written {
                stores.push((*p, 0, 1));
            }
            if !written || keeps_preds {
                loads.push((*p, 0, 1));
            }
        }
    });
    if loads.is_empty() && stores.is_empty() {
        out.push(i.clone());
        return;
    }
    for &(r, ..) in loads.iter().chain(&stores) {
        if !temps.iter().any(|t| t.0 == r) {
            let t = f.new_reg(f.class(r));
            temps.push((r, t));
        }
    }
    let temp = |r: VReg| temps.iter().find(|t| t.0 == r).map_or(r, |t| t.1);
    loads.sort();
    loads.dedup();
    for &(r, at, width) in &loads {
        if let Some(h) = home(r) {
            load(f, h, Sub { reg: temp(r), at }, at, width, i.loc, out);
        }
    }
    i.for_each_sub_mut(|s, _, _| s.reg = temp(s.reg));
    i.for_each_pred_mut(|p, _| *p = temp(*p));
    out.push(i.clone());
    for &(r, at, width) in &stores {
        match home(r) {
            Some(Home::Frame(base)) => {
                for (n, width) in parts(at, width) {
                    let mut m = MInst::new(Op::Stl)
                        .a(MSrc::reg(Sub { reg: f.sp, at: 0 }))
                        .b(MSrc::imm(base + 4 * u32::from(n)))
                        .c(MSrc::reg(Sub { reg: temp(r), at: n }))
                        .with(width);
                    m.loc = i.loc;
                    out.push(m);
                }
            }
            Some(Home::Word(w)) => {
                let one = MSrc { src: Src::imm(1), reg: None };
                let mut m =
                    MInst::new(Op::Sel).dst(Sub { reg: w, at: 0 }).b(one).ps(0, PSrc::reg(temp(r)).negated());
                m.loc = i.loc;
                out.push(m);
            }
            _ => {}
        }
    }
}

/// Words `at..at + width` as accesses that are aligned in the register: first word and width.
fn parts(at: u8, width: u32) -> smallvec::SmallVec<[(u8, Width); 4]> {
    let mut parts = smallvec::SmallVec::new();
    let (mut n, end) = (at, at + width as u8);
    while n < end {
        let (width, words) = match end - n {
            4.. if n % 4 == 0 => (Width::B128, 4),
            2.. if n % 2 == 0 => (Width::B64, 2),
            _ => (Width::B32, 1),
        };
        parts.push((n, width));
        n += words;
    }
    parts
}

/// Brings words of a spilled register back into `to`.
fn load(f: &MFunction, home: Home, to: Sub, at: u8, width: u32, loc: ir::LocId, out: &mut Vec<MInst>) {
    let mut push = |mut m: MInst| {
        m.loc = loc;
        out.push(m);
    };
    match home {
        Home::Frame(base) => {
            for (n, width) in parts(at, width) {
                push(
                    MInst::new(Op::Ldl)
                        .dst(Sub { reg: to.reg, at: n })
                        .a(MSrc::reg(Sub { reg: f.sp, at: 0 }))
                        .b(MSrc::imm(base + 4 * u32::from(n)))
                        .with(width),
                );
            }
        }
        Home::Word(w) => {
            let mut m =
                MInst::new(Op::Isetp).a(MSrc::reg(Sub { reg: w, at: 0 })).with(Cmp::Ne).with(Sign::U32);
            m.pd[0] = Some(to.reg);
            push(m);
        }
        Home::Again(words) => {
            for n in at..at + width as u8 {
                push(MInst::new(Op::Mov).dst(Sub { reg: to.reg, at: n }).b(words[n as usize]));
            }
        }
    }
}
