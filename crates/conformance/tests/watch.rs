//! Watching changes nothing: cycles, counters and results are those of a launch that nobody watches. And what is seen adds
//! up: timelines to the cycles by reason, samples to the same shares.

use conformance::kernels::load;
use conformance::truth::Truth;
use driver::machine::sm::trace_cell::{Drain, Event, Settings};
use driver::{CompileOptions, LaunchFile, LaunchOptions, LaunchStats, Sampling, Session, Timing};
use machine::Config;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use trace::distance::{Weights, total_variation};
use trace::record::read_all;

fn kernels(set: &str, most: f64) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(set);
    let (kernels, results) = load(&dir).expect("test data");
    let is_small = |name: &str| Truth::of(&results, name).instructions().is_some_and(|n| n <= most);
    kernels
        .iter()
        .filter(|k| is_small(&k.name))
        .map(|k| dir.join("kernels").join(format!("{}.toml", k.name)))
        .collect()
}

/// Runs all launches of a file; what they did, and hashes of the results.
fn run(path: &Path, detail: bool, sampling: Option<&Sampling>) -> (Vec<LaunchStats>, Vec<String>) {
    let file = LaunchFile::load(path).unwrap_or_else(|e| panic!("{e}"));
    let config = Config::preset("h200").expect("the preset");
    let session = Session::new(&file, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let timing = Timing { cold: true, detail, sampling, ..Timing::new(&config) };
    let options = LaunchOptions { threads: 1, timing: Some(timing), ..LaunchOptions::default() };
    let launch = |n| session.launch(n, &options).unwrap_or_else(|e| panic!("{e}"));
    let stats = (0..file.launches.len()).map(launch).collect();
    let digest = |(n, _, _)| session.digest(n).expect("a result").sha256;
    (stats, file.outputs().map(digest).collect())
}

fn every(period: u64) -> Sampling {
    let mut sampling = Sampling::default();
    sampling.settings.period = period;
    sampling
}

#[test]
fn nobody_notices_that_they_are_watched() {
    let mut paths = kernels("main", f64::INFINITY);
    paths.extend(kernels("sweep", f64::INFINITY));
    assert_eq!(paths.len(), 14 + 55, "every kernel");
    // Records of instructions that lack more than one thing.
    let several = AtomicUsize::new(0);
    paths.par_iter().for_each(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let (plain, results) = run(path, false, None);
        let (watched, same) = run(path, true, Some(&every(32)));
        assert_eq!(results, same, "{name}");
        for (a, b) in plain.iter().zip(&watched) {
            assert_eq!(a.report, b.report, "{name}: cycles, counters and stalls");
            let report = b.report.as_ref().expect("timed");
            let detail = b.detail.as_ref().expect("watched");
            let mut seen = [0; machine::stall::STALLS];
            detail.timeline.states.iter().for_each(|s| seen.iter_mut().zip(s).for_each(|(sum, n)| *sum += n));
            assert_eq!(seen, report.stall_cycles(), "{name}: the timeline has every cycle");
            let sectors: u64 = detail.work.iter().map(|w| w.sectors).sum();
            assert_eq!(sectors, report.counters.l1_sectors, "{name}");
            let threads: u64 = detail.work.iter().map(|w| w.threads).sum();
            assert_eq!(threads, report.counters.thread_instructions, "{name}");
            let sampled = b.sampled.as_ref().expect("sampled");
            let more = read_all(sampled.form, &sampled.bytes).filter(|r| r.stalls.count_ones() > 1).count();
            several.fetch_add(more, Ordering::Relaxed);
            for c in &detail.causes {
                let waited = report.stalls[c.pc as usize][c.reason as usize];
                assert!(c.cycles <= waited, "{name}: {c:?} of {waited}");
            }
        }
    });
    assert!(several.into_inner() > 0, "a vector has every reason that holds");
}

/// Shares by instruction and reason: exact, and sampled.
fn shares(stats: &LaunchStats) -> (Weights<(u32, usize)>, Weights<(u32, usize)>) {
    let (mut exact, mut sampled) = (Weights::new(), Weights::new());
    for (pc, row) in stats.report.as_ref().expect("timed").stalls.iter().enumerate() {
        for (reason, &n) in row.iter().enumerate().filter(|(_, n)| **n > 0) {
            exact.insert((pc as u32, reason), n as f64);
        }
    }
    let s = stats.sampled.as_ref().expect("sampled");
    for r in read_all(s.form, &s.bytes) {
        let reason = r.reason().expect("a reason");
        *sampled.entry((r.instruction(), reason as usize)).or_insert(0.0) += 1.0;
    }
    (exact, sampled)
}

#[test]
fn samples_come_near_the_exact_profile() {
    let path =
        &kernels("main", 2e6).into_iter().find(|p| p.ends_with("matmul_tiled.toml")).expect("a kernel");
    let distance = |sampling: &Sampling| {
        let (stats, _) = run(path, false, Some(sampling));
        let s = stats[0].sampled.as_ref().expect("sampled");
        assert_eq!(s.lost, 0);
        let (exact, sampled) = shares(&stats[0]);
        (total_variation(&exact, &sampled), s.records)
    };
    let (rare, few) = distance(&every(4001));
    let (often, many) = distance(&every(61));
    assert!(many > 40 * few, "{many} and {few} records");
    assert!(often < 0.03 && often < rare / 2.0, "{often} with {many} records, {rare} with {few}");
}

#[test]
fn other_ways_to_sample() {
    let path =
        &kernels("main", 4e5).into_iter().find(|p| p.ends_with("histogram_shared.toml")).expect("a kernel");
    let (plain, results) = run(path, false, None);
    let cycles = |stats: &[LaunchStats]| stats[0].report.as_ref().expect("timed").cycles;
    let take = |change: &dyn Fn(&mut Settings)| {
        let mut sampling = every(32);
        change(&mut sampling.settings);
        let (stats, same) = run(path, false, Some(&sampling));
        assert_eq!(results, same);
        let sampled = stats[0].sampled.clone().expect("sampled");
        (sampled, cycles(&stats))
    };
    // Through the load-store units the program gets slower.
    let (sampled, slower) = take(&|s| s.drain = Drain::LoadStore);
    assert!(sampled.records > 1000 && slower > cycles(&plain), "{slower} {}", cycles(&plain));
    let (narrow, same) = take(&|s| (s.drain, s.period) = (Drain::Stream, 4));
    assert_eq!(same, cycles(&plain));
    assert!(narrow.lost > 0, "64 warps every 4 cycles do not fit 8 bytes a cycle");
    let (turns, _) = take(&|s| s.in_turn = true);
    assert!(turns.records > 0 && turns.records < sampled.records, "one warp of each scheduler");
    for (event, period) in [(Event::CacheMiss, 64), (Event::Branch, 16), (Event::Barrier, 4)] {
        let (by_event, same) = take(&|s| (s.event, s.period) = (Some(event), period));
        assert!(by_event.records > 0 && same == cycles(&plain), "{event:?}");
    }
    let (two, _) = take(&|s| s.only([4, 5]));
    let all: Vec<u16> = read_all(two.form, &two.bytes).map(|r| r.sm).collect();
    assert!(!all.is_empty() && all.iter().all(|sm| [4, 5].contains(sm)));
}
