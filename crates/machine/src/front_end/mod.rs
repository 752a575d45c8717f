//! Front end: decodes commands and sends tasks and state to their units.

mod spec;

pub use spec::Spec;

use crate::command::{Caches, Command, CommandError, Task};
use crate::server::Line;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a command does outside the front end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A grid for the compute scheduler, and the shared-memory split it prefers.
    Task {
        task: Task,
        split: u32,
    },
    /// The same, its metadata in memory.
    RunTask {
        address: u64,
        split: u32,
    },
    Invalidate(Caches),
    Notify {
        value: u32,
    },
    /// Data moves; what follows waits for [`FrontEnd::transferred`].
    Transfer {
        number: u32,
        bytes: u64,
    },
}

/// What the commands of a push buffer wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Hold {
    /// All tasks of the machine.
    Idle,
    /// The tasks of this push buffer.
    Tasks,
    Semaphore(u32),
    /// Data that moves.
    Transfer,
}

/// The commands of one push buffer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Channel {
    /// Words that were fetched and not decoded; those before `next` are done with.
    words: Vec<u32>,
    next: usize,
    /// When the words came, or could go on.
    arrived: Cycle,
    /// Shared-memory split of the launches that follow.
    split: u32,
    hold: Option<Hold>,
    /// Tasks that have not ended, and when the last one did.
    tasks: u32,
    ended: Cycle,
}

impl Channel {
    fn is_empty(&self) -> bool {
        self.next == self.words.len() && self.hold.is_none()
    }

    fn release(&mut self, at: Cycle) {
        self.hold = None;
        self.arrived = self.arrived.later(at);
    }
}

/// Decodes commands, those of a push buffer in order, and holds them while something must happen first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrontEnd {
    command_cycles: u64,
    decoder: Line,
    channels: Vec<Channel>,
    /// Semaphores that are set, and since when.
    semaphores: BTreeMap<u32, Cycle>,
}

impl FrontEnd {
    /// For one push buffer, number 0.
    pub fn new(spec: &Spec) -> FrontEnd {
        FrontEnd {
            command_cycles: spec.command_cycles.into(),
            decoder: Line::default(),
            channels: vec![Channel::default()],
            semaphores: BTreeMap::new(),
        }
    }

    /// One more push buffer.
    pub fn open(&mut self) {
        self.channels.push(Channel::default());
    }

    /// Gives up all push buffers but the first, and forgets semaphores.
    pub fn close(&mut self) {
        self.channels.truncate(1);
        self.semaphores.clear();
    }

    /// All that was given is decoded.
    pub fn is_empty(&self) -> bool {
        self.channels.iter().all(Channel::is_empty)
    }

    /// The same of one push buffer.
    pub fn has_room(&self, channel: usize) -> bool {
        self.channels.get(channel).is_some_and(Channel::is_empty)
    }

    pub fn waits_for_idle(&self) -> bool {
        self.channels.iter().any(|c| c.hold == Some(Hold::Idle))
    }

    /// Takes an entry of a push buffer. The one before must be decoded.
    pub fn give(&mut self, channel: usize, at: Cycle, words: Vec<u32>) {
        let channel = &mut self.channels[channel];
        channel.words = words;
        channel.next = 0;
        channel.arrived = channel.arrived.later(at);
    }

    /// The machine is idle since `at`: commands that waited for it go on.
    pub fn idle(&mut self, at: Cycle) {
        self.channels.iter_mut().filter(|c| c.hold == Some(Hold::Idle)).for_each(|c| c.release(at));
    }

    /// A task of a push buffer has ended.
    pub fn task_ended(&mut self, channel: usize, at: Cycle) {
        let Some(channel) = self.channels.get_mut(channel) else { return };
        channel.tasks = channel.tasks.saturating_sub(1);
        channel.ended = channel.ended.later(at);
        if channel.tasks == 0 && channel.hold == Some(Hold::Tasks) {
            channel.release(channel.ended);
        }
    }

    /// The data of a push buffer's transfer has moved.
    pub fn transferred(&mut self, channel: usize, at: Cycle) {
        if let Some(channel) = self.channels.get_mut(channel).filter(|c| c.hold == Some(Hold::Transfer)) {
            channel.release(at);
        }
    }

    /// When the next command will have been decoded, and of which push buffer.
    pub fn next(&self) -> Option<(Cycle, usize)> {
        let ready = |c: &Channel| c.next < c.words.len() && c.hold.is_none();
        let channels = self.channels.iter().enumerate().filter(|(_, c)| ready(c));
        channels.map(|(n, c)| (c.arrived.later(self.decoder.free()) + self.command_cycles, n)).min()
    }

    /// Decodes one command of a push buffer; when, and what it does outside.
    pub fn decode(&mut self, channel: usize) -> Result<Option<(Cycle, Effect)>, CommandError> {
        let own = &mut self.channels[channel];
        let (command, n) = Command::decode(&own.words[own.next..])?;
        own.next += n;
        let at = self.decoder.serve(own.arrived, self.command_cycles) + self.command_cycles;
        Ok(match command {
            Command::Nop => None,
            Command::Launch(task) => {
                own.tasks += 1;
                Some((at, Effect::Task { task, split: own.split }))
            }
            Command::RunTask { address } => {
                own.tasks += 1;
                Some((at, Effect::RunTask { address, split: own.split }))
            }
            Command::WaitForIdle => {
                own.hold = Some(Hold::Idle);
                None
            }
            Command::WaitForTasks => {
                own.hold = (own.tasks > 0).then_some(Hold::Tasks);
                own.arrived = own.arrived.later(own.ended);
                None
            }
            Command::Notify { value } => Some((at, Effect::Notify { value })),
            Command::Invalidate(caches) => Some((at, Effect::Invalidate(caches))),
            Command::SetSharedSplit { bytes } => {
                own.split = bytes;
                None
            }
            Command::Signal { semaphore } => {
                self.semaphores.entry(semaphore).or_insert(at);
                let waits = |c: &&mut Channel| c.hold == Some(Hold::Semaphore(semaphore));
                self.channels.iter_mut().filter(waits).for_each(|c| c.release(at));
                None
            }
            Command::Await { semaphore } => {
                match self.semaphores.get(&semaphore) {
                    Some(&set) => own.arrived = own.arrived.later(set),
                    None => own.hold = Some(Hold::Semaphore(semaphore)),
                }
                None
            }
            Command::Transfer { number, bytes } => {
                own.hold = Some(Hold::Transfer);
                Some((at, Effect::Transfer { number, bytes }))
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
        front.give(0, Cycle(100), words);
        assert_eq!(front.next(), Some((Cycle(104), 0)));
        assert_eq!(front.decode(0), Ok(Some((Cycle(104), Effect::Notify { value: 1 }))));
        assert_eq!(front.decode(0), Ok(None));
        assert!(front.waits_for_idle() && front.next().is_none());
        front.idle(Cycle(500));
        assert_eq!(front.decode(0), Ok(Some((Cycle(504), Effect::Notify { value: 2 }))));
        assert!(front.is_empty());
    }

    #[test]
    fn push_buffers_wait_for_semaphores_tasks_and_data() {
        let mut front = FrontEnd::new(&Spec { command_cycles: 1 });
        front.open();
        let words = |commands: &[Command]| {
            let mut words = Vec::new();
            commands.iter().for_each(|c| c.encode(&mut words));
            words
        };
        let task = Command::RunTask { address: 64 };
        front.give(0, Cycle(0), words(&[task, Command::WaitForTasks, Command::Signal { semaphore: 9 }]));
        let transfer = Command::Transfer { number: 3, bytes: 128 };
        front.give(1, Cycle(0), words(&[Command::Await { semaphore: 9 }, transfer, Command::Nop]));
        let mut effects = Vec::new();
        while let Some((_, n)) = front.next() {
            effects.extend(front.decode(n).expect("well formed").map(|(_, effect)| effect));
        }
        assert_eq!(effects, [Effect::RunTask { address: 64, split: 0 }]);
        front.task_ended(0, Cycle(1000));
        let mut effects = Vec::new();
        while let Some((_, n)) = front.next() {
            effects.extend(front.decode(n).expect("well formed"));
        }
        assert_eq!(effects, [(Cycle(1002), Effect::Transfer { number: 3, bytes: 128 })]);
        front.transferred(1, Cycle(2000));
        assert_eq!(front.next(), Some((Cycle(2001), 1)));
    }
}
