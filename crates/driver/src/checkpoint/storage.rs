//! Where checkpoints go: files that are there as a whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is being written.
pub trait Target: Write {
    /// What was written survives the host's end, too.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file system, as far as checkpoints need one. Tests have others, which fail.
pub trait Storage: Sync {
    /// A new file; what had the name before is gone.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Target>>;
    /// Gives a file another name, at once and also where a file has that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// New names in a folder survive the host's end.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The host's files.
pub struct Files;

impl Target for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Storage for Files {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Target>> {
        Ok(Box::new(File::create(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        // Folders can be opened as files on Unix only; elsewhere a rename is as lasting as it gets.
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}

/// The name under which a file is written before it gets its own.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    path.with_file_name(name)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file through `body`. Whenever this stops, also in the middle of a write, the file is the old one or the new
/// one.
pub fn replace(
    storage: &dyn Storage,
    path: &Path,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = unfinished(path);
    let write = || {
        let mut to = storage.create(&temporary)?;
        body(&mut to)?;
        to.flush()?;
        to.sync()?;
        drop(to);
        storage.rename(&temporary, path)
    };
    if let Err(e) = write() {
        // It may not exist, and what is left of it harms nobody.
        let _ = storage.remove(&temporary);
        return Err(e);
    }
    storage.sync_folder(folder(path))
}

/// Whether a file can be written there: found out before a long run, not in it.
pub fn check(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let temporary = unfinished(path);
    drop(storage.create(&temporary)?);
    storage.remove(&temporary)
}
