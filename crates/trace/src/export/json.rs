//! The profile as JSON, by names, for other programs.

use crate::advice;
use crate::profile::{Profile, ranked};
use crate::record::INSTRUCTION_BYTES;
use crate::stall::StallCycles;
use serde_json::{Map, Value, json};

/// Warp-cycles by reason's name, the longest first.
fn reasons(stalls: &StallCycles) -> Value {
    Value::Object(ranked(stalls).into_iter().map(|(s, n)| (s.name().to_owned(), json!(n))).collect())
}

pub fn value(p: &Profile) -> Value {
    let metrics: Map<String, Value> = p
        .sections
        .iter()
        .flat_map(|s| &s.metrics)
        .map(|m| {
            let is_whole = m.value.fract() == 0.0 && m.value.abs() < 9e15;
            (m.name.clone(), if is_whole { json!(m.value as i64) } else { json!(m.value) })
        })
        .collect();
    let code: Vec<Value> = p
        .code
        .iter()
        .map(|i| {
            let frames: Vec<String> = i
                .frames
                .iter()
                .map(|f| format!("{}:{}", p.files.get(f.file as usize).map_or("?", |t| t.name.as_str()), f.line))
                .collect();
            json!({
                "address": i.pc * INSTRUCTION_BYTES, "text": i.text, "function": i.function, "ptx_line": i.ptx_line,
                "source": frames, "executed": i.executed(), "warp_cycles": i.cycles(), "stalls": reasons(&i.stalls),
                "work": i.work,
            })
        })
        .collect();
    let lines: Vec<Value> = p
        .source_lines()
        .iter()
        .map(|(&(file, line), l)| {
            json!({
                "file": p.files.get(file as usize).map(|t| &t.name), "line": line, "executed": l.executed,
                "warp_cycles": l.cycles(), "stalls": reasons(&l.stalls),
            })
        })
        .collect();
    let causes: Vec<Value> = p
        .causes
        .iter()
        .map(|c| {
            json!({
                "address": c.pc * INSTRUCTION_BYTES, "reason": c.reason, "link": c.link,
                "cause": c.cause * INSTRUCTION_BYTES, "warp_cycles": c.cycles, "count": c.count,
            })
        })
        .collect();
    json!({
        "kernel": p.kernel, "machine": p.machine, "launch": p.launch, "cycles": p.cycles, "seconds": p.seconds(),
        "metrics": metrics, "stalls": reasons(&p.stalls()), "lines": lines, "code": code, "causes": causes,
        "advice": advice::of(p), "timeline": p.timeline, "samples": p.samples,
        "versions": p.versions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::sample;

    #[test]
    fn numbers_are_found_by_name() {
        let v = value(&sample());
        assert_eq!(v["metrics"]["cycles"], 4000);
        assert_eq!(v["code"][2]["stalls"]["long_scoreboard"], 30_000);
        assert_eq!(v["code"][2]["source"], json!(["inline.h:3", "dir/scale.cu:2"]));
        assert_eq!(v["causes"][0]["cause"], 16);
        assert_eq!(v["lines"][2]["warp_cycles"], 30_164);
    }
}
