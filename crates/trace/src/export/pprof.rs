//! The profile for `pprof`: samples by instruction and reason, with inlined functions, in its protocol buffer.
//!
//! The values are warp-cycles and executed warp instructions. The reason is a label: `pprof -tagleaf=reason`.

use super::proto::Message;
use crate::profile::Profile;
use crate::record::INSTRUCTION_BYTES;
use crate::stall::Stall;
use std::collections::BTreeMap;

/// Texts by number; the first is empty, as the format asks.
struct Strings {
    list: Vec<String>,
    numbers: BTreeMap<String, u64>,
}

impl Strings {
    fn new() -> Strings {
        Strings { list: vec![String::new()], numbers: BTreeMap::from([(String::new(), 0)]) }
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(&n) = self.numbers.get(text) {
            return n;
        }
        let n = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), n);
        n
    }
}

/// The message, not compressed.
pub fn message(p: &Profile) -> Vec<u8> {
    let mut strings = Strings::new();
    let mut functions: BTreeMap<(String, String), u64> = BTreeMap::new();
    let value_type = |strings: &mut Strings, kind: &str, unit: &str| {
        Message::default().number(1, strings.number(kind)).number(2, strings.number(unit))
    };
    let mut out = Message::default()
        .message(1, value_type(&mut strings, "warp_cycles", "cycles"))
        .message(1, value_type(&mut strings, "instructions", "count"));
    let reason = strings.number("reason");
    let mut locations = Vec::new();
    for (n, i) in p.code.iter().enumerate() {
        let id = n as u64 + 1;
        for stall in Stall::ALL {
            let cycles = i.stalls[stall as usize];
            if cycles == 0 {
                continue;
            }
            let executed = if stall == Stall::Selected { i.executed() } else { 0 };
            let label = Message::default().number(1, reason).number(2, strings.number(stall.name()));
            out = out.message(
                2,
                Message::default().packed(1, &[id]).packed(2, &[cycles, executed]).message(3, label),
            );
        }
        let address = p.code_base + u64::from(i.pc * INSTRUCTION_BYTES);
        let mut location = Message::default().number(1, id).number(2, 1).number(3, address);
        // Innermost first. Line tables name no inlined functions: they are called after where they stand.
        let frames = i.frames.len();
        for (k, f) in i.frames.iter().enumerate() {
            let file = p.files.get(f.file as usize).map_or("?", |t| t.name.as_str());
            let name = match k + 1 == frames {
                true => i.function.clone(),
                false => format!("inlined from {}", p.file_name(f.file)),
            };
            let next = functions.len() as u64 + 1;
            let function = *functions.entry((name, file.to_owned())).or_insert(next);
            location = location.message(4, line(function, f.line, f.column));
        }
        if frames == 0 {
            let next = functions.len() as u64 + 1;
            let function = *functions.entry((i.function.clone(), p.ptx.name.clone())).or_insert(next);
            location = location.message(4, line(function, i.ptx_line, 0));
        }
        locations.push(location);
    }
    let end = p.code.last().map_or(0, |i| u64::from((i.pc + 1) * INSTRUCTION_BYTES));
    let mapping = Message::default()
        .number(1, 1)
        .number(2, p.code_base)
        .number(3, p.code_base + end)
        .number(5, strings.number(&p.ptx.name))
        .number(7, 1)
        .number(8, 1)
        .number(9, 1)
        .number(10, 1);
    out = out.message(3, mapping);
    for location in locations {
        out = out.message(4, location);
    }
    for ((name, file), id) in functions {
        let function = Message::default()
            .number(1, id)
            .number(2, strings.number(&name))
            .number(3, strings.number(&name))
            .number(4, strings.number(&file));
        out = out.message(5, function);
    }
    let comment = strings.number(&format!("{} on {}: {} cycles", p.kernel, p.machine.name, p.cycles));
    let default = strings.number("warp_cycles");
    let period = value_type(&mut strings, "warp_cycles", "cycles");
    for text in &strings.list {
        out = out.text(6, text);
    }
    out.number(10, (p.seconds() * 1e9) as u64)
        .message(11, period)
        .number(12, 1)
        .number(13, comment)
        .number(14, default)
        .finish()
}

fn line(function: u64, line: u32, column: u32) -> Message {
    Message::default().number(1, function).number(2, line.into()).number(3, column.into())
}

/// The file: the message in a gzip frame, which all readers take.
pub fn file(p: &Profile) -> Vec<u8> {
    gzip(&message(p))
}

/// A gzip frame around bytes that are not compressed: blocks that only store.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut parts = bytes.chunks(0xffff).peekable();
    if parts.peek().is_none() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(part) = parts.next() {
        let length = part.len() as u16;
        out.push(u8::from(parts.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend_from_slice(part);
    }
    out.extend(crc32(bytes).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &b in bytes {
        crc ^= u32::from(b);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_store() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let long = vec![7u8; 0x1_0005];
        let framed = gzip(&long);
        assert_eq!(framed.len(), 10 + 5 + 0xffff + 5 + 6 + 8);
        assert_eq!((framed[10], framed[10 + 5 + 0xffff]), (0, 1));
    }
}
