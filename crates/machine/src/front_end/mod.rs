//! Front end: decodes commands and sends tasks and state to their units.

mod spec;

pub use spec::Spec;

use crate::command::{Caches, Command, CommandError, Task};
use crate::server::Line;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};

/// What a command does outside the front end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A grid for the compute scheduler, and the shared-memory split it prefers.
    Task {
        task: Task,
        split: u32,
    },
    Invalidate(Caches),
    Notify {
        value: u32,
    },
}

/// Decodes commands in order, and holds them while the machine must be idle first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrontEnd {
    command_cycles: u64,
    decoder: Line,
    /// Words that were fetched and not decoded; those before `next` are done with.
    words: Vec<u32>,
    next: usize,
    /// When the words came.
    arrived: Cycle,
    /// Shared-memory split of the launches that follow.
    split: u32,
    waits_for_idle: bool,
}

impl FrontEnd {
    pub fn new(spec: &Spec) -> FrontEnd {
        FrontEnd {
            command_cycles: spec.command_cycles.into(),
            decoder: Line::default(),
            words: Vec::new(),
            next: 0,
            arrived: Cycle(0),
            split: 0,
            waits_for_idle: false,
        }
    }

    /// All that was given is decoded.
    pub fn is_empty(&self) -> bool {
        self.next == self.words.len() && !self.waits_for_idle
    }

    pub fn waits_for_idle(&self) -> bool {
        self.waits_for_idle
    }

    /// Takes an entry of the push buffer. The one before must be decoded.
    pub fn give(&mut self, at: Cycle, words: Vec<u32>) {
        self.words = words;
        self.next = 0;
        self.arrived = at;
    }

    /// The machine is idle since `at`: commands that waited for it go on.
    pub fn idle(&mut self, at: Cycle) {
        if std::mem::take(&mut self.waits_for_idle) {
            self.arrived = self.arrived.later(at);
        }
    }

    /// When the next command will have been decoded.
    pub fn next(&self) -> Option<Cycle> {
        let ready = self.next < self.words.len() && !self.waits_for_idle;
        ready.then(|| self.arrived.later(self.decoder.free()) + self.command_cycles)
    }

    /// Decodes one command; when, and what it does outside.
    pub fn decode(&mut self) -> Result<Option<(Cycle, Effect)>, CommandError> {
        let (command, n) = Command::decode(&self.words[self.next..])?;
        self.next += n;
        let at = self.decoder.serve(self.arrived, self.command_cycles) + self.command_cycles;
        Ok(match command {
            Command::Nop => None,
            Command::Launch(task) => Some((at, Effect::Task { task, split: self.split })),
            Command::WaitForIdle => {
                self.waits_for_idle = true;
                None
            }
            Command::Notify { value } => Some((at, Effect::Notify { value })),
            Command::Invalidate(caches) => Some((at, Effect::Invalidate(caches))),
            Command::SetSharedSplit { bytes } => {
                self.split = bytes;
                None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_their_time_and_wait_for_idle() {
        let mut front = FrontEnd::new(&Spec { command_cycles: 4 });
        let mut words = Vec::new();
        Command::Notify { value: 1 }.encode(&mut words);
        Command::WaitForIdle.encode(&mut words);
        Command::Notify { value: 2 }.encode(&mut words);
        front.give(Cycle(100), words);
        assert_eq!(front.next(), Some(Cycle(104)));
        assert_eq!(front.decode(), Ok(Some((Cycle(104), Effect::Notify { value: 1 }))));
        assert_eq!(front.decode(), Ok(None));
        assert!(front.waits_for_idle() && front.next().is_none());
        front.idle(Cycle(500));
        assert_eq!(front.decode(), Ok(Some((Cycle(504), Effect::Notify { value: 2 }))));
        assert!(front.is_empty());
    }
}
