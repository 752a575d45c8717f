//! A configuration as TOML that explains itself.

use super::Config;
use crate::spec::Key;
use std::fmt::Write;

/// Columns that explanations are wrapped to.
const COLUMNS: usize = 100;

pub fn values(config: &Config) -> Vec<(Key, toml::Value)> {
    // Serialising plain structs of numbers and texts cannot fail.
    let root = toml::Value::try_from(config).unwrap_or(toml::Value::Table(toml::Table::new()));
    let get = |path: &str| path.split('.').try_fold(&root, |at, name| at.get(name)).cloned();
    Config::keys()
        .into_iter()
        .filter(|k| !k.is_table())
        .filter_map(|k| get(&k.path).map(|value| (k, value)))
        .collect()
}

pub fn render(config: &Config) -> String {
    let mut out = String::new();
    let keys = Config::keys();
    let mut values = values(config).into_iter();
    for key in &keys {
        if key.is_table() {
            out.push('\n');
        }
        for line in wrapped(key.explanation, COLUMNS - 2) {
            let _ = writeln!(out, "# {line}");
        }
        if key.is_table() {
            let _ = writeln!(out, "[{}]", key.path);
        } else if let Some((_, v)) = values.next() {
            let _ = writeln!(out, "{} = {}", key.split().0, value(&v));
        }
    }
    out
}

/// A value as it is written. Lists of tables get a line each.
pub fn value(v: &toml::Value) -> String {
    match v {
        toml::Value::Integer(n) => number(*n),
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            let lines: String = items.iter().map(|item| format!("    {},\n", value(item))).collect();
            format!("[\n{lines}]")
        }
        toml::Value::Array(items) => {
            format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        toml::Value::Table(table) => {
            // The name says what the rest is about.
            let (first, rest): (Vec<_>, Vec<_>) = table.iter().partition(|(key, _)| *key == "name");
            let items: Vec<String> =
                first.iter().chain(&rest).map(|(key, v)| format!("{key} = {}", value(v))).collect();
            format!("{{ {} }}", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// Numbers of six digits and more have their thousands apart.
fn number(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    if digits.len() < 6 {
        return n.to_string();
    }
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('_');
        }
        out.push(c);
    }
    out
}

/// A text in lines of at most so many characters, where its words allow.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.len() - 1;
        if !lines[line].is_empty() && lines[line].chars().count() + 1 + word.chars().count() > columns {
            lines.push(word.into());
        } else {
            if !lines[line].is_empty() {
                lines[line].push(' ');
            }
            lines[line].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(65_536), "65536");
        assert_eq!(number(1_234_567), "1_234_567");
        assert_eq!(number(-123_456), "-123_456");
    }

    #[test]
    fn long_explanations_are_wrapped() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible", 5), ["incomprehensible"]);
    }
}
