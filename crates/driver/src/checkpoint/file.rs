//! The checkpoint file. Numbers are little-endian.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | `WARPLCHK` |
//! | 4 | version, 2 |
//! | 8 | fingerprint of how the machine's state is laid out: another one is another version of the machine |
//! | 8, 8, 8 | lengths of the parts that follow |
//! | ... | what runs: the launch file, programs, configuration, options, what was done before; postcard |
//! | ... | the machine's state; postcard |
//! | ... | bytes of device memory that are not zeros, where the first part says |
//! | 32 | SHA-256 of everything before |
//!
//! A reader looks at version and fingerprint first, then at the length, then at the checksum, and only then at the
//! contents.

use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

pub const MAGIC: &[u8; 8] = b"WARPLCHK";
pub const VERSION: u32 = 8;
pub const HEADER: usize = 8 + 4 + 8 + 3 * 8;
pub const CHECKSUM: usize = 32;

/// Why bytes are no checkpoint that can be gone on from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileError {
    Io(String),
    /// They are something else.
    NotOne,
    Version(u32),
    /// Written by a program whose machine has other state.
    Layout,
    /// Bytes there are, and bytes there should be.
    Length(u64, u64),
    Checksum,
    /// The checksum is right, and what it says cannot be; what.
    Contents(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Io(e) => f.write_str(e),
            FileError::NotOne => f.write_str("it is no checkpoint"),
            FileError::Version(n) => write!(f, "it is a checkpoint of version {n}, not of version {VERSION}"),
            FileError::Layout => f.write_str("it was written by another version of the machine"),
            FileError::Length(there, wanted) if there < wanted => {
                write!(f, "it is cut off: {there} of {wanted} bytes are there")
            }
            FileError::Length(there, wanted) => write!(f, "it has {} bytes too many", there - wanted),
            FileError::Checksum => f.write_str("it is damaged: its checksum is wrong"),
            FileError::Contents(what) => write!(f, "its contents cannot be: {what}"),
        }
    }
}

impl FileError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            FileError::Io(_) => "check the path",
            FileError::NotOne => "give a file that `--checkpoint` wrote",
            FileError::Version(_) | FileError::Layout => {
                "go on with the warploom that wrote it, or run the launch file again"
            }
            _ => "run the launch file again",
        }
    }
}

impl std::error::Error for FileError {}

impl From<io::Error> for FileError {
    fn from(e: io::Error) -> FileError {
        FileError::Io(e.to_string())
    }
}

/// Bytes that are read, and where.
pub trait Bytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> Bytes for T {}

/// Writes to a file and hashes what it wrote.
struct Hashing<'a> {
    to: &'a mut dyn Write,
    hash: Sha256,
}

impl Hashing<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.to.write_all(bytes)
    }
}

/// Writes a checkpoint; `memory` puts as many bytes as `memory_bytes` says.
pub fn write(
    to: &mut dyn Write,
    layout: u64,
    what: &[u8],
    machine: &[u8],
    memory_bytes: u64,
    memory: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let mut to = Hashing { to, hash: Sha256::new() };
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend(layout.to_le_bytes());
    for length in [what.len() as u64, machine.len() as u64, memory_bytes] {
        header.extend(length.to_le_bytes());
    }
    to.put(&header)?;
    to.put(what)?;
    to.put(machine)?;
    memory(&mut |bytes| to.put(bytes))?;
    let Hashing { to, hash } = to;
    to.write_all(&hash.finalize())
}

/// The parts of a checkpoint whose checksum is right.
#[derive(Debug)]
pub struct Parts {
    pub what: Vec<u8>,
    pub machine: Vec<u8>,
    /// Where the bytes of memory begin, and how many there are.
    pub memory: (u64, u64),
}

fn read_part(from: &mut dyn Bytes, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub fn read(from: &mut dyn Bytes, layout: u64) -> Result<Parts, FileError> {
    let there = from.seek(SeekFrom::End(0))?;
    from.seek(SeekFrom::Start(0))?;
    let header = read_part(from, HEADER as u64)?;
    let number = |at: usize| header.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    if header.len() < 12 || !header.starts_with(MAGIC) {
        // The beginning of one is a checkpoint that was cut off.
        let begins = !header.is_empty() && MAGIC.starts_with(&header);
        return Err(if begins { FileError::Length(there, HEADER as u64) } else { FileError::NotOne });
    }
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if version != VERSION {
        return Err(FileError::Version(version));
    }
    let (Some(written), Some(what), Some(machine), Some(memory)) =
        (number(12), number(20), number(28), number(36))
    else {
        return Err(FileError::Length(there, HEADER as u64));
    };
    if written != layout {
        return Err(FileError::Layout);
    }
    let wanted =
        [what, machine, memory, CHECKSUM as u64].into_iter().fold(HEADER as u64, u64::saturating_add);
    if there != wanted {
        return Err(FileError::Length(there, wanted));
    }
    let mut hash = Sha256::new();
    hash.update(&header);
    let mut left = wanted - (HEADER + CHECKSUM) as u64;
    while left > 0 {
        let chunk = read_part(from, left.min(1 << 20))?;
        if chunk.is_empty() {
            return Err(FileError::Length(wanted - left, wanted));
        }
        hash.update(&chunk);
        left -= chunk.len() as u64;
    }
    if read_part(from, CHECKSUM as u64)? != hash.finalize()[..] {
        return Err(FileError::Checksum);
    }
    from.seek(SeekFrom::Start(HEADER as u64))?;
    Ok(Parts {
        what: read_part(from, what)?,
        machine: read_part(from, machine)?,
        memory: (HEADER as u64 + what + machine, memory),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, 7, b"what", b"machine", 6, |put| {
            put(b"mem")?;
            put(b"ory")
        })
        .expect("written");
        bytes
    }

    fn opened(bytes: &[u8]) -> Result<Parts, FileError> {
        read(&mut io::Cursor::new(bytes), 7)
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = written();
        let parts = opened(&bytes).expect("a checkpoint");
        assert_eq!((&parts.what[..], &parts.machine[..]), (&b"what"[..], &b"machine"[..]));
        let (at, n) = parts.memory;
        assert_eq!(&bytes[at as usize..(at + n) as usize], b"memory");
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        let bytes = written();
        for n in 0..bytes.len() {
            let error = opened(&bytes[..n]).expect_err("cut off");
            assert!(
                if n == 0 {
                    error == FileError::NotOne
                } else {
                    matches!(error, FileError::Length(..)) || n < 12
                },
                "{n}: {error}"
            );
        }
        for bit in 0..8 * bytes.len() {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let error = opened(&other).expect_err("damaged");
            let expected = match bit / 8 {
                0..8 => error == FileError::NotOne,
                8..12 => matches!(error, FileError::Version(_)),
                12..20 => error == FileError::Layout,
                20..44 => matches!(error, FileError::Length(..)),
                _ => error == FileError::Checksum,
            };
            assert!(expected, "bit {bit}: {error}");
        }
        let long = [&bytes[..], b"x"].concat();
        assert_eq!(opened(&long).expect_err("too long").to_string(), "it has 1 bytes too many");
        assert_eq!(opened(b"something else").expect_err("no checkpoint"), FileError::NotOne);
    }
}
