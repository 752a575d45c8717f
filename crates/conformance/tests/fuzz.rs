//! A bounded run of the fuzz targets on seeded mutations: no input may panic or hang.

use conformance::fuzz::{Mutator, checkpoint, commands, image, ptx_text, run, trace};
use driver::checkpoint::Done;
use driver::checkpoint::storage::Files;
use driver::{
    Checkpoint, CompileOptions, Image, Keeper, LaunchFile, LaunchOptions, Preempting, Session, Source, Timing,
};
use machine::command::{Caches, Command, Task};
use machine::ppu::{Checkpoints, Moment};
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

/// The last checkpoint of a small run, of one launch or of two at once whose CTAs are stopped on the way.
fn kept(at_once: bool) -> Vec<u8> {
    let folder = std::env::temp_dir().join(format!("warploom-fuzz-{at_once}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (path, program) = (folder.join("state"), folder.join("saxpy.ptx"));
    std::fs::write(&program, &corpus()[0]).expect("a program");
    let launch = "entry = \"saxpy\"\ngrid = [4, 1, 1]\nblock = [64, 1, 1]\n\
                arg = [{ buffer = \"f32\", count = 256, init = { fill = 1 } }, { buffer = \"f32\", count = 256 }, \
                { f32 = 2.0 }, { u32 = 256 }]\n";
    let both = format!("[[launch]]\nstream = \"a\"\n{launch}[[launch]]\nstream = \"b\"\n{launch}");
    let text = format!("ptx = \"saxpy.ptx\"\n{}", if at_once { &both } else { launch });
    let file = LaunchFile::parse(Source::new("saxpy.toml", text.as_bytes()), &folder.join("saxpy.toml"));
    let file = file.unwrap_or_else(|e| panic!("{e}"));
    let session = Session::new(&file, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let config = driver::Config::preset("tiny").expect("a configuration");
    let timing = Timing::new(&config);
    let keeper = Keeper::new(&Files, &path, 400, &session, &timing, b"").unwrap_or_else(|e| panic!("{e}"));
    let keep = |moment: &Moment<'_>| keeper.save(session.device(), &Done::default(), 0.0, moment);
    let timing = Timing { checkpoints: Some(Checkpoints { every: 400, keep: &keep }), ..timing };
    let options = LaunchOptions { timing: Some(timing), ..LaunchOptions::default() };
    if at_once {
        let own = LaunchOptions { timing: Some(Timing::new(&config)), ..LaunchOptions::default() };
        let alone = session.run_streams(&own, &Preempting::default()).unwrap_or_else(|e| panic!("{e}"));
        let begun = alone.timeline.expect("timed").launches[0].begun;
        let preempting = Preempting { stops: vec![begun + 40], ..Preempting::default() };
        let done = session.run_streams(&options, &preempting).unwrap_or_else(|e| panic!("{e}"));
        assert!(done.timeline.is_some_and(|t| !t.moves.is_empty()));
    } else {
        session.launch(0, &options).unwrap_or_else(|e| panic!("{e}"));
    }
    let bytes = std::fs::read(&path).expect("a checkpoint");
    std::fs::remove_dir_all(&folder).expect("removed");
    bytes
}

#[test]
fn damaged_checkpoints() {
    damaged_checkpoint(&kept(false), 6);
}

#[test]
fn damaged_checkpoints_of_launches_at_once() {
    damaged_checkpoint(&kept(true), 7);
}

fn damaged_checkpoint(bytes: &[u8], seed: u64) {
    checkpoint(bytes);
    assert!(Checkpoint::read("whole".into(), Box::new(std::io::Cursor::new(bytes.to_vec()))).is_ok());
    let mut mutator = Mutator::new(seed);
    for n in 0..rounds() / 10 {
        // Version and layout stay, or nothing else would be looked at; half of the time the first part is damaged.
        let part = if n % 2 == 0 { &bytes[44..bytes.len().min(4096)] } else { &bytes[44..] };
        let rest = &bytes[44 + part.len()..];
        let damaged = mutator.mutate(part, bytes);
        checkpoint(&[&bytes[..44], &damaged, rest].concat());
    }
}
