//! NumPy's `.npy` files: read (versions 1 to 3, any shape, read as a flat list in C order) and write.

use crate::element::Element;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// A header is a short dictionary; anything longer is no header.
const MAX_HEADER: usize = 1 << 16;

/// The numbers of a file, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    pub element: Element,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

/// The type of a file's elements, its shape, and where the data starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    pub element: Element,
    pub shape: Vec<u64>,
    big_endian: bool,
}

impl Header {
    pub fn count(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
    }
}

/// Reads a whole file; data over `limit` bytes are refused before they are read.
pub fn read(mut from: impl Read, limit: u64) -> Result<Array, String> {
    let header = read_header(&mut from)?;
    let size = header.element.size() as u64;
    let want = header.count().and_then(|n| n.checked_mul(size)).ok_or("its shape overflows")?;
    if want > limit {
        return Err(format!("it holds {want} bytes; the limit is {limit}"));
    }
    let mut bytes = Vec::new();
    from.take(want + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    match (bytes.len() as u64).cmp(&want) {
        std::cmp::Ordering::Less => {
            return Err(format!("it is cut off: {} of {want} data bytes are there", bytes.len()));
        }
        std::cmp::Ordering::Greater => return Err(format!("it has bytes behind its {want} data bytes")),
        std::cmp::Ordering::Equal => {}
    }
    if header.big_endian {
        bytes.chunks_exact_mut(header.element.size()).for_each(<[u8]>::reverse);
    }
    Ok(Array { element: header.element, shape: header.shape, bytes })
}

/// Reads magic, version and dictionary.
pub fn read_header(mut from: impl Read) -> Result<Header, String> {
    let mut start = [0; 8];
    read_exactly(&mut from, &mut start, "it is too short for a .npy file")?;
    if &start[..6] != MAGIC {
        return Err("it is no .npy file: it does not start with \\x93NUMPY".into());
    }
    let length = match start[6] {
        1 => {
            let mut n = [0; 2];
            read_exactly(&mut from, &mut n, "it is cut off in its header")?;
            usize::from(u16::from_le_bytes(n))
        }
        2 | 3 => {
            let mut n = [0; 4];
            read_exactly(&mut from, &mut n, "it is cut off in its header")?;
            u32::from_le_bytes(n) as usize
        }
        v => return Err(format!("its .npy version {v} is unknown; 1, 2 and 3 are read")),
    };
    if length > MAX_HEADER {
        return Err(format!("its header claims {length} bytes"));
    }
    let mut text = vec![0; length];
    read_exactly(&mut from, &mut text, "it is cut off in its header")?;
    let text = String::from_utf8(text).map_err(|_| "its header is not text")?;
    parse_header(&text)
}

fn read_exactly(from: &mut impl Read, into: &mut [u8], message: &str) -> Result<(), String> {
    from.read_exact(into).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => message.to_string(),
        _ => e.to_string(),
    })
}

/// The dictionary: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse_header(text: &str) -> Result<Header, String> {
    let value_of = |key: &str| {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let rest = quoted.iter().find_map(|q| text.split_once(q.as_str())).map(|(_, rest)| rest);
        rest.and_then(|r| r.trim_start().strip_prefix(':'))
            .map(str::trim_start)
            .ok_or_else(|| format!("its header has no `{key}`"))
    };
    let descr = value_of("descr")?;
    let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let descr = quote
        .and_then(|q| descr[1..].split(q).next())
        .ok_or("its elements are records; a plain number type is needed")?;
    let (order, kind) = match descr.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), ..] => (*order, &descr[1..]),
        _ => (b'=', descr),
    };
    let element = match kind {
        "u1" | "b1" => Element::U8,
        "u2" => Element::U16,
        "u4" => Element::U32,
        "u8" => Element::U64,
        "i1" => Element::I8,
        "i2" => Element::I16,
        "i4" => Element::I32,
        "i8" => Element::I64,
        "f2" => Element::F16,
        "f4" => Element::F32,
        "f8" => Element::F64,
        other => return Err(format!("its element type `{other}` is not one of u1..u8, i1..i8, f2, f4, f8")),
    };
    let shape = value_of("shape")?;
    let shape = shape
        .strip_prefix('(')
        .and_then(|s| s.split(')').next())
        .ok_or("its header has no shape in parentheses")?;
    let shape = shape
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(|s| s.parse().map_err(|_| format!("its shape has `{s}`, which is no number")))
        .collect::<Result<Vec<u64>, _>>()?;
    if value_of("fortran_order")?.starts_with("True") && shape.iter().filter(|&&d| d > 1).count() > 1 {
        return Err("it is in Fortran order; save it with numpy.ascontiguousarray first".into());
    }
    Ok(Header { element, shape, big_endian: order == b'>' })
}

/// The bytes before the data of a flat list. NumPy has no bfloat16: those are written as `u2`.
pub fn header(element: Element, count: u64) -> Vec<u8> {
    let kind = match element {
        Element::U8 => "|u1",
        Element::I8 => "|i1",
        Element::U16 | Element::Bf16 => "<u2",
        Element::U32 => "<u4",
        Element::U64 => "<u8",
        Element::I16 => "<i2",
        Element::I32 => "<i4",
        Element::I64 => "<i8",
        Element::F16 => "<f2",
        Element::F32 => "<f4",
        Element::F64 => "<f8",
    };
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({count},), }}");
    // Data start at a multiple of 64 bytes.
    let padded = (10 + text.len() + 1).next_multiple_of(64);
    text.push_str(&" ".repeat(padded - 10 - text.len() - 1));
    text.push('\n');
    let mut out = Vec::with_capacity(padded);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

/// Writes a flat list.
pub fn write(mut to: impl Write, element: Element, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&header(element, (bytes.len() / element.size()) as u64))?;
    to.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend_from_slice(&(header.len() as u16).to_le_bytes());
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(data);
        out
    }

    #[test]
    fn written_files_read_back() {
        for element in Element::ALL {
            let bytes: Vec<u8> = (0..element.size() as u8 * 5).collect();
            let mut out = Vec::new();
            write(&mut out, element, &bytes).expect("a vector takes everything");
            assert_eq!(out.len() % 64, bytes.len() % 64);
            let array = read(&out[..], 1 << 20).expect("readable");
            assert_eq!((array.shape, array.bytes), (vec![5], bytes));
            assert!(array.element == element || element == Element::Bf16);
        }
    }

    #[test]
    fn shapes_and_byte_orders() {
        let text = "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 1), }\n";
        let array = read(&file(text, &[1, 2, 3, 4])[..], 100).expect("readable");
        assert_eq!((array.element, array.shape, array.bytes), (Element::I16, vec![2, 1], vec![2, 1, 4, 3]));
        let scalar = "{\"shape\": (), \"fortran_order\": True, \"descr\": \"|u1\"}";
        assert_eq!(read(&file(scalar, &[9])[..], 100).expect("readable").bytes, [9]);
    }

    #[test]
    fn bad_files_are_errors() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        let message = |bytes: &[u8]| read(bytes, 100).expect_err("a bad file");
        assert!(message(b"").contains("too short"));
        assert!(message(b"not an array").contains("no .npy file"));
        assert!(message(&file(good, &[0; 7])).contains("cut off: 7 of 8"));
        assert!(message(&file(good, &[0; 9])).contains("behind"));
        assert!(message(&file(&good.replace("<f4", "<c8"), &[])).contains("`c8`"));
        assert!(message(&file(&good.replace("'<f4'", "[('a', '<f4')]"), &[])).contains("records"));
        assert!(
            message(&file(&good.replace("(2,)", "(99999999999, 99999999999)"), &[])).contains("overflow")
        );
        assert!(message(&file(&good.replace("(2,)", "(999,)"), &[])).contains("limit"));
        assert!(message(&file(&good.replace("(2,)", "(-2,)"), &[])).contains("no number"));
        assert!(
            message(&file(&good.replace("False", "True").replace("2,", "2, 2"), &[])).contains("Fortran")
        );
        assert!(message(&file("{}", &[])).contains("`descr`"));
        assert!(message(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("claims"));
        assert!(message(b"\x93NUMPY\x09\x00\x00\x00").contains("version 9"));
        for cut in 0..file(good, &[0; 8]).len() {
            assert!(read(&file(good, &[0; 8])[..cut], 100).is_err());
        }
    }
}
