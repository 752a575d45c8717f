//! From a timed launch to its profile: numbers by instruction joined with the program, its PTX and its source files.

use crate::files::{self, MAX_TEXT};
use crate::launch::Dim;
use crate::module::Module;
use crate::timing::Sampled;
use machine::distribution::Limiter;
use machine::optimizing::{Optimized, VersionReport};
use machine::{Config, Report};
use std::path::{Path, PathBuf};
use trace::correlate;
use trace::profile::{Detail, Launch, Machine, Profile, Samples, Text, Version};

/// Where the texts of a program are looked for.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Name and text of the PTX.
    pub ptx: Option<(String, String)>,
    /// Folders for source files, besides the places that the line table names.
    pub folders: Vec<PathBuf>,
}

impl Sources {
    /// The text of a source file: where the line table says, else a file of that name in one of the folders.
    fn find(&self, name: &str) -> Option<String> {
        let path = Path::new(name);
        let candidates = std::iter::once(path.to_owned())
            .chain(self.folders.iter().map(|f| f.join(path)))
            .chain(self.folders.iter().filter_map(|f| Some(f.join(path.file_name()?))));
        let mut texts = candidates.filter(|p| p.is_file()).filter_map(|p| files::read(&p, MAX_TEXT).ok());
        texts.next().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The samples of one or more runs of a launch, counted by instruction.
pub fn samples(mode: String, instructions: usize, runs: &[Sampled], extra_cycles: i64) -> Samples {
    let form = runs.first().map_or_else(Default::default, |r| r.form);
    let records = runs
        .iter()
        .flat_map(|r| trace::record::read_all(r.form, &r.bytes).map(move |record| r.of_program(record)));
    let (counts, strangers) = correlate::count(records, instructions);
    Samples {
        mode,
        form,
        records: runs.iter().map(|r| r.records).sum::<u64>() - strangers,
        lost: runs.iter().map(|r| r.lost).sum(),
        passes: runs.len() as u32,
        extra_cycles,
        counts,
    }
}

/// The profile of a launch that was timed.
pub fn profile(
    module: &Module,
    kernel: &str,
    dim: Dim,
    config: &Config,
    report: &Report,
    detail: &Detail,
    sources: &Sources,
) -> Profile {
    let image = module.image();
    let o = &report.occupancy;
    let is_full = o.warps == o.max_warps;
    let limits = Limiter::ALL.iter().zip(o.limits).map(|(l, n)| (l.name().to_owned(), n)).collect();
    Profile {
        kernel: kernel.to_owned(),
        machine: Machine {
            name: config.name.clone(),
            clock_mhz: config.clock_mhz,
            sms: config.sms(),
            schedulers: config.sm.sub_cores,
            warps: config.sm.warps,
        },
        launch: Launch {
            grid: dim.grid,
            block: dim.block,
            registers: report.shape.registers,
            shared_bytes: report.shape.shared_bytes,
            ctas_per_sm: o.ctas_per_sm,
            limiter: if is_full { String::new() } else { o.limiter.name().to_owned() },
            limits,
        },
        cycles: report.cycles,
        sections: report.sections.clone(),
        files: correlate::files(image, |name| sources.find(name)),
        ptx: sources.ptx.as_ref().map(|(name, text)| Text::new(name, text)).unwrap_or_default(),
        code_base: detail.code_base,
        code: correlate::code(image, kernel, &report.stalls, &detail.work),
        causes: detail.causes.clone(),
        timeline: detail.timeline.clone(),
        spans: detail.spans.clone(),
        samples: None,
        versions: Vec::new(),
    }
}

/// Versions of code that were made while a launch ran.
pub fn versions(optimized: &Optimized) -> Vec<Version> {
    let row = |v: &VersionReport| {
        let original = optimized.blocks.get(v.block as usize);
        Version {
            number: v.version,
            block: v.block,
            entry: original.map_or(0, |b| b.entry),
            level: v.level,
            at: v.at,
            instructions: v.instructions,
            assumptions: v.assumptions.clone(),
            checks: v.checks,
            failures: v.failures,
            taken: v.taken,
            given_up: v.given_up,
            executions: v.executions,
            cycles: v.cycles,
            cycles_before: original.map_or(0, |b| b.cycles),
        }
    };
    optimized.versions.iter().map(row).collect()
}
