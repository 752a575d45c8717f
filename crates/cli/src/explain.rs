//! What the compiler did to which line, as text and as JSON.

use driver::compile::Note;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Notes by function and line, and in all by pass. Empty where nobody asked.
#[derive(Default)]
pub struct Explanation {
    /// What happened to a line and how often, in the order of happening.
    lines: BTreeMap<(String, u32), Vec<(String, String, u32)>>,
    /// Passes in the order in which they first did something: name, changes, lines.
    passes: Vec<(String, u32, BTreeSet<(String, u32)>)>,
    notes: Vec<Note>,
}

impl Explanation {
    pub fn new(notes: Vec<Note>) -> Explanation {
        let mut e = Explanation::default();
        for note in &notes {
            let key = (note.function.clone(), note.line);
            let list = e.lines.entry(key.clone()).or_default();
            match list.iter_mut().find(|(pass, message, _)| *pass == note.pass && *message == note.message) {
                Some((_, _, times)) => *times += 1,
                None => list.push((note.pass.clone(), note.message.clone(), 1)),
            }
            match e.passes.iter_mut().find(|(name, ..)| *name == note.pass) {
                Some((_, count, lines)) => {
                    *count += 1;
                    lines.insert(key);
                }
                None => e.passes.push((note.pass.clone(), 1, BTreeSet::from([key]))),
            }
        }
        e.notes = notes;
        e
    }

    /// What there is to say about a line; it is said once.
    pub fn take(&mut self, function: &str, line: u32) -> Vec<String> {
        let list = self.lines.remove(&(function.to_owned(), line)).unwrap_or_default();
        let text = |(pass, message, times): (String, String, u32)| match times {
            1 => format!("{pass}: {message}"),
            n => format!("{pass}: {message} ({n} times)"),
        };
        list.into_iter().map(text).collect()
    }

    /// What happened to the lines of a function of which no code is left.
    pub fn without_code(&mut self, function: &str, with_code: &BTreeSet<u32>) -> String {
        let gone: Vec<u32> = self
            .lines
            .keys()
            .filter(|(f, line)| f == function && !with_code.contains(line))
            .map(|(_, line)| *line)
            .collect();
        let mut out = String::new();
        for line in gone {
            for note in self.take(function, line) {
                let _ = writeln!(out, "// PTX {line}, no code: {note}");
            }
        }
        out
    }

    /// One line for each pass.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        for (n, (name, count, lines)) in self.passes.iter().enumerate() {
            let heading = if n == 0 { "\n// What the passes did:\n" } else { "" };
            let plural = |n: usize| if n == 1 { "" } else { "s" };
            let _ = writeln!(
                out,
                "{heading}//   {name}: {count} change{}, {} line{}",
                plural(*count as usize),
                lines.len(),
                plural(lines.len())
            );
        }
        out
    }

    /// Adds notes and the summary to the JSON form of the code.
    pub fn add_to(&self, rows: &mut Value) {
        let note = |n: &Note| json!({ "function": n.function, "ptx_line": n.line, "pass": n.pass, "did": n.message });
        rows["notes"] = self.notes.iter().map(note).collect();
        let pass = |(name, count, lines): &(String, u32, BTreeSet<(String, u32)>)| json!({ "pass": name, "changes": count, "lines": lines.len() });
        rows["passes"] = self.passes.iter().map(pass).collect();
    }
}
