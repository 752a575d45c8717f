//! Configurations by name or from files.

use crate::files::{self, MAX_TEXT};
use crate::problem::{Problem, Problems, Source};
use machine::Config;
use machine::config::Error;
use std::path::Path;

/// Reads a configuration: one that comes with the program, by its name, or a file.
pub fn load(name_or_file: &str) -> Result<Config, Problems> {
    let path = Path::new(name_or_file);
    if let Some(text) = Config::preset_text(name_or_file) {
        return read(&Source::new(name_or_file, text.as_bytes()));
    }
    // What cannot be meant as a path was meant as a name.
    let is_name = path.extension().is_none() && path.components().count() == 1 && !path.exists();
    if is_name && let Err(e) = Config::preset(name_or_file) {
        return Err(located(e, None));
    }
    read(&Source::new(name_or_file, files::read(path, MAX_TEXT)?))
}

/// Changes the schedulers of a configuration: a policy's name, with `+grants` where cache accesses wait for grants.
pub fn set_scheduler(config: &mut Config, name: &str) -> Result<(), Problems> {
    config.set_scheduler(name).map_err(|p| Problem::new(p.message).help(p.help).into())
}

fn read(source: &Source) -> Result<Config, Problems> {
    let text = std::str::from_utf8(&source.bytes).map_err(|e| {
        let at = e.valid_up_to();
        Problem::new("the configuration is not UTF-8 text")
            .at(source, at..at + 1)
            .help("configurations are TOML text; check the path")
    })?;
    Config::read(text).map_err(|e| located(e, Some(source)))
}

/// Problems of a configuration with the file that they are in.
fn located(error: Error, source: Option<&Source>) -> Problems {
    let locate = |p: machine::config::Problem| {
        let problem = Problem::new(p.message).help(p.help);
        match (p.span, source) {
            (Some(span), Some(source)) => problem.at(source, span),
            _ => problem,
        }
    };
    Problems(error.problems.into_iter().map(locate).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_are_told_apart() {
        assert_eq!(load("tiny").map(|c| c.sms()), Ok(1));
        let wrong = |what: &str| load(what).expect_err("an error").to_string();
        assert_eq!(wrong("h20"), "error: there is no configuration `h20` (did you mean `h200`?)");
        assert!(wrong("./h200").starts_with("error: cannot read ./h200"), "{}", wrong("./h200"));
        let path = std::env::temp_dir().join(format!("warploom-config-{}.toml", std::process::id()));
        std::fs::write(&path, "base = \"tiny\"\n[sm]\nwarps = 5\n").expect("written");
        let shown = path.display().to_string();
        let found = wrong(&shown);
        std::fs::write(&path, "base = \"tiny\"\n[sm]\nwarps = 8\n").expect("written");
        assert_eq!(load(&shown).map(|c| c.sm.warps), Ok(8));
        std::fs::write(&path, [0xff, 0xfe]).expect("written");
        assert!(wrong(&shown).contains("not UTF-8"));
        std::fs::remove_file(&path).expect("removed");
        assert!(found.starts_with(&format!("{shown}:3:9: error: `sm.warps` is 5")), "{found}");
    }
}
