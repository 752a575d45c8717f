//! Random kernels give the same results at every level of optimisation and with few registers. `RANDOM_KERNELS` asks for more,
//! `conformance random` for the shortest form of one that differs.

use conformance::{generate, levels};
use driver::Source;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_level_gives_the_same() {
    let default = if cfg!(debug_assertions) { 50 } else { 200 };
    let count = std::env::var("RANDOM_KERNELS").ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let failures: Vec<String> = (0..count)
        .into_par_iter()
        .filter_map(|seed| match levels::check(&generate::kernel(seed)) {
            Ok(None) => None,
            Ok(Some(difference)) => Some(format!("seed {seed}: {difference}")),
            Err(why) => Some(format!("seed {seed}: {why}")),
        })
        .collect();
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

/// The comparison sees differences: fused sums are not those of level 0.
#[test]
fn contraction_is_seen() {
    let text = generate::kernel(0).text;
    let fused = levels::run(&text, &levels::options(3, true, None));
    assert_eq!(fused, levels::run(&text, &levels::options(2, true, None)));
    let differs = (0..40).any(|seed| {
        let text = generate::kernel(seed).text;
        levels::run(&text, &levels::options(3, true, None))
            != levels::run(&text, &levels::options(0, false, None))
    });
    assert!(differs, "no kernel of 40 has a sum that fuses");
}

/// At level 0 code has the order of the PTX text: lines do not decrease within a basic block.
#[test]
fn level_0_keeps_the_order() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut texts: Vec<Vec<u8>> = (0..20).map(|seed| generate::kernel(seed).text.into_bytes()).collect();
    for set in ["main", "unseen", "sweep", "features"] {
        for entry in std::fs::read_dir(data.join(set).join("ptx")).expect("test data") {
            texts.push(std::fs::read(entry.expect("test data").path()).expect("test data"));
        }
    }
    let mut failures = Vec::new();
    for text in &texts {
        let source = Source::new("a.ptx", text.as_slice());
        let image = driver::compile(&source, &levels::options(0, true, None)).expect("compiles");
        let mut starts: BTreeSet<u32> = image.functions.iter().map(|f| f.start).collect();
        for (pc, inst) in image.code.iter().enumerate() {
            if inst.op.row().unit == isa::Unit::Branch {
                starts.extend(inst.target());
                starts.insert(pc as u32 + 1);
            }
        }
        let mut last = 0;
        for pc in 0..image.code.len() as u32 {
            let line = image.place(driver::Pc(pc)).ptx_line;
            if starts.contains(&pc) {
                last = 0;
            }
            if line > 0 && line < last {
                failures
                    .push(format!("{}: line {line} behind {last}: {}", image.name, image.code[pc as usize]));
            }
            last = last.max(line);
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}
