//! Summaries of results: the SHA-256 that runs are compared by, and the numbers that people look at.

use crate::element::Element;
use sha2::{Digest as _, Sha256};

/// How many leading elements a summary keeps.
pub const FIRST: usize = 8;

/// What is known about a buffer's contents.
#[derive(Clone, PartialEq, Debug)]
pub struct Digest {
    pub count: u64,
    /// Of the bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// All sums in double precision, element after element.
    pub sum: f64,
    pub sum_abs: f64,
    /// Element `i` counts `i mod 1009 + 1` times, so that elements in each other's place show.
    pub weighted: f64,
    pub min: f64,
    pub max: f64,
    pub nans: u64,
    /// Bits of the first elements.
    pub first: Vec<u64>,
}

/// Takes a buffer's bytes part by part.
#[derive(Clone, Debug)]
pub struct Digester {
    element: Element,
    sha: Sha256,
    digest: Digest,
}

impl Digester {
    pub fn new(element: Element) -> Digester {
        let digest = Digest {
            count: 0,
            sha256: String::new(),
            sum: 0.0,
            sum_abs: 0.0,
            weighted: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            nans: 0,
            first: Vec::new(),
        };
        Digester { element, sha: Sha256::new(), digest }
    }

    /// Takes a whole number of elements.
    pub fn update(&mut self, bytes: &[u8]) {
        self.sha.update(bytes);
        let (element, d) = (self.element, &mut self.digest);
        for place in bytes.chunks_exact(element.size()) {
            let bits = element.read(place);
            if d.first.len() < FIRST {
                d.first.push(bits);
            }
            let value = element.to_f64(bits);
            d.sum += value;
            d.sum_abs += value.abs();
            d.weighted += value * (d.count % 1009 + 1) as f64;
            d.min = d.min.min(value);
            d.max = d.max.max(value);
            d.nans += u64::from(value.is_nan());
            d.count += 1;
        }
    }

    pub fn finish(mut self) -> Digest {
        self.digest.sha256 = hex(&self.sha.finalize());
        self.digest
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).map(|d| DIGITS[usize::from(d)] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_hash() {
        let bytes: Vec<u8> = [1.5f32, -2.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut digester = Digester::new(Element::F32);
        digester.update(&bytes[..4]);
        digester.update(&bytes[4..]);
        let digest = digester.finish();
        assert_eq!((digest.sum, digest.sum_abs, digest.weighted), (3.5, 7.5, 1.5 - 4.0 + 12.0));
        assert_eq!((digest.min, digest.max, digest.count, digest.nans), (-2.0, 4.0, 3, 0));
        assert_eq!(digest.sha256, sha256(&bytes));
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
