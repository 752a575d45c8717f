//! The registers of the trace cells, as the host writes them: one set that all SMs see.
//!
//! | offset | register |
//! | --- | --- |
//! | `0x00` | control: bit 0 on; bit 1 by events, else by cycles; bit 2 one warp in turn, else all; bits 4, 5 the path of records (0 own, 1 load-store units, 2 the performance monitor's stream); bits 8 to 11 the event (0 cache misses, 1 branches, 2 calls, 3 barriers) |
//! | `0x04` | period: cycles or events from sample to sample |
//! | `0x08` | phase: cycles, or events, before the first |
//! | `0x0c` | form of records ([`Form::to_word`]) |
//! | `0x10`, `0x18` | first and last CTA, 64 bits each |
//! | `0x20` | task: number of the launch, 0 for all |
//! | `0x24` | clock that the next two are by: 0 since the launch began, 1 the machine's |
//! | `0x28`, `0x30` | first cycle, and the one after the last, 64 bits each |
//! | `0x38`, `0x40` | address and bytes of the event buffer, 64 bits each |
//! | `0x80` to `0xfc` | mask of SMs, a bit each |
//! | `0x100`, `0x108` | records in the event buffer, and records lost, 64 bits each; they can only be read |

use serde::{Deserialize, Serialize};
use std::fmt;
use trace::record::{Form, MAX_SMS};

pub const CONTROL: u32 = 0x00;
pub const PERIOD: u32 = 0x04;
pub const PHASE: u32 = 0x08;
pub const FORM: u32 = 0x0c;
pub const CTA_FIRST: u32 = 0x10;
pub const CTA_LAST: u32 = 0x18;
pub const TASK: u32 = 0x20;
pub const CLOCK: u32 = 0x24;
pub const START: u32 = 0x28;
pub const END: u32 = 0x30;
pub const BUFFER: u32 = 0x38;
pub const BUFFER_BYTES: u32 = 0x40;
pub const SM_MASK: u32 = 0x80;
pub const RECORDS: u32 = 0x100;
pub const LOST: u32 = 0x108;
/// Bytes of all registers.
const BYTES: usize = 0x110;

/// What a sample can be taken every so many of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
    CacheMiss,
    Branch,
    Call,
    Barrier,
}

impl Event {
    pub const ALL: [Event; 4] = [Event::CacheMiss, Event::Branch, Event::Call, Event::Barrier];

    /// What users call them.
    pub fn name(self) -> &'static str {
        match self {
            Event::CacheMiss => "cache misses",
            Event::Branch => "branches",
            Event::Call => "calls",
            Event::Barrier => "barriers",
        }
    }
}

/// How records get to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Drain {
    /// On a path that nothing else uses.
    #[default]
    Own,
    /// As stores of the SM's load-store units: the program is slowed down.
    LoadStore,
    /// With the counters of the performance monitor.
    Stream,
}

/// What the registers say, taken together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Sampled by this event; by cycles where `None`.
    pub event: Option<Event>,
    pub in_turn: bool,
    pub drain: Drain,
    pub period: u64,
    pub phase: u64,
    pub form: Form,
    pub ctas: (u64, u64),
    /// Number of the launch, 0 for all.
    pub task: u64,
    pub machine_clock: bool,
    pub window: (u64, u64),
    pub buffer: u64,
    pub buffer_bytes: u64,
    pub sms: [u32; 32],
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            event: None,
            in_turn: false,
            drain: Drain::Own,
            period: 32,
            phase: 0,
            form: Form::default(),
            ctas: (0, u64::MAX),
            task: 0,
            machine_clock: false,
            window: (0, u64::MAX),
            buffer: 0,
            buffer_bytes: 0,
            sms: [u32::MAX; 32],
        }
    }
}

impl Settings {
    /// The words that the host writes, with their offsets; the control register comes last.
    pub fn words(&self) -> Vec<(u32, u32)> {
        let mut out = vec![
            (PERIOD, self.period.min(u32::MAX.into()) as u32),
            (PHASE, self.phase.min(u32::MAX.into()) as u32),
            (FORM, self.form.to_word()),
            (TASK, self.task as u32),
            (CLOCK, self.machine_clock.into()),
        ];
        let wide = [
            (CTA_FIRST, self.ctas.0),
            (CTA_LAST, self.ctas.1),
            (START, self.window.0),
            (END, self.window.1),
            (BUFFER, self.buffer),
            (BUFFER_BYTES, self.buffer_bytes),
        ];
        for (at, value) in wide {
            out.extend([(at, value as u32), (at + 4, (value >> 32) as u32)]);
        }
        out.extend((0..).zip(self.sms).map(|(n, mask)| (SM_MASK + 4 * n, mask)));
        let path = match self.drain {
            Drain::Own => 0,
            Drain::LoadStore => 1,
            Drain::Stream => 2,
        };
        let event = self.event.map_or(0, |e| e as u32);
        out.push((
            CONTROL,
            1 | u32::from(self.event.is_some()) << 1 | u32::from(self.in_turn) << 2 | path << 4 | event << 8,
        ));
        out
    }

    /// Only these SMs.
    pub fn only(&mut self, sms: impl IntoIterator<Item = u32>) {
        self.sms = [0; 32];
        for n in sms.into_iter().filter(|&n| n < MAX_SMS) {
            self.sms[n as usize / 32] |= 1 << (n % 32);
        }
    }

    pub fn has_sm(&self, sm: u16) -> bool {
        self.sms.get(sm as usize / 32).is_some_and(|mask| mask >> (sm % 32) & 1 != 0)
    }
}

/// Why a register cannot be written so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegisterError {
    pub offset: u32,
    pub value: u32,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace register {:#x} cannot be set to {:#x}", self.offset, self.value)
    }
}

impl std::error::Error for RegisterError {}

/// The registers as words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Registers {
    #[serde(with = "simt::arrays")]
    words: [u32; BYTES / 4],
}

impl Default for Registers {
    fn default() -> Registers {
        Registers { words: [0; BYTES / 4] }
    }
}

impl Registers {
    /// The host writes a word.
    pub fn write(&mut self, offset: u32, value: u32) -> Result<(), RegisterError> {
        let wrong = RegisterError { offset, value };
        let is_good = match offset {
            CONTROL => value & !0xf37 == 0 && value >> 4 & 3 < 3 && value >> 8 & 0xf < 4,
            PERIOD => value > 0,
            FORM => Form::from_word(value).is_some(),
            CLOCK => value < 2,
            _ => offset.is_multiple_of(4) && offset < RECORDS && !(0x48..SM_MASK).contains(&offset),
        };
        if !is_good {
            return Err(wrong);
        }
        *self.words.get_mut(offset as usize / 4).ok_or(wrong)? = value;
        Ok(())
    }

    /// The host reads a word; what does not exist reads as zero.
    pub fn read(&self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).copied().unwrap_or(0)
    }

    /// The cells tell how many records there are.
    pub fn report(&mut self, records: u64, lost: u64) {
        for (at, n) in [(RECORDS, records), (LOST, lost)] {
            self.words[at as usize / 4] = n as u32;
            self.words[at as usize / 4 + 1] = (n >> 32) as u32;
        }
    }

    /// A register of 64 bits.
    pub fn wide(&self, offset: u32) -> u64 {
        u64::from(self.read(offset)) | u64::from(self.read(offset + 4)) << 32
    }

    /// What they say; `None` while the cells are off.
    pub fn settings(&self) -> Option<Settings> {
        let control = self.read(CONTROL);
        if control & 1 == 0 {
            return None;
        }
        let mut sms = [0; 32];
        sms.iter_mut().zip(0..).for_each(|(mask, n)| *mask = self.read(SM_MASK + 4 * n));
        Some(Settings {
            event: (control & 2 != 0).then(|| Event::ALL[(control >> 8 & 3) as usize]),
            in_turn: control & 4 != 0,
            drain: match control >> 4 & 3 {
                0 => Drain::Own,
                1 => Drain::LoadStore,
                _ => Drain::Stream,
            },
            period: self.read(PERIOD).max(1).into(),
            phase: self.read(PHASE).into(),
            form: Form::from_word(self.read(FORM)).unwrap_or_default(),
            ctas: (self.wide(CTA_FIRST), self.wide(CTA_LAST)),
            task: self.read(TASK).into(),
            machine_clock: self.read(CLOCK) != 0,
            window: (self.wide(START), self.wide(END)),
            buffer: self.wide(BUFFER),
            buffer_bytes: self.wide(BUFFER_BYTES),
            sms,
        })
    }
}
