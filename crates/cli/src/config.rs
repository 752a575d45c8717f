//! `warploom config`: which machines there are, what each of their numbers means, how two of them differ.

use crate::End;
use crate::compile::write_text;
use clap::Subcommand;
use driver::config::load;
use driver::{Problem, Problems};
use machine::Config;
use machine::config::value;
use machine::spec::Key;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::IsTerminal;

/// Values longer than this get a line of their own.
const SHORT: usize = 40;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Name the configurations that come with the program.
    List {
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a configuration with an explanation for each key.
    Show {
        /// A configuration's name, or a file.
        #[arg(value_name = "NAME-or-FILE")]
        config: String,
        /// Show only this key, or the keys of this table.
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the keys in which two configurations differ.
    Diff {
        /// A configuration's name, or a file.
        #[arg(value_name = "A")]
        a: String,
        /// Another.
        #[arg(value_name = "B")]
        b: String,
        /// Print as JSON.
        #[arg(long)]
        json: bool,
    },
}

pub fn run(arguments: &Arguments) -> Result<(), End> {
    let text = match &arguments.command {
        Command::List { json } => list(*json)?,
        Command::Show { config, key, json } => show(&load(config)?, key.as_deref(), *json)?,
        Command::Diff { a, b, json } => diff(&load(a)?, &load(b)?, *json),
    };
    write_text(None, &text)
}

fn list(as_json: bool) -> Result<String, Problems> {
    let all = Config::presets().map(load).collect::<Result<Vec<Config>, Problems>>()?;
    if as_json {
        let all: Vec<Value> = all
            .iter()
            .map(|c| json!({"name": c.name, "description": c.description, "sms": c.sms()}))
            .collect();
        return Ok(format!("{:#}\n", json!(all)));
    }
    let width = all.iter().map(|c| c.name.len()).max().unwrap_or(0);
    Ok(all.iter().map(|c| format!("{:width$}  {}\n", c.name, c.description)).collect())
}

fn show(config: &Config, key: Option<&str>, as_json: bool) -> Result<String, Problems> {
    let selected = match key {
        Some(path) => Config::select(path).map_err(|p| Problem::new(p.message).help(p.help))?,
        None => Config::keys(),
    };
    if as_json {
        let keys: Vec<Value> = config
            .values()
            .into_iter()
            .filter(|(k, _)| selected.iter().any(|s| s.path == k.path))
            .map(|(k, v)| {
                let limits = k.limits.map(|(low, high)| json!([low, (high != u64::MAX).then_some(high)]));
                json!({"key": k.path, "value": v, "explanation": k.explanation, "limits": limits})
            })
            .collect();
        return Ok(format!("{:#}\n", json!(keys)));
    }
    let text = match key {
        Some(_) => some_keys(config, &selected),
        None => config.render(),
    };
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    Ok(if colour { coloured(&text) } else { text })
}

/// Some keys of a configuration, by their whole paths.
fn some_keys(config: &Config, selected: &[Key]) -> String {
    let mut out = String::new();
    for (key, v) in config.values() {
        if selected.iter().any(|s| s.path == key.path) {
            let _ = writeln!(out, "# {}\n{} = {}", key.explanation, key.path, value(&v));
        }
    }
    out
}

/// Explanations step back, tables stand out.
fn coloured(text: &str) -> String {
    let paint = |line: &str| match line.as_bytes().first() {
        Some(b'#') => format!("\x1b[2m{line}\x1b[0m\n"),
        Some(b'[') => format!("\x1b[1m{line}\x1b[0m\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(paint).collect()
}

fn diff(a: &Config, b: &Config, as_json: bool) -> String {
    let pairs = a.values().into_iter().zip(b.values());
    let differ: Vec<_> =
        pairs.filter(|((_, va), (_, vb))| va != vb).map(|((k, va), (_, vb))| (k, va, vb)).collect();
    if as_json {
        let keys: Vec<Value> =
            differ.iter().map(|(k, va, vb)| json!({"key": k.path, "a": va, "b": vb})).collect();
        return format!("{:#}\n", json!(keys));
    }
    if differ.is_empty() {
        return "no differences\n".into();
    }
    let mut out = String::new();
    for (key, va, vb) in &differ {
        let (va, vb) = (value(va), value(vb));
        if va.len() + vb.len() <= SHORT && !va.contains('\n') {
            let _ = writeln!(out, "{}: {va} -> {vb}", key.path);
            continue;
        }
        let _ = writeln!(out, "{}:", key.path);
        for (sign, v) in [('-', va), ('+', vb)] {
            v.lines().for_each(|line| out += &format!("  {sign} {line}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> Config {
        Config::preset(name).expect("a preset")
    }

    #[test]
    fn one_key_is_shown_with_its_explanation() {
        let text = show(&preset("h200"), Some("sm.warps"), false).expect("a key");
        assert_eq!(text, "# Warp slots.\nsm.warps = 64\n");
        let text = show(&preset("h200"), Some("host"), false).expect("a table");
        assert!(text.contains("host.fetch_cycles = "), "{text}");
        let error = show(&preset("h200"), Some("sm.warp"), false).expect_err("no key");
        assert_eq!(error.to_string(), "error: there is no key `sm.warp` (did you mean `sm.warps`?)");
    }

    #[test]
    fn differences_have_both_values() {
        let (h200, mut other) = (preset("h200"), preset("h200"));
        assert_eq!(diff(&h200, &other, false), "no differences\n");
        other.sm.warps = 32;
        other.sm.pipes.pop();
        let text = diff(&h200, &other, false);
        assert!(text.starts_with("sm.warps: 64 -> 32\nsm.pipes:\n  - [\n"), "{text}");
        let json: Value = serde_json::from_str(&diff(&h200, &other, true)).expect("JSON");
        assert_eq!(json[0], json!({"key": "sm.warps", "a": 64, "b": 32}));
    }

    #[test]
    fn colours_only_wrap_lines() {
        assert_eq!(coloured("# a\n[b]\nc = 1\n"), "\x1b[2m# a\x1b[0m\n\x1b[1m[b]\x1b[0m\nc = 1\n");
    }
}
