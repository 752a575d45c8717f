//! `warploom exec`: a program that uses CUDA, unchanged, on the machine. The program finds Warploom's libraries and tools first;
//! only its own environment is changed.

use crate::End;
use driver::{Problem, Problems};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// The devices' configuration: a name (see `warploom config list`) or a file.
    #[arg(long, value_name = "NAME or FILE", default_value = "h200")]
    config: String,
    /// Run launches on the timed machine: all, or with --timed=NAME those of kernels whose name holds NAME. Others only compute,
    /// which is many times faster.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    timed: Option<String>,
    /// Write a profile of every timed launch into this folder: a page, and a trace for `warploom profile`. Times all launches
    /// unless --timed names some.
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,
    /// Optimize the code of timed launches while it runs: the largest sets of threads that share optimized code, and behind a comma who
    /// optimizes, as for `warploom run`. Times all launches unless --timed names some.
    #[arg(long, value_name = "LEVEL[,WHO]", value_parser = optimize)]
    optimize: Option<String>,
    /// Devices that the program sees, 1 to 16.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    devices: u8,
    /// Host threads of a launch; 0 for all there are.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// What is told on standard error: off, error, warn (also calls that are not supported), info (also launches) or trace.
    #[arg(long, value_name = "LEVEL", value_parser = ["off", "error", "warn", "info", "trace"])]
    log: Option<String>,
    /// The program and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Reads what is to be optimized; the program's driver reads it again.
fn optimize(text: &str) -> Result<String, String> {
    machine::optimizing::Options::read(text).map(|_| text.to_owned())
}

/// Names that programs look for, and the files of a build that they are. The stand-in for the assembler is this command.
const NAMES: [(&str, &str); 6] = [
    ("libcuda.so.1", "libcuda.so"),
    ("libcudart.so.12", "libcudart12.so"),
    ("libcudart.so.13", "libcudart13.so"),
    ("libnvJitLink.so.12", "libnvjitlink.so"),
    ("libnvJitLink.so.13", "libnvjitlink.so"),
    ("ptxas", "warploom"),
];

/// A link that is there afterwards, whoever else makes it at the same time.
fn link(to: &Path, at: &Path) -> std::io::Result<()> {
    if std::fs::read_link(at).is_ok_and(|now| now == to) {
        return Ok(());
    }
    let fresh = at.with_extension(format!("new{}", std::process::id()));
    std::os::unix::fs::symlink(to, &fresh)?;
    std::fs::rename(&fresh, at)
}

/// Makes a folder with the names, in the first of these places that can be written to.
fn link_all(build: &Path, places: &[PathBuf]) -> Result<PathBuf, Problems> {
    let mut refused = None;
    for place in places {
        let made = std::fs::create_dir_all(place).and_then(|()| {
            NAMES.iter().try_for_each(|(name, file)| link(&build.join(file), &place.join(name)))
        });
        match made {
            Ok(()) => return Ok(place.clone()),
            Err(error) => refused = Some(format!("{}: {error}", place.display())),
        }
    }
    Err(Problem::new(format!("the libraries have no place: {}", refused.unwrap_or_default())).into())
}

/// The folder with everything that programs look for: an installed one, or one with links to what was built.
fn libraries() -> Result<PathBuf, Problems> {
    let own = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .map_err(|e| Problem::new(format!("this command does not find itself: {e}")))?;
    let beside = own.parent().unwrap_or(Path::new("."));
    let installed = beside.join("../lib/warploom");
    if let Ok(folder) = installed.canonicalize()
        && folder.join("libcuda.so.1").is_file()
    {
        return Ok(folder);
    }
    if let Some((_, missing)) = NAMES.iter().find(|(_, file)| !beside.join(file).is_file()) {
        return Err(Problem::new(format!("{missing} is not in {}", beside.display()))
            .help("build it: cargo build --release")
            .into());
    }
    // Two builds have two folders.
    let id = beside
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let elsewhere = cache.map(|c| c.join(format!("warploom/{id:016x}")));
    let places: Vec<PathBuf> = [Some(beside.join("warploom-lib")), elsewhere].into_iter().flatten().collect();
    link_all(beside, &places)
}

/// What the program's environment has more than this one.
fn environment(arguments: &Arguments, folder: &Path) -> Vec<(&'static str, OsString)> {
    let timed = match &arguments.timed {
        Some(which) => which.clone(),
        None if arguments.profile.is_some() || arguments.optimize.is_some() => "1".into(),
        None => "0".into(),
    };
    let mut path = folder.as_os_str().to_owned();
    if let Some(old) = std::env::var_os("LD_LIBRARY_PATH").filter(|p| !p.is_empty()) {
        path.push(":");
        path.push(old);
    }
    let ptxas = folder.join("ptxas").into_os_string();
    // A file is found from wherever the program goes.
    let file = Path::new(&arguments.config);
    let is_file = file.is_file() && machine::Config::preset_text(&arguments.config).is_none();
    let absolute = is_file.then(|| std::path::absolute(file).ok()).flatten();
    let config = absolute.map_or_else(|| OsString::from(&arguments.config), PathBuf::into_os_string);
    let mut all = vec![
        ("LD_LIBRARY_PATH", path),
        ("WARPLOOM_CONFIG", config),
        ("WARPLOOM_TIMED", OsString::from(timed)),
        ("WARPLOOM_DEVICES", OsString::from(arguments.devices.to_string())),
        // Triton assembles what it compiled, with the tool for the device's generation, and links its launchers.
        ("TRITON_PTXAS_PATH", ptxas.clone()),
        ("TRITON_PTXAS_BLACKWELL_PATH", ptxas),
        ("TRITON_LIBCUDA_PATH", folder.as_os_str().to_owned()),
    ];
    if let Some(folder) = &arguments.profile {
        all.push(("WARPLOOM_PROFILE", std::path::absolute(folder).unwrap_or_else(|_| folder.clone()).into()));
    }
    if let Some(how) = &arguments.optimize {
        all.push(("WARPLOOM_OPTIMIZE", OsString::from(how)));
    }
    if arguments.threads > 0 {
        all.push(("WARPLOOM_THREADS", OsString::from(arguments.threads.to_string())));
    }
    if let Some(level) = &arguments.log {
        all.push(("WARPLOOM_LOG", OsString::from(level)));
    }
    all
}

pub fn run(arguments: &Arguments) -> Result<(), End> {
    use std::os::unix::process::CommandExt;
    driver::config::load(&arguments.config)?;
    let folder = libraries()?;
    if let Some(profiles) = &arguments.profile {
        std::fs::create_dir_all(profiles)
            .map_err(|e| Problem::new(format!("{}: {e}", profiles.display())))?;
    }
    let [program, rest @ ..] = arguments.command.as_slice() else { return Ok(()) };
    let mut command = std::process::Command::new(program);
    command.args(rest).envs(environment(arguments, &folder));
    // Only comes back where the program could not be started.
    let error = command.exec();
    Err(Problems::from(Problem::new(format!("{}: {error}", program.to_string_lossy()))).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn read(line: &str) -> Arguments {
        Line::try_parse_from(line.split_whitespace()).map(|l| l.arguments).expect("a good line")
    }

    fn value(all: &[(&str, OsString)], name: &str) -> Option<String> {
        all.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string_lossy().into_owned())
    }

    #[test]
    fn the_program_finds_our_files_first() {
        let arguments = read("exec --config tiny --devices 2 -- python -c --timed");
        assert_eq!(arguments.command, ["python", "-c", "--timed"]);
        let all = environment(&arguments, Path::new("/libraries"));
        let path = value(&all, "LD_LIBRARY_PATH").unwrap_or_default();
        assert!(path == "/libraries" || path.starts_with("/libraries:"));
        assert_eq!(value(&all, "TRITON_PTXAS_PATH").as_deref(), Some("/libraries/ptxas"));
        assert_eq!(value(&all, "WARPLOOM_CONFIG").as_deref(), Some("tiny"));
        assert_eq!(value(&all, "WARPLOOM_DEVICES").as_deref(), Some("2"));
        assert_eq!(value(&all, "WARPLOOM_TIMED").as_deref(), Some("0"));
        assert_eq!(value(&all, "WARPLOOM_LOG"), None);
    }

    #[test]
    fn launches_are_timed_where_it_is_asked_for() {
        let timed = |line: &str| value(&environment(&read(line), Path::new("/l")), "WARPLOOM_TIMED");
        assert_eq!(timed("exec --timed -- a").as_deref(), Some("1"));
        assert_eq!(timed("exec --timed=saxpy -- a").as_deref(), Some("saxpy"));
        assert_eq!(timed("exec --profile folder -- a").as_deref(), Some("1"));
        assert_eq!(timed("exec --profile folder --timed=saxpy a").as_deref(), Some("saxpy"));
        assert_eq!(timed("exec --optimize sm,helper a").as_deref(), Some("1"));
        let all = environment(&read("exec --optimize sm,helper a"), Path::new("/l"));
        assert_eq!(value(&all, "WARPLOOM_OPTIMIZE").as_deref(), Some("sm,helper"));
        assert!(Line::try_parse_from(["exec", "--optimize", "all", "a"]).is_err());
    }

    #[test]
    fn links_are_made_where_there_is_a_place() {
        let folder = std::env::temp_dir().join(format!("warploom-links-{}", std::process::id()));
        let good = folder.join("good");
        // A file where a folder should be.
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        std::fs::write(folder.join("file"), "").expect("written");
        let places = [folder.join("file/bad"), good.clone()];
        for _ in 0..2 {
            assert_eq!(link_all(Path::new("/build"), &places).ok(), Some(good.clone()));
        }
        let found = std::fs::read_link(good.join("libcudart.so.13")).ok();
        assert_eq!(found, Some(PathBuf::from("/build/libcudart13.so")));
        assert!(link_all(Path::new("/build"), &places[..1]).is_err());
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
