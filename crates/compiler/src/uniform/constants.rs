//! Words of constant banks: which are loaded into uniform registers, which into general ones, and where.
//!
//! A word that some instruction wants in a general register, because its only slot for anything else is taken, is there for
//! all that follow. Every other word that arithmetic reads is loaded into a uniform register, above all its uses and
//! outside all loops. Neighbouring words are loaded together.

use super::{Dominators, File, home, insert, uniform_load};
use crate::mir::{Class, MFunction, MInst, MSrc, MTerm, Sub, VReg};
use isa::field::{Field, Width};
use isa::{Op, Operand, Src, Unit};
use std::collections::{BTreeMap, HashMap};

/// A word of a bank.
type Word = (u8, u16);

/// A source that reads a word: block, instruction, which.
#[derive(Clone, Copy)]
struct Use {
    block: usize,
    inst: usize,
    src: usize,
}

/// A load into a general register that nothing else writes.
#[derive(Clone, Copy)]
struct Load {
    block: usize,
    inst: usize,
    to: Sub,
}

/// Makes loads of the moves of words, each once.
pub(super) fn share(f: &mut MFunction, dominators: &Dominators) {
    moves_become_loads(f);
    share_loads(f, dominators);
}

/// Gives every word that is read a register.
pub(super) fn load(f: &mut MFunction, dominators: &Dominators, file: &mut File) {
    pair_loads(f);
    use_loaded(f, dominators);
    load_uniform(f, dominators, file);
}

/// `MOV` of a word of a bank is `LDC`.
fn moves_become_loads(f: &mut MFunction) {
    for i in f.blocks.iter_mut().flat_map(|b| &mut b.insts) {
        if i.op() == Op::Mov
            && i.frame.is_none()
            && i.src[1].reg.is_none()
            && let Src { operand: Operand::Const { bank, offset }, neg: false, abs: false, .. } = i.src[1].src
        {
            let mut load =
                MInst::new(Op::Ldc).b(MSrc::imm(u32::from(offset))).num(Field::Bank, u32::from(bank));
            (load.dst, load.guard, load.loc) = (i.dst, i.guard, i.loc);
            *i = load;
        }
    }
}

/// The first word that an instruction loads into a general register from a place known now, and how many.
pub(super) fn loaded(i: &MInst) -> Option<(Word, u32)> {
    let offset = i.src[1].imm_bits()?;
    let words = match i.inst.get::<Width>() {
        Width::B32 => 1,
        Width::B64 => 2,
        _ => return None,
    };
    let plain = i.op() == Op::Ldc && !i.is_guarded() && i.src[0].is_zero() && i.frame.is_none();
    let offset = u16::try_from(offset).ok().filter(|_| plain)?;
    Some(((i.inst.field(Field::Bank) as u8, offset), words))
}

/// How many instructions write each register; fixed registers and those of calls and jumps count as written often.
pub(super) fn writers(f: &MFunction) -> Vec<u32> {
    let mut writers: Vec<u32> = f.fixed.iter().map(|x| if x.is_some() { 2 } else { 0 }).collect();
    for i in f.blocks.iter().flat_map(|b| &b.insts) {
        if let Some((s, _)) = i.written() {
            writers[s.reg.index()] += 1;
        }
        for r in i.call.iter().flat_map(|c| c.defs.iter().chain(&c.uses)) {
            writers[r.index()] += 2;
        }
    }
    for b in &f.blocks {
        if let MTerm::Table { place, .. } | MTerm::Return { to: place, .. } = &b.term {
            writers[place.reg.index()] += 2;
        }
    }
    writers
}

/// The loads into general registers, by word.
fn loads(f: &MFunction) -> BTreeMap<Word, Vec<Load>> {
    let writers = writers(f);
    let mut loads: BTreeMap<Word, Vec<Load>> = BTreeMap::new();
    for (block, b) in f.blocks.iter().enumerate() {
        for (inst, i) in b.insts.iter().enumerate() {
            if let (Some(to), Some(((bank, offset), words))) = (i.dst, loaded(i))
                && writers[to.reg.index()] == 1
                && to.at == 0
                && f.class(to.reg).units() == words
            {
                for n in 0..words as u8 {
                    let word = (bank, offset + 4 * u16::from(n));
                    loads.entry(word).or_default().push(Load { block, inst, to: to.word(n) });
                }
            }
        }
    }
    loads
}

/// Gives every register of `names` the name it has there.
fn rename(f: &mut MFunction, names: &HashMap<VReg, Sub>) {
    if names.is_empty() {
        return;
    }
    let mut table: Vec<Option<Sub>> = vec![None; f.classes.len()];
    names.iter().for_each(|(r, &name)| table[r.index()] = Some(name));
    let new = |s: &mut Sub| {
        if let Some(n) = table[s.reg.index()] {
            *s = n.word(s.at);
        }
    };
    for b in &mut f.blocks {
        for i in &mut b.insts {
            i.for_each_sub_mut(|s, _, _| new(s));
        }
        if let MTerm::Table { place, .. } | MTerm::Return { to: place, .. } = &mut b.term {
            new(place);
        }
    }
}

/// A word that is loaded already where control comes from is not loaded again.
fn share_loads(f: &mut MFunction, dominators: &Dominators) {
    let mut names: HashMap<VReg, Sub> = HashMap::new();
    let mut gone: Vec<(usize, usize)> = Vec::new();
    let all = loads(f);
    let kinds = [Class::Word, Class::Pair];
    for (class, loads) in kinds.into_iter().flat_map(|class| all.values().map(move |l| (class, l))) {
        // A pair is listed for both of its words.
        let is_meant = |l: &&Load| f.class(l.to.reg) == class && l.to.at == 0;
        let mut loads: Vec<&Load> = loads.iter().filter(is_meant).collect();
        loads.sort_by_key(|l| (dominators.place(l.block), l.block, l.inst));
        // What the topmost load stands above follows it; the next one is another topmost.
        let mut top: Option<&Load> = None;
        for load in loads {
            match top.filter(|t| dominators.dominates(t.block, load.block)) {
                Some(top) => {
                    names.insert(load.to.reg, top.to);
                    gone.push((load.block, load.inst));
                }
                None => top = Some(load),
            }
        }
    }
    remove(f, gone);
    rename(f, &names);
}

/// Removes instructions by block and place.
fn remove(f: &mut MFunction, mut gone: Vec<(usize, usize)>) {
    gone.sort_unstable();
    for of_block in gone.chunk_by(|x, y| x.0 == y.0) {
        let mut next = of_block.iter().map(|g| g.1).peekable();
        let mut n = 0;
        f.blocks[of_block[0].0].insts.retain(|_| {
            n += 1;
            next.next_if_eq(&(n - 1)).is_none()
        });
    }
}

/// Two words that one block loads one after the other from neighbouring places become one load.
fn pair_loads(f: &mut MFunction) {
    let all = loads(f);
    let mut names: HashMap<VReg, Sub> = HashMap::new();
    let mut gone: Vec<(usize, usize)> = Vec::new();
    for (&(bank, offset), low) in all.iter().filter(|((_, offset), _)| offset % 8 == 0) {
        let Some(high) = all.get(&(bank, offset + 4)) else { continue };
        for l in low {
            let is_word = |l: &Load| f.class(l.to.reg) == Class::Word;
            let h = high.iter().find(|h| h.block == l.block && is_word(h) && is_word(l));
            let Some(h) = h else { continue };
            let pair = f.new_reg(Class::Pair);
            names.insert(l.to.reg, Sub { reg: pair, at: 0 });
            names.insert(h.to.reg, Sub { reg: pair, at: 1 });
            let (first, second) = (l.inst.min(h.inst), l.inst.max(h.inst));
            let i = &mut f.blocks[l.block].insts[first];
            let mut both = MInst::new(Op::Ldc)
                .dst(Sub { reg: pair, at: 0 })
                .b(MSrc::imm(u32::from(offset)))
                .num(Field::Bank, u32::from(bank))
                .with(Width::B64);
            both.loc = i.loc;
            *i = both;
            gone.push((l.block, second));
        }
    }
    remove(f, gone);
    rename(f, &names);
}

/// Sources of one word that arithmetic reads from a bank.
fn uses(f: &MFunction) -> BTreeMap<Word, Vec<Use>> {
    let mut uses: BTreeMap<Word, Vec<Use>> = BTreeMap::new();
    for (block, b) in f.blocks.iter().enumerate() {
        for (inst, i) in b.insts.iter().enumerate() {
            for src in 0..3 {
                if let (None, Operand::Const { bank, offset }) = (i.src[src].reg, i.src[src].src.operand)
                    && i.source_width(src) == 1
                {
                    uses.entry((bank, offset)).or_default().push(Use { block, inst, src });
                }
            }
        }
    }
    uses
}

/// Reads words from the general registers that have them.
fn use_loaded(f: &mut MFunction, dominators: &Dominators) {
    let loads = loads(f);
    // Where a load must stand in its block at the latest.
    let mut latest: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (word, mut uses) in uses(f) {
        let Some(loads) = loads.get(&word) else { continue };
        let mut loads: Vec<&Load> = loads.iter().collect();
        let place = |b: usize| (dominators.place(b), b);
        loads.sort_by_key(|l| (place(l.block), l.inst));
        uses.sort_by_key(|u| (place(u.block), u.inst, u.src));
        let mut loads = loads.into_iter().peekable();
        // The loads that stand above what comes now, and of each and those above it the first of the program.
        let mut above: Vec<(usize, &Load)> = Vec::new();
        for u in uses {
            while let Some(l) = loads.next_if(|l| place(l.block) <= place(u.block)) {
                drop_others(&mut above, l.block, dominators);
                let first = above
                    .last()
                    .map_or(l, |&(_, a)| if (a.block, a.inst) < (l.block, l.inst) { a } else { l });
                above.push((l.block, first));
            }
            drop_others(&mut above, u.block, dominators);
            // The uniform datapath reads no general register.
            if f.blocks[u.block].insts[u.inst].op().row().unit == Unit::Uniform {
                continue;
            }
            let Some(&(_, l)) = above.last() else { continue };
            let s = &mut f.blocks[u.block].insts[u.inst].src[u.src];
            s.src.operand = Operand::None;
            s.reg = Some(l.to);
            if l.block == u.block && u.inst < l.inst {
                let at = latest.entry((l.block, l.inst)).or_insert(u.inst);
                *at = u.inst.min(*at);
            }
        }
    }
    // In ascending order, so that the places of later ones stay what they are.
    let mut moves: Vec<((usize, usize), usize)> = latest.into_iter().collect();
    moves.sort_unstable();
    for ((b, from), to) in moves {
        f.blocks[b].insts[to..=from].rotate_right(1);
    }
}

/// Removes from the end of a list what does not stand above `b`.
fn drop_others(above: &mut Vec<(usize, &Load)>, b: usize, dominators: &Dominators) {
    while above.pop_if(|(block, _)| !dominators.dominates(*block, b)).is_some() {}
}

/// Loads the rest into uniform registers.
fn load_uniform(f: &mut MFunction, dominators: &Dominators, file: &mut File) {
    let all = uses(f);
    let mut done: Vec<Word> = Vec::new();
    let mut made: Vec<(usize, MInst)> = Vec::new();
    // First what the uniform datapath reads: it has no other way to its words.
    let is_uniform = |u: &Use| f.blocks[u.block].insts[u.inst].op().row().unit == Unit::Uniform;
    let mut order: Vec<_> = all.iter().collect();
    order.sort_by_key(|(_, uses)| !uses.iter().any(is_uniform));
    for (&(bank, offset), low) in order {
        if done.contains(&(bank, offset)) {
            continue;
        }
        let blocks = |uses: &[Use]| uses.iter().map(|u| u.block).collect::<Vec<_>>();
        let Some(at) = home(f, dominators, blocks(low).into_iter()) else { continue };
        let high = all.get(&(bank, offset + 4)).filter(|_| offset % 8 == 0);
        let together = high.filter(|high| home(f, dominators, blocks(high).into_iter()) == Some(at));
        let class = if together.is_some() { Class::UniformPair } else { Class::Uniform };
        let Some(reg) = file.take(f, class) else { break };
        let mut read = |uses: &[Use], n: u8| {
            for u in uses {
                let s = &mut f.blocks[u.block].insts[u.inst].src[u.src];
                let MSrc { src, reg: sub } = MSrc::uniform(Sub { reg, at: n });
                (s.src.operand, s.reg) = (src.operand, sub);
            }
        };
        read(low, 0);
        if let Some(high) = together {
            read(high, 1);
            done.push((bank, offset + 4));
        }
        made.push((at, uniform_load(reg, class, bank, offset)));
    }
    // Last, since they move the instructions that the places name.
    for (at, i) in made {
        insert(f, at, i);
    }
}
