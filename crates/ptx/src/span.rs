//! Byte ranges of the source and their translation to lines and columns.

use std::fmt;

/// A half-open range of byte offsets into the source text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A position for people: both numbers count from one, columns count bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    pub line: u32,
    pub column: u32,
}

/// Bytes of source that share one entry of the line table.
const BLOCK: usize = 1024;

/// Maps byte offsets to lines. Keeps one number for each KiB of source, so that a file of nothing but
/// newlines costs no more than any other.
#[derive(Clone, Debug)]
pub struct LineIndex<'a> {
    source: &'a [u8],
    /// Newlines before each block.
    before: Vec<u32>,
}

impl<'a> LineIndex<'a> {
    pub fn new(source: &'a [u8]) -> LineIndex<'a> {
        let mut newlines = 0u32;
        let before = source
            .chunks(BLOCK)
            .map(|block| {
                let at_start = newlines;
                newlines = newlines.saturating_add(count_newlines(block));
                at_start
            })
            .collect();
        LineIndex { source, before }
    }

    /// The line and column of a byte offset; offsets past the end mean the end.
    pub fn locate(&self, offset: u32) -> LineColumn {
        let offset = (offset as usize).min(self.source.len());
        let block = (offset / BLOCK).min(self.before.len().saturating_sub(1));
        let counted = self.before.get(block).copied().unwrap_or(0);
        let line = counted + count_newlines(&self.source[(block * BLOCK).min(offset)..offset]) + 1;
        let line_start = self.source[..offset].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        LineColumn { line, column: (offset - line_start) as u32 + 1 }
    }

    /// The text of a line (counted from one) without its line end.
    pub fn line_text(&self, offset: u32) -> &'a [u8] {
        let offset = (offset as usize).min(self.source.len());
        let start = self.source[..offset].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let rest = &self.source[start..];
        let end = rest.iter().position(|&b| b == b'\n' || b == b'\r').unwrap_or(rest.len());
        &rest[..end]
    }
}

fn count_newlines(bytes: &[u8]) -> u32 {
    bytes.iter().map(|&b| u32::from(b == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locates_lines_across_blocks() {
        let mut text = vec![b'x'; 3000];
        text[10] = b'\n';
        text[2047] = b'\n';
        let index = LineIndex::new(&text);
        assert_eq!(index.locate(0), LineColumn { line: 1, column: 1 });
        assert_eq!(index.locate(10), LineColumn { line: 1, column: 11 });
        assert_eq!(index.locate(11), LineColumn { line: 2, column: 1 });
        assert_eq!(index.locate(2048), LineColumn { line: 3, column: 1 });
        assert_eq!(index.locate(9999), LineColumn { line: 3, column: 953 });
    }

    #[test]
    fn empty_source_has_one_line() {
        assert_eq!(LineIndex::new(b"").locate(0), LineColumn { line: 1, column: 1 });
    }
}
