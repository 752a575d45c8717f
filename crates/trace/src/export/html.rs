//! The page: everything about the launches of a run in one file that needs no network.
//!
//! Style and script come from `assets/`; what they show is one JSON text inside the page. The script builds elements from
//! it and never markup, so nothing in a source line can become part of the page.

use super::flamegraph::{colour, escape};
use crate::advice;
use crate::compare::{Comparison, compare};
use crate::profile::{Profile, Text};
use crate::stall::{Stall, StallCycles};
use serde_json::{Value, json};

const TEMPLATE: &str = include_str!("../../assets/page.html");
const STYLE: &str = include_str!("../../assets/page.css");
const CODE_SCRIPT: &str = include_str!("../../assets/code.js");
const CHARTS_SCRIPT: &str = include_str!("../../assets/charts.js");
const PAGE_SCRIPT: &str = include_str!("../../assets/page.js");

/// Lines of a text that are shown around those that matter, where it is long.
const AROUND: usize = 40;
/// Texts up to this many lines are shown whole.
const WHOLE: usize = 1500;
/// Steps of a timeline; more cannot be told apart.
const STEPS: usize = 160;

/// A page of the launches of a run; each with the profile that it is compared to, if there is one.
pub fn page(title: &str, launches: &[(&Profile, Option<&Profile>)]) -> String {
    let reasons: Vec<Value> = Stall::ALL
        .iter()
        .map(|&s| json!({ "name": s.name(), "colour": colour(s), "meaning": s.meaning() }))
        .collect();
    let list: Vec<Value> = launches.iter().map(|(p, before)| launch(p, *before)).collect();
    let data = json!({ "title": title, "reasons": reasons, "launches": list });
    // The text must not end the element that it is in.
    let data = data.to_string().replace('<', "\\u003c");
    let script = [CODE_SCRIPT, CHARTS_SCRIPT, PAGE_SCRIPT].concat();
    TEMPLATE
        .replace("{{title}}", &escape(title))
        .replace("{{style}}", STYLE)
        .replace("{{script}}", &script)
        .replace("{{data}}", &data)
}

/// Numbers of the reasons that took time, with their warp-cycles.
fn sparse(stalls: &StallCycles) -> Value {
    stalls.iter().enumerate().filter(|(_, n)| **n > 0).map(|(r, n)| json!([r, n])).collect()
}

fn launch(p: &Profile, before: Option<&Profile>) -> Value {
    let sections: Vec<Value> = p
        .sections
        .iter()
        .map(|s| {
            let rows: Vec<Value> = s
                .metrics
                .iter()
                .map(|m| {
                    let (number, unit) = m.shown();
                    json!({ "name": m.name, "label": m.label, "number": number, "unit": unit, "value": m.value })
                })
                .collect();
            json!({ "title": s.title, "rows": rows })
        })
        .collect();
    let code: Vec<Value> = p
        .code
        .iter()
        .map(|i| {
            let w = &i.work;
            json!({
                "pc": i.pc, "text": i.text, "fn": i.function, "ptx": i.ptx_line,
                "src": i.frames.iter().map(|f| json!([f.file, f.line])).collect::<Vec<_>>(),
                "st": sparse(&i.stalls), "x": i.executed(),
                "work": [w.threads, w.requests, w.sectors, w.hits, w.ideal_sectors, w.conflicts],
            })
        })
        .collect();
    let causes: Vec<Value> = p
        .causes
        .iter()
        .map(|c| json!([c.pc, c.reason as u8, c.link.words(), c.cause, c.cycles, c.count]))
        .collect();
    let files: Vec<Value> = p
        .files
        .iter()
        .enumerate()
        .map(|(n, f)| {
            let used = p.code.iter().flat_map(|i| &i.frames).filter(|f| f.file as usize == n).map(|f| f.line);
            excerpt(f, used)
        })
        .collect();
    let advice: Vec<Value> = advice::of(p)
        .iter()
        .map(|a| {
            let place = a.pc.and_then(|pc| p.at(pc)).map(|i| p.place(i));
            json!({ "rule": a.rule, "title": a.title, "text": a.text, "pc": a.pc, "place": place, "gain": a.gain })
        })
        .collect();
    let (time, unit) = crate::metric::seconds(p.seconds());
    json!({
        "kernel": p.kernel, "machine": p.machine, "launch": p.launch, "cycles": p.cycles, "seconds": p.seconds(),
        "time": format!("{time} {unit}"),
        "sections": sections, "code": code, "causes": causes, "files": files,
        "ptx": excerpt(&p.ptx, p.code.iter().map(|i| i.ptx_line)),
        "advice": advice, "timeline": timeline(p), "samples": samples(p), "versions": versions(p),
        "compare": before.map(|b| comparison(&compare(b, p))),
    })
}

/// Versions of code, with the source line that each one's block begins at.
fn versions(p: &Profile) -> Value {
    let place = |pc: u32| p.at(pc).map(|i| p.place(i));
    let row = |v: &crate::profile::Version| {
        json!({
            "number": v.number, "block": v.block, "pc": v.entry, "place": place(v.entry), "level": v.level, "at": v.at,
            "instructions": v.instructions, "assumptions": v.assumptions, "checks": v.checks,
            "failures": v.failures, "taken": v.taken, "given_up": v.given_up, "executions": v.executions,
            "cycles": v.cycles, "before": v.cycles_before,
        })
    };
    p.versions.iter().map(row).collect()
}

/// The lines of a text that are shown, and the number of the first.
fn excerpt(text: &Text, used: impl Iterator<Item = u32>) -> Value {
    let used: Vec<usize> = used.filter(|&n| n > 0).map(|n| n as usize).collect();
    let (Some(&low), Some(&high)) = (used.iter().min(), used.iter().max()) else {
        return json!({ "name": text.name, "first": 1, "lines": [] });
    };
    let (low, high) = match text.lines.len() {
        // Not found: the numbers alone.
        0 => (low, low.max(high)),
        n if n <= WHOLE => (1, n),
        n => (low.saturating_sub(AROUND).max(1).min(n), (high + AROUND).min(n)),
    };
    let lines = text.lines.get(low - 1..high).unwrap_or_default();
    json!({ "name": text.name, "first": low, "lines": lines })
}

/// The timeline in fewer steps.
fn timeline(p: &Profile) -> Value {
    let t = &p.timeline;
    if t.step == 0 || t.states.is_empty() {
        return Value::Null;
    }
    let by = t.states.len().div_ceil(STEPS);
    let sum = |list: &[u64]| -> Vec<u64> { list.chunks(by).map(|c| c.iter().sum()).collect() };
    let states: Vec<Value> = t
        .states
        .chunks(by)
        .map(|c| {
            let mut all: StallCycles = [0; crate::STALLS];
            c.iter().for_each(|s| all.iter_mut().zip(s).for_each(|(sum, n)| *sum += n));
            sparse(&all)
        })
        .collect();
    let memory: Vec<[u64; 5]> = t
        .memory
        .chunks(by)
        .map(|c| {
            c.iter().fold([0; 5], |s, m| {
                [
                    s[0] + m.l1_sectors,
                    s[1] + m.l2_sectors,
                    s[2] + m.l2_hits,
                    s[3] + m.dram_read_bytes,
                    s[4] + m.dram_write_bytes,
                ]
            })
        })
        .collect();
    let sms: Vec<Value> =
        t.sms.iter().map(|s| json!({ "warps": sum(&s.warp_cycles), "issued": sum(&s.issued) })).collect();
    json!({ "step": t.step * by as u64, "sms": sms, "states": states, "memory": memory })
}

/// What trace cells saw of each instruction.
fn samples(p: &Profile) -> Value {
    let Some(s) = &p.samples else { return Value::Null };
    let counts: Vec<u32> =
        p.code.iter().map(|i| s.counts.get(i.pc as usize).map_or(0, |row| row.iter().sum())).collect();
    json!({
        "mode": s.mode, "records": s.records, "lost": s.lost, "passes": s.passes, "extra_cycles": s.extra_cycles,
        "counts": counts,
    })
}

fn comparison(c: &Comparison) -> Value {
    let metrics: Vec<Value> = c
        .metrics
        .iter()
        .map(|(m, pair)| {
            let mut old = m.clone();
            old.value = pair.before;
            let (before, unit) = old.shown();
            json!({
                "label": m.label, "name": m.name, "before": before, "after": m.shown().0, "unit": unit, "ratio": pair.ratio(),
                "after_unit": m.shown().1,
            })
        })
        .collect();
    let reasons: Vec<Value> = c.reasons.iter().map(|(s, p)| json!([*s as u8, p.before, p.after])).collect();
    let lines: Vec<Value> = c.lines.iter().map(|(place, _, p)| json!([place, p.before, p.after])).collect();
    json!({ "cycles": [c.cycles.before, c.cycles.after], "metrics": metrics, "reasons": reasons, "lines": lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::sample;

    #[test]
    fn the_page_is_whole() {
        let mut p = sample();
        p.files[0].lines[1] = "</script><script>alert(1)</script>".into();
        let text = page("a <page>", &[(&p, Some(&sample()))]);
        assert!(text.starts_with("<!doctype html>") && !text.contains("{{"));
        assert!(text.contains("<title>a &lt;page&gt;"));
        assert!(!text.contains("<script>alert"), "source text stays text");
        for network in ["http:", "https:", "src=", "@import", "url("] {
            let found = text.matches(network).count();
            let allowed =
                text.matches("http://www.w3.org/2000/svg").count() * usize::from(network == "http:");
            assert_eq!(found, allowed, "{network}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let text = Text { name: "x".into(), lines: (1..=5000).map(|n| n.to_string()).collect() };
        let v = excerpt(&text, [0, 2000, 2010].into_iter());
        assert_eq!((v["first"].as_u64(), v["lines"][40].as_str()), (Some(1960), Some("2000")));
        assert_eq!(v["lines"].as_array().map(Vec::len), Some(91));
        let missing = excerpt(&Text { name: "y".into(), lines: Vec::new() }, [7].into_iter());
        assert_eq!(missing["lines"], json!([]));
        let past = excerpt(&text, [9000].into_iter());
        assert!(past["lines"].is_array());
    }

    #[test]
    fn long_timelines_are_put_together() {
        let mut p = sample();
        let n = 1000;
        p.timeline.states = vec![[1; crate::STALLS]; n];
        p.timeline.memory = vec![Default::default(); n];
        p.timeline.sms[0].warp_cycles = vec![2; n];
        p.timeline.sms[0].issued = vec![1; n];
        let v = timeline(&p);
        assert_eq!(v["step"], 3500);
        let sum: u64 = v["sms"][0]["warps"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum();
        assert_eq!(sum, 2000);
    }
}
