//! Errors and warnings about PTX text: values with a span, collected up to a cap.

use crate::span::{LineIndex, Span};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// One message about one place of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub span: Span,
    pub message: String,
    /// What to do about it, e.g. a similar name that exists.
    pub help: Option<String>,
    /// Other places that matter, e.g. the first declaration of a name declared twice.
    pub notes: Vec<(Span, String)>,
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, span, message: message.into(), help: None, notes: Vec::new() }
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    pub fn with_note(mut self, span: Span, note: impl Into<String>) -> Diagnostic {
        self.notes.push((span, note.into()));
        self
    }

    /// The message with file, line, column, the source line and a marker under the place.
    pub fn render(&self, file: &str, lines: &LineIndex<'_>) -> String {
        let mut out = String::new();
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let at = lines.locate(self.span.start);
        let _ = writeln!(out, "{file}:{}:{}: {kind}: {}", at.line, at.column, self.message);
        let text = lines.line_text(self.span.start);
        // A line too long for a screen, or not text at all, would hide the message.
        if text.len() <= 200 && text.iter().all(|b| *b == b'\t' || (b' '..=b'~').contains(b)) {
            let text = String::from_utf8_lossy(text);
            let before = &text[..(at.column as usize - 1).min(text.len())];
            let pad: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let room = text.len().saturating_sub(before.len()).max(1);
            let width = ((self.span.end - self.span.start) as usize).clamp(1, room);
            let _ = writeln!(out, "  {text}\n  {pad}{}", "^".repeat(width));
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "  help: {help}");
        }
        for (span, note) in &self.notes {
            let at = lines.locate(span.start);
            let _ = writeln!(out, "  note: {file}:{}:{}: {note}", at.line, at.column);
        }
        out
    }
}

/// How many errors are reported before the rest is dropped.
pub const MAX_ERRORS: usize = 50;

/// Collects diagnostics and stops listening after [`MAX_ERRORS`] errors.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Diagnostics {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.is_full() {
            return;
        }
        let span = diagnostic.span;
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        self.list.push(diagnostic);
        if self.is_full() {
            self.list.push(Diagnostic::error(span, "too many errors, the rest is not checked"));
        }
    }

    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::error(span, message));
    }

    /// The cap is reached: whoever produces errors may stop.
    pub fn is_full(&self) -> bool {
        self.errors >= MAX_ERRORS
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All diagnostics in source order.
    pub fn into_vec(mut self) -> Vec<Diagnostic> {
        let keep_last = usize::from(self.is_full());
        let end = self.list.len() - keep_last;
        self.list[..end].sort_by_key(|d| d.span.start);
        self.list
    }
}

/// The candidate closest to `word`, when it is close enough to be a slip of the fingers.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 40 {
        return None;
    }
    let limit = if word.len() <= 3 { 1 } else { 2 };
    candidates
        .into_iter()
        .filter(|c| c.len().abs_diff(word.len()) <= limit)
        .map(|c| (edit_distance(word.as_bytes(), c.as_bytes()), c))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Levenshtein distance where swapping two neighbours counts as one step.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_close_words() {
        assert_eq!(closest("ad", ["add", "sub"]), Some("add"));
        assert_eq!(closest("mlu", ["mul", "mov"]), Some("mul"));
        assert_eq!(closest("frobnicate", ["add", "sub"]), None);
    }

    #[test]
    fn stops_at_the_cap() {
        let mut all = Diagnostics::default();
        for at in 0..200 {
            all.error(Span::new(at, at + 1), "bad");
        }
        let all = all.into_vec();
        assert_eq!(all.len(), MAX_ERRORS + 1);
        assert!(all[MAX_ERRORS].message.contains("too many errors"));
    }
}
