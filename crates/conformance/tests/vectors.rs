//! Every instruction form that was measured on an H200, through the whole way: PTX, compiler, engine.

use conformance::vectors::{How, Outcome, parse, run, run_all};
use driver::machine::optimizing::{Level, Options, Who};
use driver::{Config, Device, Timing};
use rayon::prelude::*;
use std::io::Read;
use std::path::Path;

/// Executions of a form by each thread when it is optimized while it runs: by the host, or by warps, which need longer.
const ROUNDS: [u64; 2] = [8, 40];

fn unpack(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../arith/tests/data").join(name);
    let packed = std::fs::read(&path).expect("test data");
    let mut out = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(&packed[..])
        .expect("a zstd frame")
        .read_to_end(&mut out)
        .expect("zstd data");
    out
}

#[test]
fn all_forms_are_exact() {
    let forms = parse(&unpack("forms.json.zst")).expect("forms");
    let expected = unpack("forms.bin.zst");
    assert_eq!(forms.len(), 1049);
    let outcomes = run_all(&forms, &expected).expect("a device");
    let failures: Vec<String> = forms
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| **outcome != Outcome::Exact)
        .map(|(form, outcome)| format!("{}\n    {outcome:?}", form.text))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), forms.len(), failures.join("\n"));
}

/// Each form in a loop with a barrier on the timed machine, its code replaced while it runs, with levels and optimizers in turn.
#[test]
fn all_forms_are_exact_when_they_are_optimized_while_they_run() {
    let forms = parse(&unpack("forms.json.zst")).expect("forms");
    let expected = unpack("forms.bin.zst");
    let mut config = Config::preset("tiny").expect("the preset");
    let o = &mut config.optimizer;
    (o.host_latency, o.host_unit, o.warp_unit, o.warp_interval) = (100, 0, 1, 1);
    (o.translation_work, o.executions) = (0, 1);
    let turns: Vec<Options> = Level::ALL
        .into_iter()
        .flat_map(|level| Who::ALL.map(|who| Options { level, who, copies: true }))
        .collect();
    let outcomes: Vec<(Outcome, u64)> = forms
        .par_iter()
        .enumerate()
        .map_init(
            || Device::new().expect("a device"),
            |device, (n, form)| {
                let optimize = turns[n % turns.len()];
                let timing = Timing { optimize: Some(optimize), ..Timing::new(&config) };
                let rounds = ROUNDS[usize::from(optimize.who != Who::Host)];
                let how = How { rounds: Some(rounds), timing: Some(timing) };
                let (outcome, stats) = run(form, &expected, device, how);
                let done = stats.and_then(|s| s.optimized);
                // Executions count where a version of the loop was entered, and left again at a barrier.
                (outcome, done.iter().flat_map(|o| &o.versions).map(|v| v.executions).sum())
            },
        )
        .collect();
    let mut failures = Vec::new();
    for (n, (form, (outcome, entered))) in forms.iter().zip(&outcomes).enumerate() {
        let options = turns[n % turns.len()];
        if *outcome != Outcome::Exact {
            failures.push(format!("{} with {options:?}, {entered} executions: {outcome:?}", form.text));
        }
    }
    for (n, options) in turns.iter().enumerate() {
        let of_it = outcomes.iter().skip(n).step_by(turns.len());
        let (all, entered) = (of_it.clone().count(), of_it.filter(|(_, entered)| *entered > 0).count());
        // Some forms call functions, of which nothing is replaced; and the first warp at a barrier has little time.
        let least = if options.who == Who::EarlyWarp { all / 4 } else { all * 4 / 5 };
        if entered < least {
            failures.push(format!("with {options:?} versions of {entered} forms only were executed"));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), forms.len(), failures.join("\n"));
}
