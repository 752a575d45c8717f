//! The records of a trace cell: eight bytes, or more in the longer forms.
//!
//! | bits of the second word | vector form | index form |
//! | --- | --- | --- |
//! | 0 to 21 | a bit for every reason that holds | 0 to 5: the first reason that holds, 63 for none; others zero |
//! | 22 to 25 | low bits of the SM's number | the same |
//! | 26 to 31 | its high bits: up to 1,024 SMs | the same |
//!
//! The first word is the program counter: a byte offset in the module's code. The index form has a variant whose index
//! takes 4 bits; reasons past the fifteenth then read as 15. Words are little-endian.
//!
//! A longer record goes on, as its [`Form`] says, with the warp (four bytes: CTA slot of the SM in the high half, warp slot in
//! the low), the cycle (eight bytes) and counters (four bytes each).

use crate::stall::{STALLS, Stall};
use serde::{Deserialize, Serialize};

/// Bytes of an instruction in memory.
pub const INSTRUCTION_BYTES: u32 = 16;
/// SMs that the id tells apart.
pub const MAX_SMS: u32 = 1 << 10;

/// How a record tells why its warp waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// A bit for every reason that holds.
    #[default]
    Vector,
    /// The first that holds, in 6 bits.
    Index6,
    /// The first that holds, in 4 bits.
    Index4,
}

/// Which parts a record has beyond its eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Form {
    pub encoding: Encoding,
    pub warp: bool,
    pub cycle: bool,
    /// Number of performance counters.
    pub counters: u8,
}

/// Most counters that a record carries.
pub const MAX_COUNTERS: u8 = 4;

impl Form {
    /// Bytes of a record.
    #[inline]
    pub fn bytes(self) -> usize {
        8 + 4 * usize::from(self.warp) + 8 * usize::from(self.cycle) + 4 * usize::from(self.counters)
    }

    /// As a word of a register: encoding in bits 0 and 1, warp, cycle, counters from bit 4 on.
    pub fn to_word(self) -> u32 {
        self.encoding as u32
            | u32::from(self.warp) << 2
            | u32::from(self.cycle) << 3
            | u32::from(self.counters) << 4
    }

    pub fn from_word(word: u32) -> Option<Form> {
        let encoding = match word & 3 {
            0 => Encoding::Vector,
            1 => Encoding::Index6,
            2 => Encoding::Index4,
            _ => return None,
        };
        let counters = u8::try_from(word >> 4).ok().filter(|&n| n <= MAX_COUNTERS)?;
        Some(Form { encoding, warp: word & 4 != 0, cycle: word & 8 != 0, counters })
    }
}

/// A sample of one warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Byte offset of the warp's next instruction in its module's code.
    pub pc: u32,
    /// A bit for every reason that holds; of an index form the one bit of the first.
    pub stalls: u32,
    pub sm: u16,
    pub warp: u16,
    pub cta: u16,
    pub cycle: u64,
    pub counters: [u32; MAX_COUNTERS as usize],
}

/// No reason holds, in the index form.
const NOTHING: u32 = 63;

impl Record {
    /// The first reason that holds, in the order in which they are charged.
    #[inline]
    pub fn reason(&self) -> Option<Stall> {
        Stall::from_index(self.stalls.trailing_zeros() as usize)
    }

    /// The instruction's number in the code.
    pub fn instruction(&self) -> u32 {
        self.pc / INSTRUCTION_BYTES
    }

    /// The eight bytes as two words.
    #[inline]
    pub fn words(&self, encoding: Encoding) -> [u32; 2] {
        let mask = (1 << STALLS) - 1;
        let why = match encoding {
            Encoding::Vector => self.stalls & mask,
            Encoding::Index6 => self.reason().map_or(NOTHING, |s| s as u32),
            Encoding::Index4 => self.reason().map_or(15, |s| (s as u32).min(15)),
        };
        let sm = u32::from(self.sm);
        [self.pc, why | (sm & 0xf) << 22 | (sm >> 4 & 0x3f) << 26]
    }

    fn from_words([pc, word]: [u32; 2], encoding: Encoding) -> Record {
        let stalls = match encoding {
            Encoding::Vector => word & ((1 << STALLS) - 1),
            Encoding::Index6 => Some(word & 63).filter(|&n| (n as usize) < STALLS).map_or(0, |n| 1 << n),
            Encoding::Index4 => 1 << (word & 15),
        };
        let sm = (word >> 22 & 0xf | (word >> 26 & 0x3f) << 4) as u16;
        Record { pc, stalls, sm, ..Record::default() }
    }

    /// The bytes that every record has.
    #[inline]
    pub fn eight_bytes(&self, encoding: Encoding) -> [u8; 8] {
        let [pc, why] = self.words(encoding).map(u64::from);
        (pc | why << 32).to_le_bytes()
    }

    /// Appends the record's bytes.
    pub fn write(&self, form: Form, out: &mut Vec<u8>) {
        out.extend(self.eight_bytes(form.encoding));
        if form.warp {
            out.extend((u32::from(self.cta) << 16 | u32::from(self.warp)).to_le_bytes());
        }
        if form.cycle {
            out.extend(self.cycle.to_le_bytes());
        }
        for counter in self.counters.iter().take(form.counters.into()) {
            out.extend(counter.to_le_bytes());
        }
    }

    /// The first record of bytes; `None` where they are too few.
    pub fn read(form: Form, bytes: &[u8]) -> Option<Record> {
        let bytes = bytes.get(..form.bytes())?;
        let mut words = bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let mut word = || words.next().unwrap_or(0);
        let mut record = Record::from_words([word(), word()], form.encoding);
        if form.warp {
            let n = word();
            (record.warp, record.cta) = (n as u16, (n >> 16) as u16);
        }
        if form.cycle {
            record.cycle = u64::from(word()) | u64::from(word()) << 32;
        }
        for counter in record.counters.iter_mut().take(form.counters.into()) {
            *counter = word();
        }
        Some(record)
    }
}

/// All records of a buffer; bytes behind the last whole one are left out.
pub fn read_all(form: Form, bytes: &[u8]) -> impl Iterator<Item = Record> + '_ {
    bytes.chunks_exact(form.bytes()).filter_map(move |b| Record::read(form, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let stalls = 1 << Stall::LongScoreboard as u32 | 1 << Stall::NotSelected as u32;
        let record = Record { pc: 0x1230, stalls, sm: 0x2a5, ..Record::default() };
        let mut bytes = Vec::new();
        record.write(Form::default(), &mut bytes);
        let second = 1u32 << 2 | 1 << 21 | 0x5 << 22 | 0x2a << 26;
        assert_eq!(bytes, [&0x1230u32.to_le_bytes()[..], &second.to_le_bytes()].concat());
        assert_eq!(record.words(Encoding::Index6), [0x1230, 2 | 0x5 << 22 | 0x2a << 26]);
        assert_eq!(record.words(Encoding::Index4)[1] & 0x3f, 2);
        assert_eq!(Form { encoding: Encoding::Vector, warp: true, cycle: true, counters: 2 }.bytes(), 28);
    }

    proptest! {
        #[test]
        fn records_survive_their_bytes(
            pc: u32, stalls in 0u32..1 << STALLS, sm in 0u16..1024, warp: u16, cta: u16, cycle: u64,
            counters: [u32; 4], word in 0u32..80,
        ) {
            let Some(form) = Form::from_word(word) else { return Ok(()) };
            prop_assert_eq!(form.to_word(), word);
            let record = Record { pc, stalls, sm, warp, cta, cycle, counters };
            let mut bytes = Vec::new();
            record.write(form, &mut bytes);
            prop_assert_eq!(bytes.len(), form.bytes());
            let back = Record::read(form, &bytes).expect("long enough");
            prop_assert_eq!((back.pc, back.sm), (pc, sm));
            match form.encoding {
                Encoding::Vector => prop_assert_eq!(back.stalls, stalls),
                Encoding::Index6 => prop_assert_eq!(back.reason(), record.reason()),
                Encoding::Index4 => prop_assert_eq!(
                    back.reason().map(|s| s as usize),
                    Some(record.reason().map_or(15, |s| (s as usize).min(15)))
                ),
            }
            prop_assert_eq!(back.cycle, if form.cycle { cycle } else { 0 });
            prop_assert!(Record::read(form, &bytes[1..]).is_none());
        }
    }
}
