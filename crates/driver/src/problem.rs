//! What is wrong with an input, as a value: message, file, place and what to do about it. Whoever shows it chooses how.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that problems point into.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Path as the user gave it.
    pub name: String,
    pub bytes: Arc<[u8]>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}, {} bytes)", self.name, self.bytes.len())
    }
}

impl Source {
    pub fn new(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Source {
        Source { name: name.into(), bytes: bytes.into() }
    }

    /// Line and column of a byte, both from one.
    pub fn locate(&self, offset: usize) -> (usize, usize) {
        let before = &self.bytes[..offset.min(self.bytes.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        (line, before.len() - start + 1)
    }

    /// The bytes of a line, counted from one, without its end.
    pub fn line_span(&self, line: usize) -> Option<Range<usize>> {
        let mut start = 0;
        for (n, text) in self.bytes.split(|&b| b == b'\n').enumerate() {
            if n + 1 == line {
                return Some(start..start + text.len());
            }
            start += text.len() + 1;
        }
        None
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    Error,
    Warning,
}

/// One thing that is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub severity: Severity,
    pub message: String,
    /// The text and the bytes of it that the message is about.
    pub place: Option<(Source, Range<usize>)>,
    /// Other places of the same text that matter.
    pub notes: Vec<(Range<usize>, String)>,
    pub help: Option<String>,
}

impl Problem {
    pub fn new(message: impl Into<String>) -> Problem {
        Problem {
            severity: Severity::Error,
            message: message.into(),
            place: None,
            notes: Vec::new(),
            help: None,
        }
    }

    pub fn at(mut self, source: &Source, span: Range<usize>) -> Problem {
        self.place = Some((source.clone(), span));
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// `file:line:column`, or just the file, or nothing.
    pub fn location(&self) -> Option<String> {
        let (source, span) = self.place.as_ref()?;
        let (line, column) = source.locate(span.start);
        Some(format!("{}:{line}:{column}", source.name))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.location() {
            write!(f, "{at}: ")?;
        }
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{kind}: {}", self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with an input; at least one problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problems(pub Vec<Problem>);

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.0.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one() {
        let source = Source::new("a.toml", *b"one\ntwo\n\nfour");
        assert_eq!(source.locate(0), (1, 1));
        assert_eq!(source.locate(5), (2, 2));
        assert_eq!(source.locate(99), (4, 5));
        assert_eq!(source.line_span(2), Some(4..7));
        assert_eq!(source.line_span(3), Some(8..8));
        assert_eq!(source.line_span(5), None);
        let problem = Problem::new("no").at(&source, 4..7).help("say yes");
        assert_eq!(problem.to_string(), "a.toml:2:1: error: no (say yes)");
    }
}
