//! Running the launches of a file as its streams say: several at once, some taking the place of others.

use crate::launching::{self, Launching};
use crate::{End, show};
use driver::checkpoint::Done;
use driver::launch_file::LaunchFile;
use driver::machine::ppu::{Checkpoints, Moment};
use driver::run::Session;
use driver::streams::{Mode, Moved, Synchronized, Timeline};
use driver::trace::export::perfetto::{self, Slice, Tasks};
use driver::{Checkpoint, LaunchOptions, LaunchStats, Preempting, Timing, files};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct Options {
    /// What becomes of local memory when a CTA makes room for another: remap copies it to global memory once and leaves it
    /// there, copy moves it out and back each time.
    #[arg(long, value_name = "MODE", default_value = "remap", value_parser = ["remap", "copy"])]
    preemption: String,
    /// A CTA that has run for this many cycles makes room for others of its priority that wait.
    #[arg(long, value_name = "CYCLES", value_parser = clap::value_parser!(u64).range(1..))]
    time_slice: Option<u64>,
    /// Stop the machine at this cycle, as a debugger does: all CTAs are suspended, then they go on. Can be given several times.
    #[arg(long, value_name = "CYCLE")]
    stop_at: Vec<u64>,
    /// Write when launches ran and CTAs made room, for ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

impl Options {
    /// Whether a file is run by streams: it has some, or what is asked for needs them.
    pub fn wants_streams(&self, file: &LaunchFile) -> bool {
        file.has_streams() || self.time_slice.is_some() || !self.stop_at.is_empty() || self.timeline.is_some()
    }

    fn preempting(&self) -> Preempting {
        let mut stops = self.stop_at.clone();
        stops.sort_unstable();
        Preempting {
            mode: Mode::from_name(&self.preemption).unwrap_or_default(),
            time_slice: self.time_slice,
            stops,
            ..Preempting::default()
        }
    }

    /// Runs everything; what each launch did, and a summary of all.
    pub fn run(
        &self,
        launching: &Launching<'_>,
        file: &LaunchFile,
        session: &Session<'_>,
    ) -> Result<(Vec<(LaunchStats, f64)>, Summary), End> {
        let (json, printed) = (launching.json, launching.printed);
        let print = |bytes: &[u8]| {
            if json {
                if let Ok(mut printed) = printed.lock() {
                    printed.extend_from_slice(bytes);
                }
            } else {
                // A closed pipe is no reason to fail.
                let _ = std::io::stdout().write_all(bytes);
            }
        };
        let before = launching.checkpoint.map_or(0.0, Checkpoint::seconds);
        let start = Instant::now();
        let (none, keeper) = (Done::default(), launching.keeper);
        let keep = |moment: &Moment<'_>| match keeper {
            Some(k) => k.save(session.device(), &none, before + start.elapsed().as_secs_f64(), moment),
            None => Ok(()),
        };
        let options = LaunchOptions {
            threads: launching.threads,
            max_instructions: launching.max_instructions,
            cancel: Some(launching::stop()),
            print: Some(&print),
            timing: launching.config.map(|config| Timing {
                cold: launching.cold,
                detail: launching.detail,
                closely: launching.closely,
                checkpoints: keeper.map(|k| Checkpoints { every: k.every(), keep: &keep }),
                resume: launching.checkpoint.map(Checkpoint::machine),
                optimize: launching.optimize,
                ..Timing::new(config)
            }),
            ..LaunchOptions::default()
        };
        let done = match session.run_streams(&options, &self.preempting()) {
            Ok(done) => done,
            Err(error) => return Err(launching.failed(file, error)),
        };
        let seconds = before + start.elapsed().as_secs_f64();
        let Synchronized { launches, timeline, .. } = done;
        if let (Some(path), Some(timeline)) = (&self.timeline, &timeline) {
            let machine = launching.config.map_or("", |c| &c.name);
            let bytes = perfetto::tasks(&tasks(machine, timeline));
            files::write(path, |to| to.write_all(&bytes))?;
        }
        let share = seconds / launches.len().max(1) as f64;
        Ok((launches.into_iter().map(|l| (l, share)).collect(), Summary { timeline, seconds }))
    }
}

/// What all launches did together.
pub struct Summary {
    timeline: Option<Timeline>,
    seconds: f64,
}

/// CTAs that left, by what they took.
fn totals(moves: &[Moved], is_restored: bool) -> (u64, u64, u64, u64) {
    let own = moves.iter().filter(|m| m.is_restored == is_restored);
    own.fold((0, 0, 0, 0), |(n, cycles, state, local), m| {
        (n + 1, cycles + m.cycles(), state + m.state_bytes, local + m.local_bytes)
    })
}

impl Summary {
    /// When launches ran and which CTAs made room, for Perfetto.
    pub fn tasks(&self, machine: &str) -> Tasks {
        self.timeline.as_ref().map(|t| tasks(machine, t)).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        let Some(t) = &self.timeline else { return String::new() };
        let mut text =
            format!("all: {} cycles, simulated in {:.3} s\n", show::thousands(t.cycles), self.seconds);
        for l in &t.launches {
            text += &format!(
                "  {}{}: cycles {} to {}, first CTA at {}, {} CTAs{}{}\n",
                "  ".repeat(l.depth as usize),
                l.kernel,
                show::thousands(l.known),
                show::thousands(l.ended),
                show::thousands(l.begun),
                show::thousands(l.ctas),
                if l.suspended > 0 {
                    format!(", {} suspended", show::thousands(l.suspended))
                } else {
                    String::new()
                },
                if l.versions > 0 { format!(", {} versions of code", l.versions) } else { String::new() },
            );
        }
        // What is behind the SMs serves all launches.
        let c = &t.counters;
        text += &format!(
            "  L2: {} sectors, {:.1} % hits; DRAM: {} bytes read, {} written\n",
            show::thousands(c.l2_sectors),
            100.0 * c.l2_hits as f64 / c.l2_sectors.max(1) as f64,
            show::thousands(c.dram_read_bytes),
            show::thousands(c.dram_write_bytes),
        );
        for (what, is_restored) in [("suspended", false), ("restored", true)] {
            let (n, cycles, state, local) = totals(&t.moves, is_restored);
            if n > 0 {
                text += &format!(
                    "  {what}: {} CTAs, {} cycles each, {} bytes of state and {} of local memory\n",
                    show::thousands(n),
                    show::thousands(cycles / n),
                    show::thousands(state),
                    show::thousands(local),
                );
            }
        }
        text
    }

    pub fn json(&self) -> Option<Value> {
        let t = self.timeline.as_ref()?;
        let launches: Vec<Value> = t
            .launches
            .iter()
            .map(|l| {
                json!({
                    "kernel": l.kernel, "parent": l.parent, "depth": l.depth, "known": l.known, "begun": l.begun,
                    "ended": l.ended, "ctas": l.ctas, "warp_instructions": l.warp_instructions,
                    "suspended": l.suspended, "versions": l.versions,
                })
            })
            .collect();
        let moves: Vec<Value> = t.moves.iter().filter_map(|m| serde_json::to_value(m).ok()).collect();
        let counters: serde_json::Map<String, Value> =
            t.counters.list().into_iter().map(|(name, n, _)| (name.to_owned(), n.into())).collect();
        Some(json!({
            "cycles": t.cycles, "counters": counters, "launches": launches, "moves": moves, "stopped": t.stopped,
        }))
    }
}

/// What Perfetto shows.
fn tasks(machine: &str, t: &Timeline) -> Tasks {
    let launches = t.launches.iter().map(|l| Slice {
        name: l.kernel.clone(),
        from: l.known,
        until: l.ended.max(l.known + 1),
        notes: vec![("CTAs", l.ctas.to_string()), ("suspended", l.suspended.to_string())],
    });
    let moves = t.moves.iter().map(|m| {
        let kernel = t.launches.get(m.launch as usize).map_or("", |l| &l.kernel);
        let what = if m.is_restored { "restore" } else { "suspend" };
        let slice = Slice {
            name: format!("{what} {kernel} CTA {}", m.linear),
            from: m.from.0,
            until: m.until.0.max(m.from.0 + 1),
            notes: vec![
                ("for", m.reason.name().to_owned()),
                ("drained", m.drained.0.to_string()),
                ("state bytes", m.state_bytes.to_string()),
                ("local bytes", m.local_bytes.to_string()),
            ],
        };
        (m.sm.0, slice)
    });
    Tasks { machine: machine.to_owned(), launches: launches.collect(), moves: moves.collect() }
}
