//! What the library tells on standard error: faults of kernels always, the rest where `WARPLOOM_LOG` asks for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Why a kernel or a program failed.
    Error,
    /// Calls that do nothing here.
    Warn,
    /// Programs loaded, launches made.
    Info,
    /// Every call and its answer.
    Trace,
}

fn level() -> Option<Level> {
    static LEVEL: OnceLock<Option<Level>> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("WARPLOOM_LOG").as_deref() {
        Ok("off") => None,
        Ok("warn") => Some(Level::Warn),
        Ok("info") => Some(Level::Info),
        Ok("trace") => Some(Level::Trace),
        _ => Some(Level::Error),
    })
}

pub fn is_on(wanted: Level) -> bool {
    level().is_some_and(|l| l >= wanted)
}

/// Writes a line, if such lines are wanted.
pub fn write(at: Level, text: &dyn Fn() -> String) {
    if is_on(at) {
        use std::io::Write;
        // Whoever closed standard error does not want to know.
        let _ = writeln!(std::io::stderr(), "warploom: {}", text());
    }
}

/// Says once a process that a call is not there.
pub fn missing(name: &'static str) {
    static NAMED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if is_on(Level::Warn) && NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        write(Level::Warn, &|| format!("{name} is not supported"));
    }
}
