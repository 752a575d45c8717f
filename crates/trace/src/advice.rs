//! Rules that find what holds a kernel up. Each names the line and estimates the time that would be saved.

use crate::profile::{Instruction, Profile};
use crate::stall::Stall;
use serde::Serialize;
use std::collections::BTreeMap;

/// Something to do about a kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Advice {
    /// The rule's name, the same in every run.
    pub rule: &'static str,
    pub title: String,
    pub text: String,
    /// The instruction that it is about.
    pub pc: Option<u32>,
    /// The share of the launch's time that it could save: an estimate, between 0 and 1.
    pub gain: f64,
}

/// Estimates below this are noise.
const LEAST_GAIN: f64 = 0.01;
/// Sectors over the least possible from which on an access counts as scattered.
const SCATTERED: f64 = 1.3;
/// Passes beyond the first for each request from which on banks count as conflicting.
const CONFLICTING: f64 = 0.2;
/// Active threads of a warp below which it counts as diverged.
const DIVERGED: f64 = 28.0;

/// Everything that the rules find, the largest gain first.
pub fn of(p: &Profile) -> Vec<Advice> {
    let mut found = Vec::new();
    scattered(p, &mut found);
    bank_conflicts(p, &mut found);
    occupancy(p, &mut found);
    divergence(p, &mut found);
    tail(p, &mut found);
    small_grid(p, &mut found);
    barrier(p, &mut found);
    latency(p, &mut found);
    found.retain(|a| a.gain >= LEAST_GAIN);
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.pc.cmp(&b.pc)).then(a.rule.cmp(b.rule)));
    found
}

/// Share of all warp-cycles that an instruction made warps wait, by reasons: its own queues, and those that wait for its
/// result.
fn blame(p: &Profile, i: &Instruction, own: &[Stall], caused: &[Stall]) -> f64 {
    let own: u64 = own.iter().map(|&s| i.stalls[s as usize]).sum();
    let caused: u64 = p
        .causes
        .iter()
        .filter(|c| c.cause == i.pc && c.pc != i.pc && caused.contains(&c.reason))
        .map(|c| c.cycles)
        .sum();
    ((own + caused) as f64 / p.warp_cycles().max(1) as f64).min(1.0)
}

fn scattered(p: &Profile, found: &mut Vec<Advice>) {
    for i in &p.code {
        let w = &i.work;
        if w.sectors == 0 || (w.sectors as f64) < SCATTERED * w.ideal_sectors.max(1) as f64 {
            continue;
        }
        let excess = 1.0 - w.ideal_sectors as f64 / w.sectors as f64;
        let share =
            blame(p, i, &[Stall::LgThrottle], &[Stall::LongScoreboard, Stall::LgThrottle, Stall::Drain]);
        found.push(Advice {
            rule: "uncoalesced",
            title: "Uncoalesced access".into(),
            text: format!(
                "Each request touches {:.1} sectors of 32 bytes where {:.1} would do: neighbouring threads should use \
                 neighbouring addresses.",
                w.sectors as f64 / w.requests.max(1) as f64,
                w.ideal_sectors as f64 / w.requests.max(1) as f64,
            ),
            pc: Some(i.pc),
            gain: excess * share,
        });
    }
}

fn bank_conflicts(p: &Profile, found: &mut Vec<Advice>) {
    for i in &p.code {
        let w = &i.work;
        if w.requests == 0 || (w.conflicts as f64) < CONFLICTING * w.requests as f64 {
            continue;
        }
        let excess = w.conflicts as f64 / (w.conflicts + w.requests) as f64;
        let share = blame(p, i, &[Stall::MioThrottle], &[Stall::ShortScoreboard, Stall::MioThrottle]);
        found.push(Advice {
            rule: "bank_conflicts",
            title: "Bank conflicts in shared memory".into(),
            text: format!(
                "A request takes {:.1} passes through the banks: threads of a warp use different rows of one bank. Padding \
                 the array by one element a row spreads them.",
                1.0 + w.conflicts as f64 / w.requests as f64,
            ),
            pc: Some(i.pc),
            gain: excess * share,
        });
    }
}

/// Share of warp-cycles that more warps could hide.
fn latency_share(p: &Profile) -> f64 {
    let stalls = p.stalls();
    let hidden = [Stall::Wait, Stall::LongScoreboard, Stall::ShortScoreboard, Stall::BranchResolving];
    let cycles: u64 = hidden.iter().map(|&s| stalls[s as usize]).sum();
    cycles as f64 / p.warp_cycles().max(1) as f64
}

fn occupancy(p: &Profile, found: &mut Vec<Advice>) {
    let Some(percent) = p.metric("theoretical_occupancy_pct").filter(|&o| o < 60.0 && o > 0.0) else {
        return;
    };
    // What is bound by bandwidth or issue slots does not get faster with more warps.
    let busy = ["memory_throughput_pct", "compute_throughput_pct"];
    let busy = busy.iter().filter_map(|m| p.metric(m)).fold(0.0, f64::max);
    let gain = (latency_share(p) * (1.0 - percent / 100.0)).min(1.0 - busy / 100.0).max(0.0) / 2.0;
    let what = match p.launch.limiter.as_str() {
        "registers" => "fewer registers a thread (--max-registers, or less unrolling)",
        "shared memory" => "less shared memory a CTA",
        "CTA slots" => "larger CTAs",
        "barriers" => "fewer barriers a CTA",
        _ => "CTAs whose warps fill the SM evenly",
    };
    found.push(Advice {
        rule: "occupancy",
        title: "Low occupancy".into(),
        text: format!(
            "An SM holds {} CTAs, {percent:.0} % of its warps, limited by {}: {what} would let more warps hide the waits.",
            p.launch.ctas_per_sm,
            if p.launch.limiter.is_empty() { "its warps" } else { &p.launch.limiter },
        ),
        pc: None,
        gain,
    });
}

fn divergence(p: &Profile, found: &mut Vec<Advice>) {
    let all = p.executed().max(1) as f64;
    let issue = p.metric("issue_slots_busy_pct").map_or(1.0, |v| v / 100.0);
    let mut lines: Vec<(f64, f64, f64, u32)> = Vec::new();
    for line in p.source_lines().values().filter(|l| l.work.threads > 0 && l.executed > 0) {
        let active = line.work.threads as f64 / line.executed as f64;
        if active < DIVERGED.min(f64::from(p.launch.threads())) {
            let gain = (1.0 - active / 32.0) * line.executed as f64 / all * issue;
            lines.extend(line.instructions.first().map(|&pc| (gain, active, line.executed as f64 / all, pc)));
        }
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.3.cmp(&b.3)));
    for (gain, active, share, pc) in lines.into_iter().take(3) {
        found.push(Advice {
            rule: "divergence",
            title: "Diverged threads".into(),
            text: format!(
                "On average {active:.1} of 32 threads are active here, in {:.0} % of all executed instructions: give threads of \
                 one warp the same way through the code.",
                100.0 * share
            ),
            pc: Some(pc),
            gain,
        });
    }
}

fn tail(p: &Profile, found: &mut Vec<Advice>) {
    let Some(waves) = p.metric("waves").filter(|&w| w > 1.0 && w < 12.0) else { return };
    let rest = waves - waves.floor();
    if rest == 0.0 || rest > 0.8 {
        return;
    }
    // The last wave takes as long as a full one.
    let gain = (1.0 - rest) / waves.ceil();
    found.push(Advice {
        rule: "tail",
        title: "Tail effect".into(),
        text: format!(
            "The grid is {waves:.2} waves of CTAs: the last one fills only {:.0} % of the machine. Another number of CTAs, or \
             smaller ones, would share the work evenly.",
            100.0 * rest
        ),
        pc: None,
        gain,
    });
}

fn small_grid(p: &Profile, found: &mut Vec<Advice>) {
    let (ctas, sms) = (p.launch.ctas(), u64::from(p.machine.sms));
    if ctas == 0 || ctas >= sms {
        return;
    }
    found.push(Advice {
        rule: "small_grid",
        title: "Grid smaller than the machine".into(),
        text: format!("{ctas} CTAs use {ctas} of {sms} SMs: split the work into more CTAs."),
        pc: None,
        gain: 1.0 - ctas as f64 / sms as f64,
    });
}

/// The line where a reason takes longest: its worst instruction, and the line's share of all warp-cycles.
fn worst(p: &Profile, reason: Stall) -> Option<(&Instruction, f64)> {
    let mut lines: BTreeMap<String, (u64, &Instruction)> = BTreeMap::new();
    for i in p.code.iter().filter(|i| i.stalls[reason as usize] > 0) {
        let row = lines.entry(p.place(i)).or_insert((0, i));
        row.0 += i.stalls[reason as usize];
        if i.stalls[reason as usize] > row.1.stalls[reason as usize] {
            row.1 = i;
        }
    }
    let (cycles, i) = lines.into_values().max_by_key(|(n, i)| (*n, std::cmp::Reverse(i.pc)))?;
    Some((i, cycles as f64 / p.warp_cycles().max(1) as f64))
}

/// Where the longest cause of an instruction's waits stands.
fn because(p: &Profile, i: &Instruction, reason: Stall) -> String {
    let cause = p.causes_of(i.pc).into_iter().find(|c| c.reason == reason && c.cause != i.pc);
    match cause.and_then(|c| p.at(c.cause).map(|from| (c, from))) {
        Some((c, from)) => format!(" `{}` at {} {}.", from.text, p.place(from), c.link.words()),
        None => String::new(),
    }
}

fn barrier(p: &Profile, found: &mut Vec<Advice>) {
    let Some((i, share)) = worst(p, Stall::Barrier).filter(|(_, share)| *share > 0.1) else { return };
    found.push(Advice {
        rule: "barrier",
        title: "Warps wait at a barrier".into(),
        text: format!(
            "{:.0} % of warp time waits here for the last warp of the CTA.{} Even out the work before the barrier, or use \
             smaller CTAs.",
            100.0 * share,
            because(p, i, Stall::Barrier)
        ),
        pc: Some(i.pc),
        gain: share / 2.0,
    });
}

fn latency(p: &Profile, found: &mut Vec<Advice>) {
    let Some((i, share)) = worst(p, Stall::LongScoreboard).filter(|(_, share)| *share > 0.25) else { return };
    let busy = p.metric("dram_throughput_pct").unwrap_or(0.0);
    if busy > 70.0 {
        return;
    }
    found.push(Advice {
        rule: "memory_latency",
        title: "Waits for memory".into(),
        text: format!(
            "{:.0} % of warp time waits here for data from memory, while DRAM is {busy:.0} % busy.{} Issue loads earlier, several \
             at a time, or use the data more often.",
            100.0 * share,
            because(p, i, Stall::LongScoreboard)
        ),
        pc: Some(i.pc),
        gain: share * (1.0 - busy / 100.0) / 3.0,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{Section, Unit};
    use crate::profile::tests::sample;

    fn rules(p: &Profile) -> Vec<&'static str> {
        of(p).iter().map(|a| a.rule).collect()
    }

    #[test]
    fn rules_fire_where_they_should() {
        let p = sample();
        let found = of(&p);
        let coalescing = found.iter().find(|a| a.rule == "uncoalesced").expect("32 sectors a request");
        assert_eq!(coalescing.pc, Some(1));
        // Nearly all time waits for the load, and an eighth of its sectors would do.
        assert!(coalescing.gain > 0.8 && coalescing.gain < 0.88, "{coalescing:?}");
        assert!(coalescing.text.contains("32.0 sectors"));
        let latency = found.iter().find(|a| a.rule == "memory_latency").expect("waits for memory");
        assert_eq!(latency.pc, Some(2));
        assert!(latency.text.contains("LDG.E"), "{}", latency.text);
        assert!(rules(&p).contains(&"occupancy"));
        assert!(!rules(&p).contains(&"bank_conflicts") && !rules(&p).contains(&"divergence"));
        assert!(found.windows(2).all(|w| w[0].gain >= w[1].gain));
    }

    #[test]
    fn rules_stay_silent_where_they_should() {
        let mut p = sample();
        p.code[1].work.ideal_sectors = 2048;
        assert!(!rules(&p).contains(&"uncoalesced"));
        p.code[1].work = crate::profile::Work { requests: 64, conflicts: 64 * 31, ..Default::default() };
        p.code[2].work.threads = 64 * 4;
        p.code[1].stalls[Stall::MioThrottle as usize] = 30_000;
        p.code[3].stalls[Stall::Barrier as usize] = 30_000;
        p.sections.push(Section::new("x").row("waves", "", Unit::Number, 1.0));
        let found = rules(&p);
        for rule in ["bank_conflicts", "divergence", "barrier"] {
            assert!(found.contains(&rule), "{rule} {found:?}");
        }
        p.sections.clear();
        p.sections.push(Section::new("x").row("waves", "", Unit::Number, 2.1).row(
            "theoretical_occupancy_pct",
            "",
            Unit::Percent,
            100.0,
        ));
        p.machine.sms = 132;
        let found = of(&p);
        assert!(!found.iter().any(|a| a.rule == "occupancy"));
        let tail = found.iter().find(|a| a.rule == "tail").expect("a tail");
        assert!((tail.gain - 0.3).abs() < 1e-9);
        assert!(found.iter().any(|a| a.rule == "small_grid" && a.gain > 0.96));
        assert!(of(&Profile::default()).is_empty());
    }
}
