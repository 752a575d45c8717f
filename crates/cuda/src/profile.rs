//! Profiles of timed launches, as files: a page for the browser, and a trace for `warploom profile`.

use crate::log::{self, Level};
use crate::program::Function;
use crate::state::Driver;
use driver::profile::Sources;
use driver::trace::export::html;
use driver::trace::file::Recorder;
use driver::{Dim, LaunchStats};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Characters of a kernel's name that a file's name has.
const MAX_NAME: usize = 60;

/// A new file for a launch: numbered in the order of launches, past what is there already.
fn create(folder: &Path, kernel: &str) -> std::io::Result<(PathBuf, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = kernel.chars().take(MAX_NAME).map(plain).collect();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{number:04}-{name}.html"));
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_files(
    driver: &Driver,
    folder: &Path,
    function: &Function,
    dim: Dim,
    stats: &LaunchStats,
) -> std::io::Result<()> {
    let (Some(report), Some(detail), Ok(module)) = (&stats.report, &stats.detail, function.program.module())
    else {
        return Ok(());
    };
    let kernel = &function.name;
    let ptx = function.program.text.as_ref().map(|text| (format!("{kernel}.ptx"), text.to_string()));
    let sources = Sources { ptx, ..Sources::default() };
    let profile = driver::profile::profile(module, kernel, dim, &driver.config, report, detail, &sources);
    std::fs::create_dir_all(folder)?;
    let (path, mut page) = create(folder, kernel)?;
    page.write_all(html::page(&format!("{kernel} - Warploom profile"), &[(&profile, None)]).as_bytes())?;
    let mut recorder = Recorder::new();
    recorder.profile(&profile).map_err(|e| std::io::Error::other(e.to_string()))?;
    std::fs::write(path.with_extension("trace"), recorder.finish())
}

/// Leaves the profile of a launch, where profiles are wanted and it was timed.
pub fn write(driver: &Driver, function: &Function, dim: Dim, stats: &LaunchStats) {
    let Some(folder) = &driver.profiles else { return };
    if let Err(error) = write_files(driver, folder, function, dim, stats) {
        let (kernel, place) = (&function.name, folder.display());
        log::write(Level::Error, &|| format!("the profile of {kernel} in {place}: {error}"));
    }
}
