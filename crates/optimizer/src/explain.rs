//! A version as text, for people: what the block was, what was seen of it, what is assumed, and what became of it.

use crate::blocks::Blocks;
use crate::profile::{Profile, Where};
use crate::version::{Link, Version};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Before and after, with the profile behind it.
pub fn explain(blocks: &Blocks, profile: &Profile, version: &Version) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, blocks, profile, version);
    out
}

fn write(out: &mut String, blocks: &Blocks, profile: &Profile, version: &Version) -> std::fmt::Result {
    let Some(block) = blocks.blocks.get(version.block as usize) else { return Ok(()) };
    writeln!(
        out,
        "block {} at {:#x}: {} instructions became {}, {} registers, {} cycles shorter",
        block.id,
        block.entry,
        block.places.len(),
        version.code.len(),
        version.registers,
        version.gain
    )?;
    writeln!(out, "\nbefore, entered {} times", profile.entries)?;
    for &place in &block.places {
        let Some(inst) = blocks.inst(place) else { continue };
        write!(out, "  {place:04x}  {inst}")?;
        if let Some(b) = profile.branches.get(&place) {
            write!(
                out,
                "  // {} times: {} taken, {} not, {} parted",
                b.executions, b.taken, b.not_taken, b.diverged
            )?;
        }
        if let Some(a) = profile.accesses.get(&place) {
            write!(out, "  // {} times, {} sectors, {} again", a.executions, a.sectors, a.repeated)?;
        }
        if let Some(v) = profile.values.get(&Where::Loaded(place)).filter(|v| v.same > 0) {
            write!(out, ", {:#x} {} times", v.last, v.same)?;
        }
        writeln!(out)?;
    }
    let mut assumed: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for a in &version.assumptions {
        assumed.entry(a.check).or_default().push(a.kind.to_string());
    }
    if !assumed.is_empty() {
        writeln!(out, "\nassumed")?;
        for (check, kinds) in &assumed {
            for kind in kinds {
                let failed = profile.failures.get(kind).copied().unwrap_or(0);
                write!(out, "  {kind}; checked at +{check:x}")?;
                writeln!(
                    out,
                    "{}",
                    if failed > 0 { format!(", failed {failed} times") } else { String::new() }
                )?;
            }
        }
    }
    if !version.done.is_empty() {
        writeln!(out, "\ndone")?;
        version.done.iter().try_for_each(|d| writeln!(out, "  {d}"))?;
    }
    writeln!(out, "\nafter")?;
    let links: BTreeMap<u32, Link> = version.links.iter().copied().collect();
    for (n, (inst, origin)) in (0u32..).zip(version.code.iter().zip(&version.origin)) {
        let mut inst = *inst;
        let link = links.get(&n);
        if let Some(Link::Inside(to) | Link::Original(to)) = link {
            inst.set_target(*to);
        }
        let side = match link {
            Some(Link::Inside(_)) => "  // in this version",
            Some(Link::Original(_)) => "  // in the original",
            None => "",
        };
        writeln!(out, "  +{n:03x}  {origin:04x}  {inst}{side}")?;
    }
    Ok(())
}
