//! A bounded run of the fuzz targets on seeded mutations: no input may panic or hang.

use conformance::fuzz::{Mutator, commands, image, ptx_text, run, trace};
use driver::{CompileOptions, Image, Source};
use machine::command::{Caches, Command, Task};
use std::path::Path;

/// Mutations of each test; `FUZZ_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000)
}

fn corpus() -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    [
        "main/ptx/saxpy.ptx",
        "main/ptx/reduce_shuffle.ptx",
        "main/ptx/bfs_level.ptx",
        "main/ptx/blackscholes.ptx",
        "main/ptx/matmul_tiled.ptx",
        "sweep/ptx/const_divergent.ptx",
        "sweep/ptx/mix_shuffle.ptx",
    ]
    .iter()
    .map(|name| std::fs::read(data.join(name)).expect("test data"))
    .collect()
}

#[test]
fn damaged_ptx() {
    let corpus = corpus();
    let mut mutator = Mutator::new(1);
    for n in 0..rounds() {
        let text = &corpus[n % corpus.len()];
        ptx_text(&mutator.mutate(text, &corpus[(n + 1) % corpus.len()]));
    }
}

fn images() -> Vec<Image> {
    let compiled = |text: &Vec<u8>| {
        let source = Source::new("corpus.ptx", text.as_slice());
        driver::compile(&source, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"))
    };
    corpus().iter().map(compiled).collect()
}

#[test]
fn damaged_images() {
    let images: Vec<Vec<u8>> = images().iter().map(|i| i.to_bytes().expect("encodable")).collect();
    let mut mutator = Mutator::new(2);
    for n in 0..rounds() {
        let from = &images[n % images.len()];
        let mut bytes = from[..20].to_vec();
        bytes.extend(mutator.mutate(&from[20..], &images[(n + 1) % images.len()][20..]));
        image(&bytes);
    }
}

/// Images whose form is right and whose code is not: single bits of instruction words are flipped.
#[test]
fn damaged_code() {
    let images = images();
    let mut mutator = Mutator::new(3);
    let mut ran = 0;
    for n in 0..rounds() {
        let mut damaged = images[n % images.len()].clone();
        for _ in 0..=mutator.below(3) {
            let at = mutator.below(damaged.code.len());
            let word = damaged.code[at].encode().expect("encodable") ^ 1 << mutator.below(128);
            if let Ok(inst) = isa::Inst::decode(word) {
                damaged.code[at] = inst;
            }
        }
        if damaged.validate().is_ok() {
            ran += 1;
            run(damaged);
        }
    }
    assert!(ran * 4 > rounds(), "only {ran} of {} programs were valid", rounds());
}

#[test]
fn damaged_commands() {
    let task = |launch, ctas, threads| Task {
        launch,
        priority: launch as u8,
        ctas,
        threads,
        registers: 32,
        shared_bytes: 2048 * launch,
        barriers: 1,
        ..Task::default()
    };
    let mut words = Vec::new();
    for command in [
        Command::Invalidate(Caches::ALL),
        Command::SetSharedSplit { bytes: 16 << 10 },
        Command::Launch(task(0, 70, 128)),
        Command::Launch(task(1, 9, 1024)),
        Command::WaitForIdle,
        Command::Notify { value: 1 },
        Command::Launch(task(2, u64::MAX, 33)),
        Command::Nop,
    ] {
        command.encode(&mut words);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    commands(&bytes);
    let mut mutator = Mutator::new(4);
    for _ in 0..rounds() {
        commands(&mutator.mutate(&bytes, &bytes));
    }
}

#[test]
fn damaged_traces() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/saxpy/saxpy.toml");
    let file = driver::LaunchFile::load(&file).unwrap_or_else(|e| panic!("{e}"));
    let config = machine::Config::preset("tiny").expect("a preset");
    let session = driver::Session::new(&file, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let timing = driver::Timing { detail: true, ..driver::Timing::new(&config) };
    let options = driver::LaunchOptions { timing: Some(timing), ..Default::default() };
    let stats = session.launch(0, &options).unwrap_or_else(|e| panic!("{e}"));
    let mut profile = session.profile(0, &config, &stats, &[]).expect("a profile");
    // Texts are most of the bytes and the least of the danger.
    profile.ptx.lines.truncate(3);
    profile.files.iter_mut().for_each(|f| f.lines.truncate(3));
    let mut recorder = ::trace::file::Recorder::new();
    recorder.profile(&profile).expect("written");
    recorder.records(::trace::record::Form::default(), &[1; 80]);
    let bytes = recorder.finish();
    assert!(::trace::file::read(&bytes).is_ok());
    let mut mutator = Mutator::new(5);
    for _ in 0..rounds() {
        let mut damaged = bytes[..24].to_vec();
        damaged.extend(mutator.mutate(&bytes[24..], &bytes));
        // The profile's length as it is now, so that the damage reaches its reader.
        let length = damaged.len() as u64 - 24;
        damaged[12..20].copy_from_slice(&length.to_le_bytes());
        trace(&damaged);
    }
}
