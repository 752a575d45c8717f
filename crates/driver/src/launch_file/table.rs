//! A TOML table with places: typed look-ups that report what they expected.

use crate::element::Number;
use crate::problem::{Problem, Source};
use std::cell::RefCell;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub type Value<'a> = Spanned<DeValue<'a>>;

/// Where problems are collected.
pub struct Sink {
    pub source: Source,
    problems: RefCell<Vec<Problem>>,
}

impl Sink {
    pub fn new(source: Source) -> Sink {
        Sink { source, problems: RefCell::default() }
    }

    pub fn report(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        let problem = Problem::new(message).at(&self.source, span).help(help);
        self.problems.borrow_mut().push(problem);
    }

    pub fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    pub fn is_empty(&self) -> bool {
        self.problems.borrow().is_empty()
    }
}

#[derive(Clone)]
pub struct Table<'a> {
    sink: &'a Sink,
    map: &'a DeTable<'a>,
    pub span: Range<usize>,
    /// What it is, with an article.
    what: &'static str,
}

impl<'a> Table<'a> {
    pub fn new(sink: &'a Sink, map: &'a DeTable<'a>, span: Range<usize>, what: &'static str) -> Table<'a> {
        Table { sink, map, span, what }
    }

    /// Reports keys that are none of these.
    pub fn allow(&self, keys: &[&str]) {
        for (key, _) in self.map.iter() {
            let name: &str = key.get_ref().as_ref();
            if keys.contains(&name) {
                continue;
            }
            let help = match ptx::diagnostic::closest(name, keys.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("{} has {}", self.what, list(keys)),
            };
            self.sink.report(key.span(), format!("unknown key `{}` in {}", printable(name), self.what), help);
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = (&'a str, Range<usize>)> {
        self.map.iter().map(|(k, _)| (k.get_ref().as_ref(), k.span()))
    }

    pub fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some()
    }

    pub fn value(&self, key: &str) -> Option<&'a Value<'a>> {
        self.map.get(key)
    }

    /// The value of a key that must be there.
    pub fn need(&self, key: &str, expected: &str) -> Option<&'a Value<'a>> {
        let value = self.map.get(key);
        if value.is_none() {
            self.sink.report(
                self.span.clone(),
                format!("{} has no `{key}`", self.what),
                format!("add `{key} = ...`: {expected}"),
            );
        }
        value
    }

    pub fn wrong(&self, value: &Value<'_>, key: &str, expected: &str) {
        let found = value.get_ref().type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        self.sink.report(value.span(), format!("`{key}` is {article} {found}"), format!("write {expected}"));
    }

    pub fn string(&self, key: &str, expected: &str) -> Option<(&'a str, Range<usize>)> {
        let value = self.value(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some((text, value.span())),
            None => {
                self.wrong(value, key, expected);
                None
            }
        }
    }

    pub fn number(&self, key: &str, value: &Value<'_>, expected: &str) -> Option<Number> {
        let number = number(value);
        if number.is_none() {
            self.wrong(value, key, expected);
        }
        number
    }

    /// An integer in a range.
    pub fn integer(&self, key: &str, value: &Value<'_>, range: Range<i128>, expected: &str) -> Option<i128> {
        match number(value) {
            Some(Number::Int(i)) if range.contains(&i) => Some(i),
            Some(Number::Int(i)) => {
                self.sink.report(
                    value.span(),
                    format!("`{key}` is {i}"),
                    format!("it must be {} to {}", range.start, range.end - 1),
                );
                None
            }
            _ => {
                self.wrong(value, key, expected);
                None
            }
        }
    }

    pub fn array(&self, key: &str, value: &'a Value<'a>, expected: &str) -> Option<Vec<&'a Value<'a>>> {
        match value.get_ref().as_array() {
            Some(items) => Some(items.iter().collect()),
            None => {
                self.wrong(value, key, expected);
                None
            }
        }
    }

    /// A nested table.
    pub fn table(
        &self,
        key: &str,
        value: &'a Value<'a>,
        what: &'static str,
        expected: &str,
    ) -> Option<Table<'a>> {
        match value.get_ref().as_table() {
            Some(map) => Some(Table::new(self.sink, map, value.span(), what)),
            None => {
                self.wrong(value, key, expected);
                None
            }
        }
    }

    /// The tables of an array of tables, `[[key]]`.
    pub fn tables(&self, key: &str, what: &'static str) -> Vec<Table<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let expected = format!("tables under `[[{key}]]`");
        let items = self.array(key, value, &expected).unwrap_or_default();
        items.into_iter().filter_map(|item| self.table(key, item, what, &expected)).collect()
    }
}

pub fn number(value: &Value<'_>) -> Option<Number> {
    match value.get_ref() {
        DeValue::Integer(i) => i128::from_str_radix(i.as_str(), i.radix()).ok().map(Number::Int),
        DeValue::Float(f) => f.as_str().parse().ok().map(Number::Float),
        _ => None,
    }
}

/// `a`, `b` and `c`.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "no keys".into(),
    }
}

/// Names from bad files can hold anything and be of any length.
pub fn printable(name: &str) -> String {
    let short: String = name.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect();
    if short.chars().count() < name.chars().count() { short + "..." } else { short }
}
