//! From TOML to a configuration: every key known, present, of its type and within its limits; all that is wrong at once.

use super::error::{Error, Problem, closest, list, no_preset, printable};
use super::{Checks, Config};
use crate::spec::{Key, join};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The key that names what a file starts from.
const BASE: &str = "base";

pub fn read(text: &str) -> Result<Config, Error> {
    let root = DeTable::parse(text).map_err(|e| Problem {
        message: format!("the configuration is not TOML: {}", e.message().trim()),
        span: Some(e.span().unwrap_or(0..0)),
        help: "docs/configuration.md describes the format".into(),
    })?;
    let root = root.get_ref();
    let keys = Config::keys();
    let mut reader = Reader { keys: &keys, has_base: false, problems: Vec::new() };
    let base = reader.base(root);
    // The span of the whole file would mark every line: its first line stands for it.
    reader.table(root, "", 0..0);
    if !reader.problems.is_empty() {
        reader.problems.sort_by_key(|p| p.span.as_ref().map(|s| s.start));
        return Err(Error { problems: reader.problems });
    }
    let config = assemble(text, base).map_err(|e| Problem {
        message: format!("the configuration cannot be read: {}", e.message().trim()),
        span: Some(e.span().unwrap_or(0..0)),
        help: "docs/configuration.md describes the keys".into(),
    })?;
    let mut checks = Checks::default();
    checks.all(&config);
    let problems: Vec<Problem> = checks
        .broken
        .into_iter()
        .map(|(path, message, help)| Problem { message, span: Some(find(root, path)), help })
        .collect();
    if problems.is_empty() { Ok(config) } else { Err(Error { problems }) }
}

/// The file's values over those of its base.
fn assemble(text: &str, base: Option<&str>) -> Result<Config, toml::de::Error> {
    let mut own: toml::Table = toml::from_str(text)?;
    let mut all = toml::Table::new();
    if let Some(base) = base {
        own.remove(BASE);
        all = toml::from_str(base)?;
        if !own.contains_key("name")
            && let Some(toml::Value::String(name)) = all.get_mut("name")
        {
            *name += ", changed";
        }
    }
    lay_over(&mut all, own);
    Config::deserialize(toml::Value::Table(all))
}

fn lay_over(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => lay_over(inner, value),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// The place of a key's value, or of what stands for it.
fn find(root: &DeTable<'_>, path: &str) -> Range<usize> {
    let mut table = root;
    let mut span = root.get(BASE).map_or(0..0, |v| v.span());
    for name in path.split('.') {
        let Some(value) = table.get(name) else { break };
        span = value.span();
        match value.get_ref().as_table() {
            Some(inner) => table = inner,
            None => break,
        }
    }
    span
}

struct Reader<'a> {
    keys: &'a [Key],
    has_base: bool,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn report(&mut self, span: Range<usize>, message: String, help: String) {
        self.problems.push(Problem { message, span: Some(span), help });
    }

    /// The text of the preset that the file starts from.
    fn base(&mut self, root: &DeTable<'_>) -> Option<&'static str> {
        let value = root.get(BASE)?;
        self.has_base = true;
        let Some(name) = value.get_ref().as_str() else {
            let help = "write a configuration's name in quotes".into();
            self.report(
                value.span(),
                format!("`{BASE}` is a value of type {}", value.get_ref().type_str()),
                help,
            );
            return None;
        };
        let text = Config::preset_text(name);
        if text.is_none() {
            self.problems.push(no_preset(name, Some(value.span())));
        }
        text
    }

    /// A table of the file, `path` from the root.
    fn table(&mut self, table: &DeTable<'_>, path: &str, span: Range<usize>) {
        let known: Vec<&Key> =
            self.keys.iter().filter(|k| k.split().1 == path && !k.path.is_empty()).collect();
        for (name, value) in table.iter() {
            let text: &str = name.get_ref().as_ref();
            if path.is_empty() && text == BASE {
                continue;
            }
            match known.iter().find(|k| k.split().0 == text) {
                Some(key) => self.value(key, value),
                None => self.unknown(text, name.span(), path, &known),
            }
        }
        if self.has_base {
            return;
        }
        let missing: Vec<&Key> = known.into_iter().filter(|k| table.get(k.split().0).is_none()).collect();
        self.missing(&missing, path, span);
    }

    fn missing(&mut self, missing: &[&Key], path: &str, span: Range<usize>) {
        let whole = if path.is_empty() { "the configuration".into() } else { format!("`[{path}]`") };
        match missing {
            [] => {}
            [key] => {
                let name = key.split().0;
                let add =
                    if key.is_table() { format!("`[{}]`", key.path) } else { format!("`{name} = ...`") };
                self.report(
                    span,
                    format!("{whole} has no `{name}`"),
                    format!("add {add}: {}", key.explanation),
                );
            }
            _ => {
                let names: Vec<&str> = missing.iter().map(|k| k.split().0).collect();
                self.report(
                    span,
                    format!("{whole} has no {}", list(&names)),
                    "add them, or start from a configuration that has them: `base = \"h200\"` as the first line".into(),
                );
            }
        }
    }

    fn unknown(&mut self, name: &str, span: Range<usize>, path: &str, known: &[&Key]) {
        let elsewhere = self.keys.iter().find(|k| k.split().0 == name).map(|k| k.split().1);
        let help = match (closest(name, known.iter().map(|k| k.split().0)), elsewhere) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some("")) => format!("`{name}` stands before the first table"),
            (None, Some(table)) => format!("`{name}` belongs in `[{table}]`"),
            (None, None) => match path {
                "" => "`warploom config show h200` lists all keys".into(),
                _ => {
                    format!("`[{path}]` has {}", list(&known.iter().map(|k| k.split().0).collect::<Vec<_>>()))
                }
            },
        };
        self.report(span, format!("unknown key `{}`", printable(&join(path, name))), help);
    }

    fn value(&mut self, key: &Key, value: &Spanned<DeValue<'_>>) {
        if key.is_table() {
            match value.get_ref().as_table() {
                Some(inner) => self.table(inner, &key.path, value.span()),
                None => {
                    let found = value.get_ref().type_str();
                    let message = format!("`{}` is a value of type {found}", key.path);
                    self.report(value.span(), message, format!("it is a table: write `[{}]`", key.path));
                }
            }
            return;
        }
        if let Err(e) = (key.fits)(value.clone()) {
            let span = e.span().unwrap_or(value.span());
            self.report(span, format!("`{}`: {}", key.path, e.message().trim()), expected(key));
            return;
        }
        if let Some(limits) = key.limits {
            self.limits(key, limits, value);
        }
    }

    fn limits(&mut self, key: &Key, (low, high): (u64, u64), value: &Spanned<DeValue<'_>>) {
        if let Some(items) = value.get_ref().as_array() {
            items.iter().for_each(|item| self.limits(key, (low, high), item));
            return;
        }
        let number = match value.get_ref() {
            DeValue::Integer(i) => i128::from_str_radix(i.as_str(), i.radix()).ok(),
            _ => None,
        };
        if let Some(n) = number
            && (n < i128::from(low) || n > i128::from(high))
        {
            let help = match high {
                u64::MAX => format!("it must be at least {low}"),
                _ => format!("it must be {low} to {high}"),
            };
            self.report(value.span(), format!("`{}` is {n}", key.path), help);
        }
    }
}

/// What a key's value looks like.
fn expected(key: &Key) -> String {
    match key.kind.unwrap_or_default() {
        "u8" | "u16" | "u32" | "u64" => "write a whole number that is not negative".into(),
        "f64" => "write a number".into(),
        "bool" => "write true or false".into(),
        "String" => "write text in quotes".into(),
        "Vec<u32>" | "Vec<u64>" => "write whole numbers in brackets: `[1, 2]`".into(),
        _ => key.explanation.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Problems of a text, each with its line and column.
    fn wrong(text: &str) -> Vec<String> {
        let Err(e) = Config::read(text) else { return Vec::new() };
        let line = |p: &Problem| {
            let (line, column) = p.place(text).expect("a place");
            format!("{line}:{column}: {p}")
        };
        e.problems.iter().map(line).collect()
    }

    #[test]
    fn a_file_may_change_single_keys() {
        let config = Config::read("base = \"h200\"\n[sm]\nwarps = 32\n").expect("read");
        let mut h200 = Config::preset("h200").expect("read");
        h200.sm.warps = 32;
        h200.name = "h200, changed".into();
        assert_eq!(config, h200);
        assert_eq!(Config::read("base = \"tiny\"\nname = \"mine\"").expect("read").name, "mine");
    }

    #[test]
    fn everything_wrong_is_named_with_its_place() {
        let text = "base = \"h200\"\nquantm = 3\nclock_mhz = \"fast\"\n[sm]\nwarps = -1\nsub_cores = 0\nslices = 4\npolicy = \"gtx\"\n[sm.latency]\nalu = 2.5\n";
        let wrong = wrong(text);
        let parts = [
            "2:1: unknown key `quantm` (did you mean `quantum`?)",
            "3:13: `clock_mhz`: invalid type: string \"fast\", expected u32 (write a whole number",
            "5:9: `sm.warps`: invalid value",
            "6:13: `sm.sub_cores` is 0 (it must be",
            "7:1: unknown key `sm.slices` (`slices` belongs in `[l2]`)",
            "8:10: `sm.policy`: unknown variant `gtx`",
            "10:7: `sm.latency.alu`: invalid type",
        ];
        assert_eq!(wrong.len(), parts.len(), "{wrong:#?}");
        for (found, part) in wrong.iter().zip(parts) {
            assert!(found.starts_with(part), "{found} does not start with {part}");
        }
    }

    #[test]
    fn a_file_without_a_base_needs_every_key() {
        let text = Config::preset_text("tiny").expect("a preset");
        let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with("registers =")).collect();
        let found = wrong(&lines.join("\n"));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(
            found[0].contains("`[sm]` has no `registers` (add `registers = ...`: 32-bit registers"),
            "{found:?}"
        );
        let found = wrong("name = \"x\"");
        assert!(found[0].starts_with("1:1: the configuration has no `description`, "), "{found:?}");
        assert!(found[0].contains("base = \"h200\""), "{found:?}");
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        assert!(wrong("[sm\n")[0].starts_with("1:4: the configuration is not TOML"), "{:?}", wrong("[sm\n"));
        assert_eq!(wrong("base = \"h20\""), ["1:8: there is no configuration `h20` (did you mean `h200`?)"]);
        assert!(wrong("base = 3")[0].starts_with("1:8: `base` is a value of type integer"));
        assert!(wrong("base = \"h200\"\nsm = 3")[0].starts_with("2:6: `sm` is a value of type integer"));
    }

    #[test]
    fn keys_are_found_by_path_table_and_name() {
        let paths = |what: &str| match Config::select(what) {
            Ok(keys) => keys.into_iter().map(|k| k.path).collect(),
            Err(p) => vec![p.to_string()],
        };
        assert_eq!(paths("sm.warps"), ["sm.warps"]);
        assert_eq!(paths("shared_splits"), ["sm.shared_splits"]);
        let host = paths("host");
        assert!(
            host[0] == "host" && host.len() > 1 && host[1..].iter().all(|p| p.starts_with("host.")),
            "{host:?}"
        );
        assert_eq!(paths("sm.wraps"), ["there is no key `sm.wraps` (did you mean `sm.warps`?)"]);
        assert!(
            paths("bytes_per_cycle")[0].contains("there are `io.bytes_per_cycle`"),
            "{:?}",
            paths("bytes_per_cycle")
        );
    }

    #[test]
    fn numbers_must_fit_each_other() {
        let found = wrong("base = \"h200\"\nquantum = 4000\n[sm]\nshared_splits = [8192, 0]\n");
        // Every block that the quantum is too long for says so.
        assert!(found[0].starts_with("2:11: `quantum` is 4000"), "{found:?}");
        assert!(found.iter().any(|f| f.starts_with("4:17: `sm.shared_splits`")), "{found:?}");
    }
}
