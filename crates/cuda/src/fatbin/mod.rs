//! Fat binaries: containers of compilers that hold a program in several forms. The PTX that suits the device best is taken.
//!
//! A container is a header of 16 bytes (magic, version, header's size, size of what follows) and its entries, each with a header
//! of its own: kind, sizes, compute capability, flags. Texts are raw, or compressed with LZ4 (a block) or Zstandard.

mod lz4;

use crate::error::{Answer, Code};
use std::io::Read;

/// How a container begins.
const MAGIC: u32 = 0xba55_ed50;
/// How the structure begins that programs hand to the runtime: magic, version, container, list of containers to link.
const WRAPPER: u32 = 0x4662_43b1;
/// The version of that structure that has a list.
const LINKED: u32 = 2;
/// Bytes of a container's header.
pub const HEADER: usize = 16;
/// Bytes of an entry's fields that are read.
const ENTRY: usize = 64;
/// The kind of entry that is PTX text.
const PTX: u16 = 1;
/// Flags of an entry: how it is compressed.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
/// No text is longer.
const MAX_TEXT: usize = 1 << 30;

/// How a fat binary begins.
pub const MAGICS: [u32; 2] = [MAGIC, WRAPPER];

/// A number of an entry or header.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Answer<u64> {
    let field = bytes.get(at..at + N).ok_or(Code::INVALID_IMAGE)?;
    let mut all = [0; 8];
    all[..N].copy_from_slice(field);
    Ok(u64::from_le_bytes(all))
}

/// The text of an entry.
fn text(entry: &[u8], body: &[u8]) -> Answer<Vec<u8>> {
    let flags = number::<8>(entry, 40)?;
    let packed = number::<4>(entry, 16)? as usize;
    let size = number::<8>(entry, 56)? as usize;
    if flags & (LZ4 | ZSTD) == 0 {
        let end = body.iter().position(|&b| b == 0).unwrap_or(body.len());
        return Ok(body[..end].to_vec());
    }
    let packed = body.get(..packed).ok_or(Code::INVALID_IMAGE)?;
    if size > MAX_TEXT {
        return Err(Code::INVALID_IMAGE);
    }
    let mut out = if flags & LZ4 != 0 {
        lz4::unpack(packed, size).ok_or(Code::INVALID_IMAGE)?
    } else {
        let stream = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|_| Code::INVALID_IMAGE)?;
        let mut out = Vec::new();
        stream.take(size as u64).read_to_end(&mut out).map_err(|_| Code::INVALID_IMAGE)?;
        out
    };
    out.truncate(out.iter().position(|&b| b == 0).unwrap_or(out.len()));
    Ok(out)
}

/// The PTX of a container for a device of this compute capability (as 90 for 9.0): the newest that it can run. Nothing where the
/// container is empty; a code where it has programs but none for this device.
pub fn choose(container: &[u8], capability: u32) -> Answer<Option<Vec<u8>>> {
    let mut at = number::<2>(container, 6)? as usize;
    let end = at.saturating_add(number::<8>(container, 8)? as usize).min(container.len());
    let mut best: Option<(u32, &[u8], &[u8])> = None;
    let mut is_empty = true;
    while at + ENTRY <= end {
        let entry = &container[at..end];
        let (head, size) = (number::<4>(entry, 4)? as usize, number::<8>(entry, 8)? as usize);
        let body = entry.get(head..).and_then(|b| b.get(..size)).ok_or(Code::INVALID_IMAGE)?;
        if head < ENTRY {
            return Err(Code::INVALID_IMAGE);
        }
        is_empty = false;
        let target = number::<4>(entry, 28)? as u32;
        if number::<2>(entry, 0)? == u64::from(PTX)
            && target <= capability
            && best.is_none_or(|(best, ..)| target > best)
        {
            best = Some((target, entry, body));
        }
        at += head + size;
    }
    match best {
        Some((_, entry, body)) => text(entry, body).map(Some),
        None if is_empty => Ok(None),
        None => Err(Code::NO_BINARY_FOR_GPU),
    }
}

/// The container at an address.
///
/// # Safety
/// A container is there, as long as its header says.
unsafe fn container_at(address: usize) -> Answer<Vec<u8>> {
    // SAFETY: the caller's promise.
    unsafe {
        let header = *(address as *const [u8; HEADER]);
        if number::<4>(&header, 0)? != u64::from(MAGIC) {
            return Err(Code::INVALID_IMAGE);
        }
        let len = number::<2>(&header, 6)?.saturating_add(number::<8>(&header, 8)?);
        Ok(crate::types::bytes_at(address, len as usize))
    }
}

/// The programs of the fat binary at an address, to be linked to one: of the container, and of those that a linker left to be
/// linked when the program is loaded.
///
/// # Safety
/// The first word there is one of [`MAGICS`], and what it promises is there.
pub unsafe fn programs_at(address: usize, capability: u32) -> Answer<Vec<Vec<u8>>> {
    // SAFETY: the caller's promise.
    let containers = unsafe {
        if *(address as *const u32) == MAGIC {
            vec![container_at(address)?]
        } else {
            let words = *(address as *const [usize; 3]);
            let version = (words[0] >> 32) as u32;
            let mut all = vec![container_at(words[1])?];
            let mut list = words[2] as *const usize;
            while version == LINKED && !list.is_null() && *list != 0 {
                all.push(container_at(*list)?);
                list = list.add(1);
            }
            all
        }
    };
    let mut programs = Vec::new();
    let mut refused = None;
    for container in &containers {
        match choose(container, capability) {
            Ok(Some(program)) => programs.push(program),
            Ok(None) => {}
            // A device library of machine code: what it defines is built in.
            Err(Code::NO_BINARY_FOR_GPU) => refused = Some(Code::NO_BINARY_FOR_GPU),
            Err(code) => return Err(code),
        }
    }
    match refused {
        Some(code) if programs.is_empty() => Err(code),
        _ => Ok(programs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with its header.
    fn entry(kind: u16, target: u32, flags: u64, body: &[u8], size: usize) -> Vec<u8> {
        let mut e = vec![0; ENTRY];
        e[..2].copy_from_slice(&kind.to_le_bytes());
        e[4..8].copy_from_slice(&(ENTRY as u32).to_le_bytes());
        e[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        e[16..20].copy_from_slice(&(body.len() as u32).to_le_bytes());
        e[28..32].copy_from_slice(&target.to_le_bytes());
        e[40..48].copy_from_slice(&flags.to_le_bytes());
        e[56..64].copy_from_slice(&(size as u64).to_le_bytes());
        e.extend_from_slice(body);
        e
    }

    fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut all = MAGIC.to_le_bytes().to_vec();
        all.extend([1, 0, 16, 0]);
        all.extend((body.len() as u64).to_le_bytes());
        all.extend(body);
        all
    }

    #[test]
    fn the_newest_text_that_the_device_can_run_is_taken() {
        let entries =
            [entry(2, 90, 0, b"code", 0), entry(1, 80, 0, b"for 80\0", 0), entry(1, 90, 0, b"for 90", 0)];
        let all = container(&entries);
        assert_eq!(choose(&all, 90), Ok(Some(b"for 90".to_vec())));
        assert_eq!(choose(&all, 86), Ok(Some(b"for 80".to_vec())));
        assert_eq!(choose(&all, 75), Err(Code::NO_BINARY_FOR_GPU));
        assert_eq!(choose(&container(&[]), 90), Ok(None));
    }

    #[test]
    fn compressed_texts_are_unpacked() {
        // Four letters, then eight more from four back; a frame of Zstandard that holds a raw block.
        let lz4 = entry(1, 90, LZ4, &[0x44, b'a', b'b', b'c', b'd', 4, 0, 0x10, b'!'], 13);
        assert_eq!(choose(&container(&[lz4]), 90), Ok(Some(b"abcdabcdabcd!".to_vec())));
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0, b'p', b't', b'x'];
        assert_eq!(choose(&container(&[entry(1, 90, ZSTD, &frame, 3)]), 90), Ok(Some(b"ptx".to_vec())));
    }

    #[test]
    fn broken_containers_are_refused() {
        let good = container(&[entry(1, 90, LZ4, &[0x44, b'a', b'b', b'c', b'd', 4, 0], 12)]);
        for len in 0..good.len() {
            let _ = choose(&good[..len], 90);
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            let _ = choose(&bad, 90);
        }
        assert_eq!(choose(&container(&[entry(1, 90, LZ4, &[0x04], 4)]), 90), Err(Code::INVALID_IMAGE));
        assert_eq!(choose(&container(&[entry(1, 90, ZSTD, b"no frame", 4)]), 90), Err(Code::INVALID_IMAGE));
    }
}
