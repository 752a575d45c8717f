//! Code that is optimized while it runs computes the same: for every level, whoever optimizes, for any number of host threads.

use conformance::levels::run_timed;
use conformance::truth::Truth;
use conformance::{generate, kernels, optimizer};
use driver::machine::optimizing::{Level, Optimized, Options, Profiling, Source, Translation, Who};
use driver::{CompileOptions, Config, Sampling, Timing};
use std::path::Path;

/// Random kernels.
const KERNELS: u64 = 12;
const ROUNDS: u32 = 10;

/// A small machine that optimizes soon.
fn tiny() -> Config {
    let mut config = Config::preset("tiny").expect("the preset");
    let o = &mut config.optimizer;
    (o.host_latency, o.host_unit, o.warp_unit, o.executions) = (200, 0, 1, 1);
    o.threshold = 100;
    config
}

fn all() -> impl Iterator<Item = Options> {
    Level::ALL
        .into_iter()
        .flat_map(|level| Who::ALL.into_iter().map(move |who| Options { level, who, copies: true }))
}

fn run(
    text: &str,
    config: &Config,
    optimize: Option<Options>,
    threads: usize,
) -> (Vec<u8>, u64, Option<Optimized>) {
    let how = CompileOptions::default();
    let timing = Timing { optimize, ..Timing::new(config) };
    let (memory, stats) = run_timed(text, &how, Some(timing), threads).expect("it runs");
    (memory, stats.report.map_or(0, |r| r.cycles), stats.optimized.map(|o| *o))
}

#[test]
fn random_programs_compute_the_same_for_every_level_and_optimizer() {
    let config = tiny();
    let mut taken = 0;
    for seed in 0..KERNELS {
        let kernel = generate::kernel_in_rounds(seed, ROUNDS);
        let (expected, _, none) = run(&kernel.text, &config, None, 1);
        assert!(none.is_none());
        for options in all() {
            let (found, _, optimized) = run(&kernel.text, &config, Some(options), 1);
            assert!(found == expected, "kernel {seed} with {options:?}");
            taken += optimized.map_or(0, |o| o.versions.iter().map(|v| v.taken).sum::<u64>());
        }
    }
    assert!(taken > 100, "versions must have run: {taken}");
}

#[test]
fn cycles_and_versions_do_not_depend_on_host_threads() {
    let config = tiny();
    let kernel = generate::kernel_in_rounds(3, ROUNDS);
    for who in Who::ALL {
        for level in [Level::Warp, Level::Cta, Level::Ppu] {
            let options = Options { level, who, copies: true };
            let one = run(&kernel.text, &config, Some(options), 1);
            for threads in [2, 4] {
                let several = run(&kernel.text, &config, Some(options), threads);
                assert!(several == one, "{threads} threads with {options:?}");
            }
        }
    }
}

#[test]
fn profiles_alone_change_no_cycle_and_inserted_instructions_do() {
    let config = tiny();
    let kernel = generate::kernel_in_rounds(5, ROUNDS);
    // Nothing is ever asked for.
    let mut watched = config.clone();
    watched.optimizer.executions = 1_000_000;
    let (expected, cycles, _) = run(&kernel.text, &config, None, 1);
    let options = Options { level: Level::Cta, who: Who::Host, copies: true };
    let (found, same, optimized) = run(&kernel.text, &watched, Some(options), 1);
    assert!(found == expected);
    assert_eq!(same, cycles);
    assert_eq!(optimized.map(|o| o.requests), Some(0));
    watched.optimizer.profiling = Profiling::Instructions;
    let (found, more, _) = run(&kernel.text, &watched, Some(options), 1);
    assert!(found == expected);
    assert!(more > cycles, "{more} cycles with instructions for profiles, {cycles} without");
}

#[test]
fn replacing_code_invalidates_caches_and_costs_what_it_costs() {
    let config = tiny();
    let kernel = generate::kernel_in_rounds(5, ROUNDS);
    for who in Who::ALL {
        let options = Options { level: Level::Cta, who, copies: true };
        let (_, _, optimized) = run(&kernel.text, &config, Some(options), 1);
        let o = optimized.expect("it was optimized");
        // The first warp at a barrier has little time where there are two that do the same.
        assert!(o.invalidated > 0 || who == Who::EarlyWarp);
        assert_eq!(o.slots > 0, who != Who::Host, "only warps take issue slots");
        assert!(o.versions.iter().all(|v| v.origin.len() == v.instructions as usize));
    }
}

#[test]
fn translation_can_wait_and_takes_its_time() {
    let kernel = generate::kernel_in_rounds(5, ROUNDS);
    let first = |translation: Translation| {
        let mut config = tiny();
        config.optimizer.translation = translation;
        config.optimizer.host_unit = 10;
        let options = Options { level: Level::Cta, who: Who::Host, copies: true };
        let (_, _, optimized) = run(&kernel.text, &config, Some(options), 1);
        let o = optimized.expect("it was optimized");
        (o.host_cycles, o.versions.first().map(|v| v.at))
    };
    let (load, demand, instance) =
        (first(Translation::Load), first(Translation::Demand), first(Translation::Instance));
    assert!(load.0 < demand.0, "what is translated at load is not translated later: {load:?} {demand:?}");
    assert!(demand.0 <= instance.0);
    assert!(load.1 >= demand.1, "nothing can be optimized before it is translated");
}

#[test]
fn versions_start_from_what_the_configuration_says() {
    let kernel = generate::kernel_in_rounds(5, ROUNDS);
    let run_from = |source: Source| {
        let mut config = tiny();
        (config.optimizer.source, config.optimizer.host_unit, config.optimizer.threshold) = (source, 1, 0);
        let options = Options { level: Level::Cta, who: Who::Host, copies: true };
        let (memory, _, optimized) = run(&kernel.text, &config, Some(options), 1);
        let o = optimized.expect("it was optimized");
        assert!(o.versions.iter().any(|v| v.executions > 0), "{source:?}");
        (memory, o.host_cycles, o.requests)
    };
    let all = [Source::Bytecode, Source::Block, Source::Mix].map(run_from);
    assert!(all.iter().all(|a| a.0 == all[0].0), "results are the same");
    // Every request that is new pays for translating its block again.
    assert!(all[0].1 > all[1].1, "{} cycles of the host, {} from blocks", all[0].1, all[1].1);
    assert!(all.iter().all(|a| a.2 > 0));
}

#[test]
fn samples_of_versions_are_those_of_the_program() {
    let kernel = generate::kernel_in_rounds(5, ROUNDS);
    let (config, mut sampling) = (tiny(), Sampling::default());
    sampling.settings.period = 16;
    let optimize = Some(Options { level: Level::Cta, who: Who::Host, copies: true });
    let timing = Timing { optimize, sampling: Some(&sampling), ..Timing::new(&config) };
    let (_, stats) = run_timed(&kernel.text, &CompileOptions::default(), Some(timing), 1).expect("it runs");
    let instructions = stats.report.expect("timed").stalls.len();
    let sampled = *stats.sampled.expect("sampled");
    let places: Vec<u32> =
        driver::trace::record::read_all(sampled.form, &sampled.bytes).map(|r| r.instruction()).collect();
    assert!(places.iter().any(|&n| n as usize >= instructions), "some are of versions");
    let samples = driver::profile::samples("cycles".into(), instructions, &[sampled], 0);
    assert_eq!(samples.records, places.len() as u64, "all have a place in the program");
    assert_eq!(samples.counts.iter().flatten().map(|&n| u64::from(n)).sum::<u64>(), samples.records);
}

/// Kernels of more instructions than this are left to `conformance optimizer`.
const MOST: f64 = 4e5;

/// All kernels whose results a GPU gave, each with the next level and optimizer in turn; those with barriers with several.
#[test]
fn kernels_give_the_gpus_results() {
    let mut config = Config::preset("h200").expect("the preset");
    config.optimizer = tiny().optimizer;
    let mut turns = all().collect::<Vec<_>>().into_iter().cycle();
    let (mut failures, mut entered) = (Vec::new(), 0u32);
    for set in ["optimizer", "main", "sweep", "features"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(set);
        let (mut list, expected) = kernels::load(&dir).expect("the kernels");
        list.retain(|k| Truth::of(&expected, &k.name).instructions().is_none_or(|n| n <= MOST));
        for kernel in &list {
            let text =
                std::fs::read_to_string(dir.join(format!("ptx/{}.ptx", kernel.name))).expect("its PTX");
            let times = if text.contains("bar.sync") || text.contains("barrier.sync") { 4 } else { 1 };
            for options in turns.by_ref().take(times) {
                match optimizer::cycles(kernel, &expected, &config, Some(options), 0) {
                    Ok((_, done)) => {
                        let mut versions = done.iter().flat_map(|o| &o.versions);
                        entered += u32::from(versions.any(|v| v.executions > 0));
                    }
                    Err(e) => failures.push(format!("{} with {options:?}: {e}", kernel.name)),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
    assert!(entered >= 8, "of {entered} kernels only were versions executed");
}
