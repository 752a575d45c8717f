//! From push buffer to CTAs: the blocks before the GPCs as one, in virtual time.

use crate::Config;
use crate::command::{Caches, CommandError, Task};
use crate::compute_scheduler::ComputeScheduler;
use crate::distribution::{Distribution, Occupancy, Preemption, TaskError};
use crate::front_end::{Effect, FrontEnd};
use crate::host::{Full, HostInterface};
use crate::io::Io;
use crate::ports::{CtaEnd, CtaStart, Suspend};
use crate::units::{Cycle, SmId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// A task is to be read from memory and given to [`Front::add_task`].
    Task {
        address: u64,
        split: u32,
        channel: usize,
    },
    /// Data has moved: what the transfer of this number does is done now.
    Transferred {
        number: u32,
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
    /// The push buffers that tasks came by.
    channel_of: BTreeMap<u32, usize>,
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
            channel_of: BTreeMap::new(),
        }
    }

    /// The host writes commands to the first push buffer at `at`.
    pub fn submit(&mut self, at: Cycle, words: &[u32]) -> Result<(), Full> {
        self.submit_to(0, at, words)
    }

    /// The same to any push buffer.
    pub fn submit_to(&mut self, channel: usize, at: Cycle, words: &[u32]) -> Result<(), Full> {
        self.host.submit(&mut self.io, channel, at, words)
    }

    /// Words that can be submitted to a push buffer now.
    pub fn room(&self, channel: usize) -> usize {
        self.host.room(channel)
    }

    /// One more push buffer; its number.
    pub fn open_channel(&mut self, priority: u8) -> usize {
        self.front_end.open();
        self.host.open(priority)
    }

    /// Gives up all push buffers but the first; nothing is left in them.
    pub fn close_channels(&mut self) {
        self.front_end.close();
        self.host.close();
        self.channel_of.clear();
    }

    /// Who may take places from whom, in what follows.
    pub fn set_preemption(&mut self, preemption: Option<Preemption>) {
        self.distribution.set_preemption(preemption);
    }

    /// Gives a task to the compute scheduler at `at`: one that a command named, or a child task, which came by no push
    /// buffer.
    pub fn add_task(&mut self, at: Cycle, task: Task, split: u32, channel: Option<usize>) {
        if let Some(channel) = channel {
            self.channel_of.insert(task.launch, channel);
        }
        self.scheduler.add(at, task, split);
    }

    /// A task has ended with all its child tasks: its push buffer goes on.
    pub fn task_ended(&mut self, launch: u32, at: Cycle) {
        if let Some(channel) = self.channel_of.remove(&launch) {
            self.front_end.task_ended(channel, at);
        }
    }

    /// So many CTAs more of a queue task can run from `at` on; whether it can get more still. False: work distribution does
    /// not have the task yet.
    pub fn extend(&mut self, at: Cycle, launch: u32, ctas: u64, is_open: bool) -> bool {
        self.distribution.extend(at, launch, ctas, is_open)
    }

    /// A CTA that waited for child tasks can go on.
    pub fn resume(&mut self, at: Cycle, launch: u32, linear: u64) {
        self.distribution.resume(at, launch, linear);
    }

    /// The warps of a CTA that was suspended run again since `at`.
    pub fn runs_again(&mut self, sm: SmId, launch: u32, linear: u64, at: Cycle) {
        self.distribution.runs_again(sm, launch, linear, at);
    }

    /// All CTAs make room and none is placed, until [`Front::go_on`].
    pub fn stop(&mut self, at: Cycle) {
        self.distribution.stop(at);
    }

    /// All CTAs have left their SMs.
    pub fn is_stopped(&self) -> bool {
        self.distribution.is_vacant()
    }

    /// CTAs are placed again.
    pub fn go_on(&mut self, at: Cycle) {
        self.distribution.go_on(at);
    }

    /// CTAs that are to make room, since the last call.
    pub fn suspends(&mut self) -> Vec<Suspend> {
        self.distribution.suspends()
    }

    /// All commands are done and all tasks have ended.
    pub fn is_idle(&self) -> bool {
        self.host.is_empty()
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
            self.front_end.next().map(|(at, channel)| (at, Stage::FrontEnd(channel))),
            self.host.next(|n| self.front_end.has_room(n)).map(|(at, channel)| (at, Stage::Host(channel))),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|&(at, _)| at)
    }

    fn step(&mut self, at: Cycle, stage: Stage, starts: &mut Vec<CtaStart>) -> Result<(), FrontError> {
        match stage {
            Stage::Host(channel) => {
                let mut words = Vec::new();
                if let Some(at) = self.host.fetch(channel, &mut words) {
                    self.front_end.give(channel, at, words);
                }
            }
            Stage::FrontEnd(channel) => match self.front_end.decode(channel).map_err(FrontError::Command)? {
                Some((at, Effect::Task { task, split })) => {
                    self.add_task(at, task, split, Some(channel));
                }
                Some((at, Effect::RunTask { address, split })) => {
                    self.events.push((at, Event::Task { address, split, channel }));
                }
                Some((at, Effect::Invalidate(caches))) => {
                    self.events.push((at, Event::Invalidate(caches)));
                }
                Some((at, Effect::Notify { value })) => {
                    self.events.push((self.io.notify(at), Event::Notify { value }));
                }
                Some((at, Effect::Transfer { number, bytes })) => {
                    let moved = self.io.receive(at, bytes) + self.io.cycles(bytes);
                    self.events.push((moved, Event::Transferred { number }));
                    self.front_end.transferred(channel, moved);
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
    Host(usize),
    FrontEnd(usize),
    Scheduler,
    Distribution,
}

#[cfg(test)]
mod tests;
