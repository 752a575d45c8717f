//! Checkpoints as a user meets them: real processes that are killed, and files that are no checkpoints.
#![cfg(unix)]

use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    /// With a launch file whose first kernel makes so many rounds.
    fn new(name: &str, rounds: u32) -> Folder {
        let path = std::env::temp_dir().join(format!("warploom-kept-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        let folder = Folder(path);
        folder.write("busy.ptx", include_str!("../../driver/tests/data/checkpoint.ptx"));
        let launch = format!(
            r#"
[[launch]]
entry = "busy"
grid = [4, 1, 1]
block = [128, 1, 1]
arg = [
    {{ name = "data", buffer = "u32", count = 640, init = {{ iota = [3, 77] }}, out = "data.npy" }},
    {{ name = "counts", buffer = "u32", count = 128, out = true }},
    {{ name = "field", buffer = "u32", count = 66000, out = true }},
    {{ u32 = {rounds} }},
]

[[launch]]
entry = "sum"
grid = [5, 1, 1]
block = [128, 1, 1]
arg = [{{ use = "data" }}, {{ name = "total", buffer = "u32", count = 1, out = true }}]
"#
        );
        folder.write("busy.toml", launch);
        folder
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("written");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command.args(args).current_dir(&self.0);
        command
    }

    fn warploom(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the command starts")
    }

    /// The same with files of at most so many blocks of 512 bytes: who writes more is killed.
    fn warploom_with_small_files(&self, blocks: u64, args: &[&str]) -> Output {
        let script = format!("ulimit -c 0; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_warploom")]).args(args).current_dir(&self.0);
        command.output().expect("the command starts")
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const RUN: [&str; 5] = ["run", "busy.toml", "--config", "tiny", "--json"];
const KEPT: [&str; 9] =
    ["run", "busy.toml", "--config", "tiny", "--json", "--checkpoint-every", "2000", "--checkpoint", "state"];

/// What a run printed, without how long it took.
fn results(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {text}", output.status);
    let mut value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for launch in value["busy"]["launches"].as_array_mut().expect("launches") {
        launch.as_object_mut().expect("a launch").remove("seconds");
    }
    value
}

/// Waits until a file is there that is not the one before, or the process has ended.
fn wait_for_another(path: &Path, before: &mut Option<Vec<u8>>, child: &mut Child) {
    loop {
        let now = std::fs::read(path).ok();
        if now.is_some() && now != *before {
            *before = now;
            return;
        }
        if child.try_wait().expect("a child").is_some() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_process_that_is_killed_goes_on() {
    let folder = Folder::new("killed", 20);
    let whole = folder.warploom(&RUN);
    let (undisturbed, data) = (results(&whole), folder.read("data.npy"));
    std::fs::remove_file(folder.path("data.npy")).expect("removed");
    let mut state = None;
    for n in 0..5 {
        let args: &[&str] = if n == 0 { &KEPT } else { &["resume", "state"] };
        let mut child = folder.command(args).stdout(Stdio::null()).spawn().expect("the command starts");
        wait_for_another(&folder.path("state"), &mut state, &mut child);
        // However far it is by now, and also where it has ended.
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
    assert!(state.is_some(), "there were checkpoints");
    // It goes on from any folder, and its files go where they would have gone.
    let resumed = folder.path("state").display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
    command.args(["resume", &resumed, "--threads", "2"]).current_dir(std::env::temp_dir());
    let output = command.output().expect("the command starts");
    assert_eq!(results(&output), undisturbed);
    assert_eq!(folder.read("data.npy"), data);
}

#[test]
fn killed_in_the_middle_of_a_write() {
    let folder = Folder::new("written", 12);
    let undisturbed = results(&folder.warploom(&RUN));
    assert_eq!(results(&folder.warploom(&KEPT)), undisturbed, "checkpoints change nothing");
    let blocks = folder.read("state").len() as u64 / 512;
    std::fs::remove_file(folder.path("state")).expect("removed");
    // The first checkpoint of a run.
    let killed = folder.warploom_with_small_files(blocks / 2, &KEPT);
    assert!(killed.status.signal().is_some(), "{killed:?}");
    assert!(!folder.path("state").exists() && folder.path("state.unfinished").exists());
    // Another one, after one that is there.
    let mut child = folder.command(&KEPT).stdout(Stdio::null()).spawn().expect("the command starts");
    wait_for_another(&folder.path("state"), &mut None, &mut child);
    child.kill().expect("killed");
    child.wait().expect("ended");
    let before = folder.read("state");
    for divisor in [1000, 7, 3, 2] {
        let killed = folder.warploom_with_small_files(blocks / divisor, &["resume", "state"]);
        assert!(killed.status.signal().is_some(), "{killed:?}");
        assert_eq!(folder.read("state"), before, "the checkpoint is the old one as a whole");
    }
    assert_eq!(results(&folder.warploom(&["resume", "state"])), undisturbed);
    assert!(!folder.path("state.unfinished").exists());
}

#[test]
fn who_stops_a_run_is_told_how_to_go_on() {
    let folder = Folder::new("stopped", 20);
    let undisturbed = results(&folder.warploom(&RUN));
    let mut command = folder.command(&KEPT);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts");
    wait_for_another(&folder.path("state"), &mut None, &mut child);
    // What Ctrl-C sends.
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    let output = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("stopped") && text.contains("`warploom resume state` goes on"), "{text}");
    assert_eq!(results(&folder.warploom(&["resume", "state"])), undisturbed);
}

#[test]
fn a_profile_goes_on_too() {
    let folder = Folder::new("profile", 3);
    let sampled = ["--sample", "100", "--samples", "3000"];
    for more in [&sampled[..0], &sampled[..]] {
        let args = |trace: &'static str, kept: bool| {
            let mut args = vec!["profile", "busy.toml", "--config", "tiny", "--json", "--trace", trace];
            args.extend(more);
            if kept {
                args.extend(["--checkpoint-every", "4000", "--checkpoint", "state"]);
            }
            args
        };
        let whole = folder.warploom(&args("whole", false));
        let kept = folder.warploom(&args("kept", true));
        assert!(whole.status.success() && kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
        assert_eq!((whole.stdout.len() > 1000, &kept.stdout), (true, &whole.stdout));
        assert_eq!(folder.read("kept"), folder.read("whole"));
        std::fs::remove_file(folder.path("kept")).expect("removed");
        let resumed = folder.warploom(&["resume", "state"]);
        assert_eq!(resumed.stdout, whole.stdout, "{}", String::from_utf8_lossy(&resumed.stderr));
        assert_eq!(folder.read("kept"), folder.read("whole"));
    }
}

#[test]
fn what_is_wrong_is_told() {
    let folder = Folder::new("wrong", 3);
    let told = |output: Output, parts: &[&str]| {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
        assert!(!text.contains("panicked"), "{text}");
    };
    told(
        folder.warploom(&["resume", "state"]),
        &["cannot go on from state", "No such file", "check the path"],
    );
    results(&folder.warploom(&KEPT));
    let good = folder.read("state");
    let damaged = |change: &dyn Fn(&mut Vec<u8>), parts: &[&str]| {
        let mut bytes = good.clone();
        change(&mut bytes);
        folder.write("damaged", &bytes);
        told(folder.warploom(&["resume", "damaged"]), parts);
        assert_eq!(folder.read("damaged"), bytes, "nothing was written");
        assert!(!folder.path("damaged.unfinished").exists());
    };
    std::fs::remove_file(folder.path("data.npy")).expect("removed");
    let middle = good.len() / 2;
    damaged(&|b| b[middle] ^= 4, &["damaged", "checksum", "run the launch file again"]);
    damaged(&|b| b.truncate(middle), &["cut off", "run the launch file again"]);
    damaged(&|b| b.truncate(5), &["cut off"]);
    damaged(&|b| b.push(0), &["1 bytes too many"]);
    damaged(&|b| b[8] = 9, &["version 9, not of version 8", "with the warploom that wrote it"]);
    damaged(&|b| b[12] ^= 1, &["another version of the machine"]);
    damaged(&|b| b.clear(), &["no checkpoint", "`--checkpoint` wrote"]);
    told(folder.warploom(&["resume", "busy.toml"]), &["no checkpoint"]);
    told(folder.warploom(&["resume", "."]), &["directory"]);
    assert!(!folder.path("data.npy").exists(), "no result of what did not run");
    let with = |more: &[&str]| folder.warploom(&[&RUN[..2], more].concat());
    told(with(&["--checkpoint-every", "5"]), &["--checkpoint"]);
    told(with(&["--checkpoint", "state"]), &["--checkpoint-every"]);
    told(with(&["--checkpoint-every", "0", "--checkpoint", "state"]), &["0 is not in"]);
    let functional = ["--functional", "--checkpoint-every", "5", "--checkpoint", "state"];
    told(with(&functional), &["no checkpoints without timing", "--functional"]);
    let nowhere = ["--checkpoint-every", "5", "--checkpoint", "none/state"];
    told(with(&nowhere), &["cannot write checkpoints to none/state", "choose a place"]);
    told(with(&["--checkpoint-every", "5", "--checkpoint", "."]), &["cannot write checkpoints"]);
}
