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
    let timed = match (&arguments.timed, &arguments.profile) {
        (Some(which), _) => which.clone(),
        (None, Some(_)) => "1".into(),
        (None, None) => "0".into(),
    };
    let mut path = folder.as_os_str().to_owned();
    if let Some(old) = std::env::var_os("LD_LIBRARY_PATH").filter(|p| !p.is_empty()) {
        path.push(":");
        path.push(old);
    }
    let ptxas = folder.join("ptxas").into_os_string();
    let mut all = vec![
        ("LD_LIBRARY_PATH", path),
        ("WARPLOOM_CONFIG", OsString::from(&arguments.config)),
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

/// Stands in for NVIDIA's assembler, for compilers that call it: what they take for machine code is the PTX itself, or, where
/// they ask for more than the driver could know, a program image.
pub mod ptxas {
    use driver::{CompileOptions, Problem, Problems, files};
    use std::path::{Path, PathBuf};

    /// What of NVIDIA's options is understood; the others change nothing here.
    #[derive(Default)]
    pub struct Options {
        pub input: Option<PathBuf>,
        pub output: Option<PathBuf>,
        pub compile: CompileOptions,
    }

    /// Whether the command was called by the assembler's name.
    pub fn is_asked(name: Option<&str>) -> bool {
        name.and_then(|n| Path::new(n).file_name()).is_some_and(|n| n == "ptxas")
    }

    pub fn read(arguments: &[String]) -> Result<Options, Problems> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with('-') => (name, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let number = |text: &str| {
                text.parse::<u32>()
                    .map_err(|_| Problems::from(Problem::new(format!("{argument}: {text} is no number"))))
            };
            match name {
                "-o" | "--output-file" | "--maxrregcount" | "-maxrregcount" | "--fmad" | "-fmad"
                | "--opt-level" | "-O" | "-arch" | "--gpu-name" => {
                    let value = attached.or_else(|| rest.next().cloned()).unwrap_or_default();
                    match name {
                        "-o" | "--output-file" => options.output = Some(value.into()),
                        "--maxrregcount" | "-maxrregcount" => {
                            options.compile.max_registers = Some(number(&value)?).filter(|&n| n > 0);
                        }
                        "--fmad" | "-fmad" => options.compile.fmad = value != "false",
                        "--opt-level" | "-O" => options.compile.opt_level = number(&value)?.min(3) as u8,
                        _ => {}
                    }
                }
                "-O0" | "-O1" | "-O2" | "-O3" => options.compile.opt_level = name.as_bytes()[2] - b'0',
                _ if name.starts_with('-') => {}
                _ => options.input = Some(argument.into()),
            }
        }
        Ok(options)
    }

    pub fn run(arguments: &[String]) -> Result<(), Problems> {
        if arguments.iter().any(|a| a == "--version" || a == "-V") {
            // Compilers look for the release, and keep what they made by the whole text.
            println!("ptxas: PTX passed on by Warploom {}", env!("CARGO_PKG_VERSION"));
            println!("Cuda compilation tools, release 13.0, V13.0.88");
            return Ok(());
        }
        let options = read(arguments)?;
        let input = options.input.ok_or_else(|| Problem::new("ptxas: no input file"))?;
        let output = options.output.unwrap_or_else(|| PathBuf::from("elf.o"));
        let source = driver::compile::read_program(&input)?;
        let is_plain = options.compile == CompileOptions::default();
        let bytes = if is_plain {
            driver::compile::lower(&source)?;
            source.bytes.to_vec()
        } else {
            let image = driver::compile::link(&[source], &options.compile)?;
            image.to_bytes().map_err(|e| Problem::new(e.to_string()))?
        };
        files::write(&output, |to| to.write_all(&bytes))?;
        Ok(())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn options(text: &str) -> Options {
            read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).expect("options")
        }

        #[test]
        fn options_as_compilers_write_them_are_understood() {
            let o = options("-lineinfo -v --gpu-name=sm_80 a.ptx -o b.cubin --fmad=false");
            assert_eq!((o.input, o.output), (Some("a.ptx".into()), Some("b.cubin".into())));
            assert!(!o.compile.fmad);
            let o = options("--maxrregcount 64 -arch sm_90 -O1 c.ptx");
            assert_eq!((o.compile.max_registers, o.compile.opt_level), (Some(64), 1));
            assert_eq!(o.input, Some("c.ptx".into()));
            assert!(is_asked(Some("/a/ptxas")) && !is_asked(Some("warploom")));
        }
    }
}
