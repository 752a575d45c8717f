//! What is wrong with a configuration, as values with places; whoever knows the file shows them.

use super::Config;
use crate::sm::Policy;
use crate::spec::Key;
use std::fmt;
use std::ops::Range;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub message: String,
    /// Bytes of the text that it is about. None where it is not about a text.
    pub span: Option<Range<usize>>,
    /// What to do about it.
    pub help: String,
}

impl Problem {
    /// Line and column of the place in the text, from one.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
        let start = self.span.as_ref()?.start.min(text.len());
        let before = &text.as_bytes()[..start];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let column = start - before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1) + 1;
        Some((line, column))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.help)
    }
}

/// Everything that is wrong with a configuration; at least one problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    pub problems: Vec<Problem>,
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Error {
        Error { problems: vec![problem] }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            let end = if n > 0 { "\n" } else { "" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// A scheduler that is none.
pub fn no_scheduler(text: &str) -> Problem {
    let names: Vec<&str> = Policy::ALL.iter().map(|p| p.name()).collect();
    Problem {
        message: format!("there is no scheduler `{}`", printable(text)),
        span: None,
        help: format!("schedulers are {}, each also with `+grants`", list(&names)),
    }
}

/// A preset's name that is none.
pub fn no_preset(name: &str, span: Option<Range<usize>>) -> Problem {
    let names: Vec<&str> = Config::presets().collect();
    let help = match closest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", list(&names)),
    };
    Problem { message: format!("there is no configuration `{}`", printable(name)), span, help }
}

/// A key's path that is none.
pub fn no_key(path: &str, keys: &[Key]) -> Problem {
    let same: Vec<&str> = keys.iter().filter(|k| k.split().0 == path).map(|k| k.path.as_str()).collect();
    let near = closest(path, keys.iter().map(|k| k.path.as_str())).or_else(|| {
        keys.iter().find(|k| closest(path, [k.split().0].into_iter()).is_some()).map(|k| &*k.path)
    });
    let help = match near {
        _ if !same.is_empty() => format!("there are {}", list(&same)),
        Some(near) => format!("did you mean `{near}`?"),
        None => "`warploom config show h200` lists all keys".into(),
    };
    Problem { message: format!("there is no key `{}`", printable(path)), span: None, help }
}

/// `a`, `b` and `c`.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "none".into(),
    }
}

/// Names from bad files can hold anything and be of any length.
pub fn printable(name: &str) -> String {
    let short: String = name.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect();
    if short.len() < name.len() { short + "..." } else { short }
}

/// The candidate that a word was probably meant to be.
pub fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + word.len() / 5;
    candidates
        .filter(|c| c.len().abs_diff(word.len()) <= limit && word.len() <= 60)
        .map(|c| (steps(word.as_bytes(), c.as_bytes()), c))
        .filter(|(steps, _)| *steps <= limit)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, c)| c)
}

/// Letters to insert, remove or change to get from one word to the other.
fn steps(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found() {
        let names = ["warps", "registers", "register_unit"];
        assert_eq!(closest("warp", names.into_iter()), Some("warps"));
        assert_eq!(closest("regsters", names.into_iter()), Some("registers"));
        assert_eq!(closest("colour", names.into_iter()), None);
    }
}
