//! Any bytes as code and profile: nothing may panic, and what comes out must be code.

use crate::profile::{Access, Branch, Profile, Value, Where};
use crate::sites::{Watch, sites};
use crate::version::{Limits, Source};
use crate::{optimize, translate};
use isa::image::{Function, Image};
use isa::{Inst, Op};

/// Instructions of a program.
const MOST: usize = 256;

/// Takes bytes as instruction words, sixteen each, and as the counts of a profile; says whether versions that were made can be encoded
/// and stay within their code and the original's.
pub fn try_bytes(bytes: &[u8]) -> bool {
    let words = bytes.chunks_exact(16).take(MOST);
    let code = words.filter_map(|w| Inst::decode(u128::from_le_bytes(w.try_into().ok()?)).ok());
    try_code(code.collect(), bytes)
}

/// The same for instructions, made to end where code has to.
pub fn try_code(mut code: Vec<Inst>, counts: &[u8]) -> bool {
    code.push(Inst::new(Op::Exit).canonical());
    let end = code.len() as u32;
    for i in &mut code {
        if let Some(to) = i.target() {
            i.set_target(to % end);
        }
    }
    let registers = 255;
    let function = Function { barriers: 1, ..Function::entry("any", 0..end, registers) };
    let image = Image { code, functions: vec![function], ..Image::default() };
    let Some(blocks) = translate(&image, 0) else { return true };
    let mut next = counts.iter().cycle().map(|&b| u64::from(b));
    let mut count = || next.next().unwrap_or(1);
    blocks.blocks.iter().take(4).all(|b| {
        let mut profile = Profile { entries: 1 + count(), ..Profile::default() };
        for site in sites(&blocks, b.id) {
            let same = |n: u64| Value { executions: n, uniform: n, last: n as u32, same: n };
            match site.watch {
                Watch::Entry(values) => profile.values.extend(values.into_iter().map(|w| (w, same(count())))),
                Watch::Branch => {
                    let (taken, not_taken, diverged) = (count(), count(), count() / 64);
                    let executions = taken + not_taken + diverged;
                    let b = Branch { executions, taken, not_taken, diverged, ..Branch::default() };
                    profile.branches.insert(site.place, b);
                }
                Watch::Access { .. } => {
                    profile.accesses.insert(site.place, Access { executions: count(), ..Access::default() });
                }
                Watch::Loaded { .. } => {
                    profile.values.insert(Where::Loaded(site.place), same(count()));
                }
                Watch::Assumed { .. } | Watch::Converted { .. } => {}
            }
        }
        let limits = Limits { registers: 255, ..Limits::default() };
        optimize(&blocks, b.id, &profile, Source::Original, &limits).is_none_or(|v| {
            let last = end + v.code.len() as u32;
            v.place(end).iter().all(|i| i.encode().is_ok() && i.target().is_none_or(|to| to < last))
        })
    })
}
