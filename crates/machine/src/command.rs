//! Commands as words of a push buffer: encoding and decoding.
//!
//! A command is a header and its operands. The header's top byte is the method, its low half the number of operand words
//! that follow; the bits between are zero. 64-bit operands are two words, low half first.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A grid or a queue to run, as a record of what its CTAs need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Task {
    /// What the host calls the launch; CTAs carry it.
    pub launch: u32,
    /// Higher runs first.
    pub priority: u8,
    /// Goes before the tasks of its priority that wait, not behind them.
    pub at_head: bool,
    /// A queue task: more CTAs may come while it runs.
    pub is_queue: bool,
    /// CTAs of the grid, at least one, or entries of the queue.
    pub ctas: u64,
    /// Threads of a CTA, at least one.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared bytes of a CTA, static and dynamic.
    pub shared_bytes: u32,
    /// CTA barriers that it uses.
    pub barriers: u32,
}

/// Flags beside the priority.
const AT_HEAD: u32 = 1 << 8;
const IS_QUEUE: u32 = 1 << 9;

/// Words of a task.
pub const TASK_WORDS: usize = 8;

impl Task {
    /// The record as words: of a command, or of task metadata in memory.
    pub fn words(&self) -> [u32; TASK_WORDS] {
        let flags = (u32::from(self.at_head) * AT_HEAD) | (u32::from(self.is_queue) * IS_QUEUE);
        [
            self.launch,
            u32::from(self.priority) | flags,
            self.ctas as u32,
            (self.ctas >> 32) as u32,
            self.threads,
            self.registers,
            self.shared_bytes,
            self.barriers,
        ]
    }

    /// The record that words are; else what is wrong with which of its parts.
    pub fn from_words(words: &[u32; TASK_WORDS]) -> Result<Task, (&'static str, u64)> {
        let task = Task {
            launch: words[0],
            priority: words[1] as u8,
            at_head: words[1] & AT_HEAD != 0,
            is_queue: words[1] & IS_QUEUE != 0,
            ctas: u64::from(words[2]) | u64::from(words[3]) << 32,
            threads: words[4],
            registers: words[5],
            shared_bytes: words[6],
            barriers: words[7],
        };
        match task {
            _ if words[1] >= IS_QUEUE << 1 => Err(("priority", words[1].into())),
            Task { ctas: 0, is_queue: false, .. } => Err(("ctas", 0)),
            Task { threads: 0, .. } => Err(("threads", 0)),
            _ => Ok(task),
        }
    }

    /// Warps of a CTA.
    pub fn warps(&self) -> u32 {
        self.threads.div_ceil(32)
    }
}

/// Caches that a command can invalidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Caches {
    /// Instruction caches of all levels before the second-level cache.
    pub instruction: bool,
    /// Constant caches.
    pub constant: bool,
    /// First-level data caches.
    pub l1: bool,
    /// The second-level cache; what was written goes to DRAM.
    pub l2: bool,
}

impl Caches {
    pub const ALL: Caches = Caches { instruction: true, constant: true, l1: true, l2: true };

    fn bits(self) -> u32 {
        u32::from(self.instruction)
            | u32::from(self.constant) << 1
            | u32::from(self.l1) << 2
            | u32::from(self.l2) << 3
    }

    fn from_bits(bits: u32) -> Option<Caches> {
        (bits < 16).then_some(Caches {
            instruction: bits & 1 != 0,
            constant: bits & 2 != 0,
            l1: bits & 4 != 0,
            l2: bits & 8 != 0,
        })
    }
}

/// What a host can ask of a PPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Nothing: fills the end of a ring.
    Nop,
    /// Run a grid.
    Launch(Task),
    /// Hold the commands that follow until all tasks have ended.
    WaitForIdle,
    /// Tell the host that this command was reached.
    Notify { value: u32 },
    /// Forget what caches hold.
    Invalidate(Caches),
    /// Shared-memory bytes of an SM that the launches which follow prefer; 0 leaves the choice to the machine.
    SetSharedSplit { bytes: u32 },
    /// Run the task whose metadata is at this address.
    RunTask { address: u64 },
    /// Hold the commands of this push buffer that follow until the tasks before have ended.
    WaitForTasks,
    /// Set a semaphore.
    Signal { semaphore: u32 },
    /// Hold the commands of this push buffer that follow until a semaphore is set.
    Await { semaphore: u32 },
    /// Move data between host and memory, or within memory: the host knows which by the number.
    Transfer { number: u32, bytes: u64 },
}

/// Why words are no command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandError {
    UnknownMethod {
        header: u32,
    },
    /// The header has bits that mean nothing.
    ReservedBits {
        header: u32,
    },
    /// Another number of operand words than the method has.
    WrongLength {
        method: &'static str,
        expected: u32,
        found: u32,
    },
    /// The words end before the command does.
    Truncated {
        method: &'static str,
        missing: u32,
    },
    /// An operand that cannot be.
    Operand {
        method: &'static str,
        operand: &'static str,
        value: u64,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::UnknownMethod { header } => {
                write!(f, "command word {header:#010x} names no method")
            }
            CommandError::ReservedBits { header } => {
                write!(f, "command word {header:#010x} has bits set that must be zero")
            }
            CommandError::WrongLength { method, expected, found } => {
                write!(f, "command {method} has {found} operand words where it takes {expected}")
            }
            CommandError::Truncated { method, missing } => {
                write!(f, "command {method} ends {missing} words early")
            }
            CommandError::Operand { method, operand, value } => {
                write!(f, "command {method} cannot have {value} for its operand {operand}")
            }
        }
    }
}

impl std::error::Error for CommandError {}

const NOP: u32 = 0x00;
const LAUNCH: u32 = 0x01;
const WAIT_FOR_IDLE: u32 = 0x02;
const NOTIFY: u32 = 0x03;
const INVALIDATE: u32 = 0x04;
const SET_SHARED_SPLIT: u32 = 0x05;
const RUN_TASK: u32 = 0x06;
const WAIT_FOR_TASKS: u32 = 0x07;
const SIGNAL: u32 = 0x08;
const AWAIT: u32 = 0x09;
const TRANSFER: u32 = 0x0a;

/// Name and number of operand words of a method.
fn method(number: u32) -> Option<(&'static str, u32)> {
    Some(match number {
        NOP => ("nop", 0),
        LAUNCH => ("launch", 8),
        WAIT_FOR_IDLE => ("wait_for_idle", 0),
        NOTIFY => ("notify", 1),
        INVALIDATE => ("invalidate", 1),
        SET_SHARED_SPLIT => ("set_shared_split", 1),
        RUN_TASK => ("run_task", 2),
        WAIT_FOR_TASKS => ("wait_for_tasks", 0),
        SIGNAL => ("signal", 1),
        AWAIT => ("await", 1),
        TRANSFER => ("transfer", 3),
        _ => return None,
    })
}

impl Command {
    /// Appends the command's words.
    pub fn encode(&self, words: &mut Vec<u32>) {
        let mut put = |number: u32, operands: &[u32]| {
            words.push(number << 24 | operands.len() as u32);
            words.extend_from_slice(operands);
        };
        match *self {
            Command::Nop => put(NOP, &[]),
            Command::Launch(task) => put(LAUNCH, &task.words()),
            Command::WaitForIdle => put(WAIT_FOR_IDLE, &[]),
            Command::Notify { value } => put(NOTIFY, &[value]),
            Command::Invalidate(caches) => put(INVALIDATE, &[caches.bits()]),
            Command::SetSharedSplit { bytes } => put(SET_SHARED_SPLIT, &[bytes]),
            Command::RunTask { address } => put(RUN_TASK, &[address as u32, (address >> 32) as u32]),
            Command::WaitForTasks => put(WAIT_FOR_TASKS, &[]),
            Command::Signal { semaphore } => put(SIGNAL, &[semaphore]),
            Command::Await { semaphore } => put(AWAIT, &[semaphore]),
            Command::Transfer { number, bytes } => {
                put(TRANSFER, &[number, bytes as u32, (bytes >> 32) as u32]);
            }
        }
    }

    /// The first command of `words`, and how many words it has.
    pub fn decode(words: &[u32]) -> Result<(Command, usize), CommandError> {
        let header = *words.first().ok_or(CommandError::Truncated { method: "header", missing: 1 })?;
        let number = header >> 24;
        let (name, expected) = method(number).ok_or(CommandError::UnknownMethod { header })?;
        if header & 0x00ff_0000 != 0 {
            return Err(CommandError::ReservedBits { header });
        }
        let found = header & 0xffff;
        if found != expected {
            return Err(CommandError::WrongLength { method: name, expected, found });
        }
        let operands = &words[1..];
        if operands.len() < found as usize {
            return Err(CommandError::Truncated { method: name, missing: found - operands.len() as u32 });
        }
        let bad = |operand, value: u32| CommandError::Operand { method: name, operand, value: value.into() };
        let command = match number {
            NOP => Command::Nop,
            LAUNCH => {
                let mut words = [0; TASK_WORDS];
                words.copy_from_slice(&operands[..TASK_WORDS]);
                Command::Launch(
                    Task::from_words(&words).map_err(|(operand, value)| CommandError::Operand {
                        method: name,
                        operand,
                        value,
                    })?,
                )
            }
            WAIT_FOR_IDLE => Command::WaitForIdle,
            NOTIFY => Command::Notify { value: operands[0] },
            INVALIDATE => {
                Command::Invalidate(Caches::from_bits(operands[0]).ok_or_else(|| bad("caches", operands[0]))?)
            }
            SET_SHARED_SPLIT => Command::SetSharedSplit { bytes: operands[0] },
            RUN_TASK => Command::RunTask { address: u64::from(operands[0]) | u64::from(operands[1]) << 32 },
            WAIT_FOR_TASKS => Command::WaitForTasks,
            SIGNAL => Command::Signal { semaphore: operands[0] },
            AWAIT => Command::Await { semaphore: operands[0] },
            TRANSFER => Command::Transfer {
                number: operands[0],
                bytes: u64::from(operands[1]) | u64::from(operands[2]) << 32,
            },
            _ => return Err(CommandError::UnknownMethod { header }),
        };
        Ok((command, 1 + found as usize))
    }
}

/// Decodes all of `words`; with an error comes the place of the command that is wrong.
pub fn decode_all(words: &[u32]) -> Result<Vec<Command>, (usize, CommandError)> {
    let mut commands = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (command, n) = Command::decode(&words[at..]).map_err(|e| (at, e))?;
        commands.push(command);
        at += n;
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_command() -> impl Strategy<Value = Command> {
        let sizes = (any::<u32>(), any::<u32>(), any::<u32>());
        let task = (any::<u32>(), any::<u8>(), any::<(bool, bool)>(), 1u64.., 1u32.., sizes).prop_map(
            |(launch, priority, (at_head, is_queue), ctas, threads, (registers, shared_bytes, barriers))| {
                Command::Launch(Task {
                    launch,
                    priority,
                    at_head,
                    is_queue,
                    ctas,
                    threads,
                    registers,
                    shared_bytes,
                    barriers,
                })
            },
        );
        prop_oneof![
            Just(Command::Nop),
            task,
            Just(Command::WaitForIdle),
            any::<u32>().prop_map(|value| Command::Notify { value }),
            (0u32..16).prop_map(|b| Command::Invalidate(Caches::from_bits(b).unwrap_or_default())),
            any::<u32>().prop_map(|bytes| Command::SetSharedSplit { bytes }),
            any::<u64>().prop_map(|address| Command::RunTask { address }),
            Just(Command::WaitForTasks),
            any::<u32>().prop_map(|semaphore| Command::Signal { semaphore }),
            any::<u32>().prop_map(|semaphore| Command::Await { semaphore }),
            (any::<u32>(), any::<u64>()).prop_map(|(number, bytes)| Command::Transfer { number, bytes }),
        ]
    }

    proptest! {
        #[test]
        fn commands_survive_the_way_through_words(commands in prop::collection::vec(any_command(), 0..20)) {
            let mut words = Vec::new();
            commands.iter().for_each(|c| c.encode(&mut words));
            prop_assert_eq!(decode_all(&words), Ok(commands));
        }

        #[test]
        fn what_decodes_encodes_to_the_same_words(words in prop::collection::vec(any::<u32>(), 0..40), n in 0u32..12) {
            // Random headers name no method; half of the cases get one that does.
            let mut words = words;
            if let (Some(first), Some((_, operands))) = (words.first_mut(), method(n)) {
                *first = n << 24 | operands;
            }
            if let Ok((command, n)) = Command::decode(&words) {
                let mut again = Vec::new();
                command.encode(&mut again);
                prop_assert_eq!(&again[..], &words[..n]);
            }
        }
    }

    #[test]
    fn malformed_words_are_told_apart() {
        let error = |words: &[u32]| Command::decode(words).expect_err("malformed");
        assert_eq!(error(&[]), CommandError::Truncated { method: "header", missing: 1 });
        assert_eq!(error(&[0x7f00_0000]), CommandError::UnknownMethod { header: 0x7f00_0000 });
        assert_eq!(error(&[0x0301_0001, 0]), CommandError::ReservedBits { header: 0x0301_0001 });
        let wrong = CommandError::WrongLength { method: "notify", expected: 1, found: 2 };
        assert_eq!(error(&[0x0300_0002, 0, 0]), wrong);
        assert_eq!(error(&[0x0300_0001]), CommandError::Truncated { method: "notify", missing: 1 });
        let operand = CommandError::Operand { method: "launch", operand: "ctas", value: 0 };
        assert_eq!(error(&[0x0100_0008, 0, 0, 0, 0, 32, 16, 0, 0]), operand);
        let operand = CommandError::Operand { method: "invalidate", operand: "caches", value: 16 };
        assert_eq!(error(&[0x0400_0001, 16]), operand);
    }
}
