//! Reading and writing files with limits and with errors that say what to do.

use crate::problem::{Problem, Problems};
use std::io::Read;
use std::path::Path;

/// No program text or image is longer. Larger files are refused before they are read.
pub const MAX_PROGRAM: u64 = 256 << 20;
/// No launch file or table of results is longer.
pub const MAX_TEXT: u64 = 64 << 20;

/// Reads a whole file of at most `limit` bytes. Also holds for what only claims to be short, such as a pipe.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Problems> {
    let shown = path.display();
    let fail = |e: std::io::Error| {
        let help = match e.kind() {
            std::io::ErrorKind::NotFound => "check the path; relative paths start at the current directory",
            std::io::ErrorKind::PermissionDenied => "the file's permissions do not let you read it",
            _ => "the path must name a readable file",
        };
        Problem::new(format!("cannot read {shown}: {e}")).help(help)
    };
    let too_long = || {
        Problem::new(format!("{shown} is longer than {} MiB", limit >> 20))
            .help("such a file is no program or launch file; check the path")
    };
    let file = std::fs::File::open(path).map_err(fail)?;
    let length = match file.metadata() {
        Ok(m) if m.is_dir() => {
            return Err(Problem::new(format!("{shown} is a directory, a file is needed")).into());
        }
        Ok(m) if m.is_file() && m.len() > limit => return Err(too_long().into()),
        Ok(m) => m.len(),
        Err(e) => return Err(fail(e).into()),
    };
    let mut bytes = Vec::with_capacity(length.min(limit) as usize);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit {
        return Err(too_long().into());
    }
    Ok(bytes)
}

/// Writes a file through `body`.
pub fn write<E: std::fmt::Display>(
    path: &Path,
    body: impl FnOnce(&mut dyn std::io::Write) -> Result<(), E>,
) -> Result<(), Problems> {
    let fail = |e: &dyn std::fmt::Display| {
        Problem::new(format!("cannot write {}: {e}", path.display())).help("choose a place you can write to")
    };
    let file = std::fs::File::create(path).map_err(|e| fail(&e))?;
    let mut file = std::io::BufWriter::new(file);
    body(&mut file).map_err(|e| fail(&e))?;
    std::io::Write::flush(&mut file).map_err(|e| fail(&e))?;
    Ok(())
}

/// JSON as Python writes it, where numbers may be `NaN` or `Infinity`, with `null` for those.
pub fn standard_json(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let word =
            [&b"-Infinity"[..], b"Infinity", b"NaN"].into_iter().find(|w| !in_string && rest.starts_with(w));
        if let Some(word) = word {
            out.extend_from_slice(b"null");
            rest = &rest[word.len()..];
            continue;
        }
        if byte == b'"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && byte == b'\\' && !escaped;
        out.push(byte);
        rest = &rest[1..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_missing_files() {
        let dir = std::env::temp_dir().join(format!("warploom-files-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join("ten");
        write::<std::io::Error>(&path, |w| w.write_all(b"0123456789")).expect("written");
        assert_eq!(read(&path, 10).expect("short enough"), b"0123456789");
        assert!(read(&path, 9).expect_err("too long").to_string().contains("longer"));
        assert!(read(&dir.join("none"), 9).expect_err("missing").to_string().contains("check the path"));
        assert!(read(&dir, 9).expect_err("a directory").to_string().contains("directory"));
        std::fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn numbers_that_json_lacks() {
        let text = br#"{"a": [NaN, -Infinity, 1, Infinity], "NaN \" NaN": "Infinity"}"#;
        let plain = br#"{"a": [null, null, 1, null], "NaN \" NaN": "Infinity"}"#;
        assert_eq!(standard_json(text), plain);
    }

    #[cfg(unix)]
    #[test]
    fn endless_files_end() {
        assert!(read(Path::new("/dev/zero"), 1 << 16).expect_err("endless").to_string().contains("longer"));
    }
}
