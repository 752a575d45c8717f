//! From push buffer to CTAs: the blocks before the GPCs as one, in virtual time.

use crate::Config;
use crate::command::{Caches, CommandError};
use crate::compute_scheduler::ComputeScheduler;
use crate::distribution::{Distribution, Occupancy, TaskError};
use crate::front_end::{Effect, FrontEnd};
use crate::host::{Full, HostInterface};
use crate::io::Io;
use crate::ports::{CtaEnd, CtaStart};
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why commands cannot be carried out. The machine takes no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrontError {
    Command(CommandError),
    Task(TaskError),
}

impl fmt::Display for FrontError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrontError::Command(error) => error.fmt(f),
            FrontError::Task(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FrontError {}

/// A command that the rest of the machine carries out, or that the host hears of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
    Invalidate(Caches),
    /// When the host sees it.
    Notify {
        value: u32,
    },
}

/// I/O unit, host interface, front end, compute scheduler and work distribution of a PPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Front {
    io: Io,
    host: HostInterface,
    front_end: FrontEnd,
    scheduler: ComputeScheduler,
    distribution: Distribution,
    end_latency: u64,
    events: Vec<(Cycle, Event)>,
}

/// What a launch costs beyond the latencies on its way; `None` where those are more already.
pub fn setup_cycles(config: &Config) -> Option<u32> {
    let d = &config.distribution;
    let way = [
        config.io.latency,
        config.host.fetch_cycles,
        config.front_end.command_cycles,
        config.compute_scheduler.task_cycles,
        d.start_latency,
        d.end_latency,
        config.io.latency,
    ];
    way.into_iter().try_fold(d.launch_overhead, u32::checked_sub)
}

/// Rules between the specifications of the blocks on the way.
pub(crate) fn check(config: &Config, check: &mut crate::config::Checks) {
    let d = &config.distribution;
    let slot = u64::from(d.start_latency) + u64::from(d.end_latency);
    check.that(
        "distribution.start_latency",
        slot > u64::from(config.quantum),
        format!("and `end_latency` are {slot} cycles together"),
        format!(
            "more than {}, the quantum: a CTA must not start before its place is known to be free",
            config.quantum
        ),
    );
    check.that(
        "distribution.launch_overhead",
        setup_cycles(config).is_some(),
        format!("is {}", d.launch_overhead),
        "it must be at least the latencies of the link (twice), host interface, front end, compute scheduler, and \
         of a CTA's start and end",
    );
    for (path, cycles) in [
        ("distribution.tpc_warp_interval", d.tpc_warp_interval),
        ("distribution.end_interval", d.end_interval),
    ] {
        check.that(path, (0.0..=1000.0).contains(&cycles), format!("is {cycles}"), "0 to 1000 cycles");
    }
}

impl Front {
    pub fn new(config: &Config) -> Front {
        Front {
            io: Io::new(&config.io),
            host: HostInterface::new(&config.host),
            front_end: FrontEnd::new(&config.front_end),
            scheduler: ComputeScheduler::new(&config.compute_scheduler),
            distribution: Distribution::new(config, setup_cycles(config).unwrap_or(0).into()),
            end_latency: config.distribution.end_latency.into(),
            events: Vec::new(),
        }
    }

    /// The host writes commands to the push buffer at `at`.
    pub fn submit(&mut self, at: Cycle, words: &[u32]) -> Result<(), Full> {
        self.host.submit(&mut self.io, at, words)
    }

    /// All commands are done and all tasks have ended.
    pub fn is_idle(&self) -> bool {
        self.host.next().is_none()
            && self.front_end.is_empty()
            && self.scheduler.is_empty()
            && self.distribution.is_empty()
    }

    /// The earliest exchange point at which [`Front::advance`] has something to do, if no CTA ends before.
    pub fn next_event(&self) -> Option<Cycle> {
        self.next().map(|(at, _)| Cycle((at.0 + 1).saturating_sub(self.end_latency)))
    }

    /// Does what can be known at the exchange point `until`: all that happens before the ends of CTAs that are still to
    /// come can be felt. `ends` are those before `until` since the last call, in the order (cycle, SM). The CTAs that
    /// start are appended to `starts`; none starts before `until`, as long as `until` is at most a quantum after the
    /// exchange point before it or after [`Front::next_event`].
    pub fn advance(
        &mut self,
        until: Cycle,
        ends: &[CtaEnd],
        starts: &mut Vec<CtaStart>,
    ) -> Result<(), FrontError> {
        self.distribution.take_ends(ends);
        while let Some((at, what)) = self.next()
            && at < until + self.end_latency
        {
            self.step(at, what, starts)?;
        }
        Ok(())
    }

    /// Launches that have ended since the last call, with the cycles at which the host knows.
    pub fn finished(&mut self) -> Vec<(u32, Cycle)> {
        let mut finished = self.distribution.finished();
        finished.iter_mut().for_each(|(_, at)| *at = self.io.notify(*at));
        finished
    }

    /// What commands asked of others since the last call.
    pub fn events(&mut self) -> Vec<(Cycle, Event)> {
        std::mem::take(&mut self.events)
    }

    /// How a launch that runs now fills an SM.
    pub fn occupancy(&self, launch: u32) -> Option<Occupancy> {
        self.distribution.occupancy(launch)
    }

    /// What happens next, and when. Of things at one cycle, those at the end of the way come first.
    fn next(&self) -> Option<(Cycle, Stage)> {
        let at = |cycle: Option<Cycle>, stage| cycle.map(|at| (at, stage));
        [
            at(self.distribution.next(), Stage::Distribution),
            at(self.scheduler.next().filter(|_| self.distribution.has_room()), Stage::Scheduler),
            at(self.front_end.next(), Stage::FrontEnd),
            at(self.host.next().filter(|_| self.front_end.is_empty()), Stage::Host),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|&(at, _)| at)
    }

    fn step(&mut self, at: Cycle, stage: Stage, starts: &mut Vec<CtaStart>) -> Result<(), FrontError> {
        match stage {
            Stage::Host => {
                let mut words = Vec::new();
                if let Some(at) = self.host.fetch(&mut words) {
                    self.front_end.give(at, words);
                }
            }
            Stage::FrontEnd => match self.front_end.decode().map_err(FrontError::Command)? {
                Some((at, Effect::Task { task, split })) => self.scheduler.add(at, task, split),
                Some((at, Effect::Invalidate(caches))) => self.events.push((at, Event::Invalidate(caches))),
                Some((at, Effect::Notify { value })) => {
                    self.events.push((self.io.notify(at), Event::Notify { value }));
                }
                None => {}
            },
            Stage::Scheduler => {
                if let Some(scheduled) = self.scheduler.take(at) {
                    self.distribution.add(at, &scheduled).map_err(FrontError::Task)?;
                }
            }
            Stage::Distribution => self.distribution.step(at, starts),
        }
        if self.front_end.waits_for_idle() && self.scheduler.is_empty() && self.distribution.is_empty() {
            self.front_end.idle(self.distribution.last_end());
        }
        Ok(())
    }
}

/// The block that something happens in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Host,
    FrontEnd,
    Scheduler,
    Distribution,
}

#[cfg(test)]
mod tests;
