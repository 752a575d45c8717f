//! The reference page of all keys; `docs/configuration.md` is this text.

use super::{Config, value};
use crate::spec::Key;
use std::fmt::Write;

/// Values longer than this are not shown in the tables.
const LONGEST: usize = 24;

const INTRODUCTION: &str = "# Configurations

Made from the specifications in `crates/machine/src`; a test keeps this page equal to them (`BLESS=1 cargo test -p machine
--test presets` rewrites it).

A configuration is every number of a machine. Three come with the program; `warploom config list` names them, `warploom
config show NAME` prints one with an explanation for each key, `warploom config show NAME KEY` one key or one table, `warploom
config diff A B` what differs. A file works wherever a name does.

A file of your own starts from one of them and changes single keys:

```toml
base = \"h200\"
name = \"h200-half\"
tpcs = [8, 8, 8, 8]

[sm]
warps = 32
policy = \"gto\"
```

Without `base` a file must have every key. Lists are replaced as a whole. Unknown keys, missing keys, values of a wrong type or
outside their limits, and numbers that do not fit each other are errors with file, line and column.
";

/// The page in Markdown.
pub fn page() -> String {
    let presets: Vec<Config> = Config::presets().filter_map(|name| Config::preset(name).ok()).collect();
    let values: Vec<_> = presets.iter().map(Config::values).collect();
    let names: Vec<&str> = presets.iter().map(|c| c.name.as_str()).collect();
    let head = format!(
        "\n| key | meaning | limits | {} |\n| --- | --- | --- |{}\n",
        names.join(" | "),
        " --- |".repeat(names.len())
    );
    let mut out = format!("{INTRODUCTION}\n## The machine\n{head}");
    let mut row = 0;
    for key in Config::keys() {
        if key.is_table() {
            let _ = write!(out, "\n## `[{}]`\n\n{}\n{head}", key.path, key.explanation);
            continue;
        }
        let shown: Vec<String> = values.iter().map(|v| cell(&value(&v[row].1))).collect();
        row += 1;
        let name = key.split().0;
        let meaning = key.explanation.replace('|', "\\|");
        let _ = writeln!(out, "| `{name}` | {meaning} | {} | {} |", limits(&key), shown.join(" | "));
    }
    out
}

fn cell(value: &str) -> String {
    if value.contains('\n') || value.len() > LONGEST { "...".into() } else { value.replace('|', "\\|") }
}

fn limits(key: &Key) -> String {
    match key.limits {
        Some((low, u64::MAX)) => format!("from {low}"),
        Some((low, high)) => format!("{low} to {high}"),
        None => String::new(),
    }
}
