//! What the runtime tells on standard error, where `WARPLOOM_LOG` asks for it: calls that do nothing here. The rest the driver tells.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    let wanted = |level: String| ["warn", "info", "trace"].contains(&level.as_str());
    *ON.get_or_init(|| std::env::var("WARPLOOM_LOG").is_ok_and(wanted))
}

/// Says once a process that a call is not there.
pub fn missing(name: &'static str) {
    use std::io::Write;
    static NAMED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if is_on() && NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        // Whoever closed standard error does not want to know.
        let _ = writeln!(std::io::stderr(), "warploom: {name} is not supported");
    }
}
