//! Code with instructions that gather profiles, and copies of blocks.

use isa::{Inst, Op, Operand, Reg, Src};
use optimizer::version::Link;
use optimizer::{Blocks, Site, Version, sites};

/// A block's own code as a version of it; none where its code cannot stand elsewhere.
pub fn copy(blocks: &Blocks, block: u32) -> Option<Version> {
    let b = blocks.blocks.get(block as usize)?;
    let mut v = Version {
        block,
        code: Vec::new(),
        origin: Vec::new(),
        links: Vec::new(),
        sites: Vec::new(),
        entry: 0,
        registers: blocks.registers,
        assumptions: Vec::new(),
        done: Vec::new(),
        gain: 0,
        work: b.places.len() as u64,
        level: 1,
    };
    // Where each place went.
    let mut index = std::collections::BTreeMap::new();
    for (n, &place) in b.places.iter().enumerate() {
        let inst = blocks.inst(place)?;
        // A call would come back here, which the callee's caller must not see.
        if matches!(inst.op, Op::Call | Op::Callx) {
            return None;
        }
        index.insert(place, v.code.len() as u32);
        v.code.push(*inst);
        v.origin.push(place);
        // What follows in the original and not here: the code behind a barrier, or behind a jump that is not in the block.
        if b.places.get(n + 1) != Some(&(place + 1)) {
            v.links.push((v.code.len() as u32, Link::Original(place + 1)));
            let mut jump = Inst::new(Op::Bra);
            jump.set_target(place + 1);
            v.code.push(jump);
            v.origin.push(place);
        }
    }
    v.entry = *index.get(&b.entry)?;
    for &place in &b.places {
        let n = index[&place];
        if let Some(to) = blocks.inst(place).and_then(Inst::target) {
            v.links.push((n, index.get(&to).map_or(Link::Original(to), |&to| Link::Inside(to))));
        }
    }
    let sites = sites(blocks, block);
    v.sites = sites.into_iter().filter_map(|s| Some((*index.get(&s.place)?, s))).collect();
    Some(v)
}

/// An instruction that changes nothing, and takes what an addition takes.
fn filler() -> Inst {
    let mut inst = Inst::new(Op::Iadd3);
    inst.dst = Reg::RZ;
    for src in &mut inst.src {
        *src = Src { operand: Operand::Reg(Reg::RZ), ..*src };
    }
    inst
}

/// The same version with so many instructions before each one that is watched.
pub fn instrument(version: &Version, instructions: u32) -> Version {
    let watched = |n: u32| version.sites.iter().any(|(at, _)| *at == n);
    // Where each instruction goes, and where jumps to it do: to what stands before it.
    let (mut begins, mut moved, mut at) = (Vec::new(), Vec::new(), 0);
    for n in 0..version.code.len() as u32 {
        begins.push(at);
        at += if watched(n) { instructions } else { 0 };
        moved.push(at);
        at += 1;
    }
    let mut v = Version { code: Vec::new(), origin: Vec::new(), ..version.clone() };
    for (n, (inst, origin)) in version.code.iter().zip(&version.origin).enumerate() {
        while (v.code.len() as u32) < moved[n] {
            v.code.push(filler());
            v.origin.push(*origin);
        }
        v.code.push(*inst);
        v.origin.push(*origin);
    }
    let begin = |n: u32| begins.get(n as usize).copied().unwrap_or(at);
    let of = |n: u32| moved.get(n as usize).copied().unwrap_or(n);
    for (n, link) in &mut v.links {
        *n = of(*n);
        if let Link::Inside(to) = link {
            *to = begin(*to);
        }
    }
    let sites: Vec<(u32, Site)> = version.sites.iter().map(|(n, s)| (of(*n), s.clone())).collect();
    v.sites = sites;
    v.assumptions.iter_mut().for_each(|a| a.check = of(a.check));
    v.entry = begin(v.entry);
    v
}

/// The same version without the instructions that [`instrument`] puts in, and nothing of it told any more.
pub fn thin(version: &Version) -> Version {
    let is_filler: Vec<bool> = version.code.iter().map(|i| *i == filler()).collect();
    let of = |n: u32| is_filler.iter().take(n as usize).filter(|f| !**f).count() as u32;
    let kept = || is_filler.iter().map(|f| !f);
    Version {
        code: version.code.iter().zip(kept()).filter(|(_, k)| *k).map(|(i, _)| *i).collect(),
        origin: version.origin.iter().zip(kept()).filter(|(_, k)| *k).map(|(o, _)| *o).collect(),
        links: version
            .links
            .iter()
            .map(|&(n, link)| match link {
                Link::Inside(to) => (of(n), Link::Inside(of(to))),
                other => (of(n), other),
            })
            .collect(),
        sites: Vec::new(),
        assumptions: version
            .assumptions
            .iter()
            .map(|a| optimizer::Assumption { check: of(a.check), ..*a })
            .collect(),
        entry: of(version.entry),
        ..version.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::image::{Function, Image};

    #[test]
    fn what_was_put_in_goes_again() {
        let lines = [
            "BAR.SYNC.ALIGNED RZ, PT, RZ, RZ, PT",
            "LDS R4, [R2]",
            "ISETP.LT.S32.AND P0, PT, R4, 0x7, PT, PT",
            "@P0 BRA 0x1",
            "BAR.SYNC.ALIGNED RZ, PT, RZ, RZ, PT",
            "EXIT",
        ];
        let code: Vec<Inst> = lines.iter().map(|l| isa::text::parse(l).expect("an instruction")).collect();
        let function = Function { barriers: 1, ..Function::entry("f", 0..code.len() as u32, 8) };
        let image = Image { code, functions: vec![function], ..Image::default() };
        let blocks = optimizer::translate(&image, 0).expect("a function");
        let bare = copy(&blocks, 1).expect("a copy");
        let told = instrument(&bare, 3);
        assert_eq!(told.code.len(), bare.code.len() + 3 * 2, "the load and the branch are told");
        assert_eq!(thin(&told), Version { sites: Vec::new(), ..bare });
    }
}
