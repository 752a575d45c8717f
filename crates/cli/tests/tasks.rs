//! Launches that run at once, as a user meets them: checkpoints, profiles, and what goes wrong.
#![cfg(unix)]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Makes the record of a queue in memory: entries of four bytes, behind it.
const QUEUE: &str = r#"
.version 8.0
.target sm_90
.address_size 64
.visible .entry make(.param .u64 queue, .param .u32 places) {
    .reg .b64 %rd<4>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [queue];
    ld.param.u32 %r1, [places];
    cvta.to.global.u64 %rd1, %rd1;
    st.global.u32 [%rd1], 0x31514c57;
    st.global.u32 [%rd1+4], 4;
    cvt.u64.u32 %rd2, %r1;
    st.global.u64 [%rd1+8], %rd2;
    add.u64 %rd3, %rd1, 64;
    st.global.u64 [%rd1+16], %rd3;
    ret;
}
"#;

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, launches: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("warploom-tasks-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        let folder = Folder(path);
        let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).expect("written");
        write("tasks.ptx", include_str!("../../driver/tests/data/tasks.ptx"));
        write("queue.ptx", QUEUE);
        write("work.toml", launches);
        folder
    }

    fn warploom(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command.args(args).current_dir(&self.0).output().expect("the command starts")
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn succeeded(output: Output) -> Output {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A long kernel with local memory, and a short one of higher priority that comes when it runs.
const STREAMS: &str = r#"
ptx = "tasks.ptx"

[[launch]]
stream = "background"
entry = "local128"
grid = [40, 1, 1]
block = [64, 1, 1]
arg = [{ name = "slow", buffer = "u32", count = 2560, out = true }, { u32 = 60 }]

[[launch]]
stream = "interactive"
priority = 5
at = 9000
entry = "spin"
grid = [2, 1, 1]
block = [256, 1, 1]
arg = [{ name = "fast", buffer = "u32", count = 512, out = true }, { u32 = 30 }]
"#;

/// Everything that a run printed, but how long it took.
fn results(output: Output) -> Value {
    let mut value: Value = serde_json::from_slice(&succeeded(output).stdout).expect("JSON");
    for launch in value["work"]["launches"].as_array_mut().expect("launches") {
        launch.as_object_mut().expect("a launch").remove("seconds");
    }
    value
}

#[test]
fn launches_that_run_at_once_go_on_from_a_checkpoint() {
    let folder = Folder::new("kept", STREAMS);
    let run = ["run", "work.toml", "--config", "tiny", "--json", "--time-slice", "20000"];
    let kept = ["--checkpoint-every", "30000", "--checkpoint", "state"];
    let undisturbed = results(folder.warploom(&run));
    assert_eq!(
        results(folder.warploom(&[&run[..], &kept].concat())),
        undisturbed,
        "checkpoints change nothing"
    );
    assert_eq!(results(folder.warploom(&["resume", "state"])), undisturbed);
    assert!(undisturbed["work"]["timeline"]["moves"].as_array().is_some_and(|m| !m.is_empty()));
}

#[test]
fn each_of_several_launches_is_counted_by_itself() {
    let folder = Folder::new("counted", STREAMS);
    let all = results(folder.warploom(&["run", "work.toml", "--config", "tiny", "--json"]));
    let all = &all["work"];
    let counter = |n: usize, name: &str| all["launches"][n]["timing"]["counters"][name].as_u64().unwrap_or(0);
    let together = |name: &str| all["timeline"]["counters"][name].as_u64().expect("a counter");
    for name in ["warp_instructions", "thread_instructions", "ctas", "warp_cycles", "pipe_alu"] {
        assert!(counter(1, name) > 0, "{name}");
        assert_eq!(counter(0, name) + counter(1, name), together(name), "{name}");
    }
    // Suspended CTAs are moved by the same units.
    assert!(counter(0, "l1_requests") + counter(1, "l1_requests") <= together("l1_requests"));
    assert!(counter(0, "l1_requests") > 100 * counter(1, "l1_requests").max(1));
    let part = all["launches"][0]["timing"]["counters"].as_object().expect("counters");
    assert!(!part.contains_key("l2_sectors") && together("l2_sectors") > 0, "what all share is told of all");
    let text = succeeded(folder.warploom(&["run", "work.toml", "--config", "tiny"])).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.matches("L1 hit rate").count() == 2 && text.contains("suspended: "), "{text}");
}

#[test]
fn a_profile_of_streams_shows_who_made_room() {
    let folder = Folder::new("profile", STREAMS);
    let run =
        ["profile", "work.toml", "--config", "tiny", "--json", "--perfetto", "trace", "--trace", "kept"];
    let output = succeeded(folder.warploom(&run));
    let profiles: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names: Vec<&str> =
        profiles.as_array().expect("a list").iter().filter_map(|p| p["kernel"].as_str()).collect();
    assert_eq!(names, ["local128", "spin"]);
    let trace = String::from_utf8_lossy(&folder.read("trace")).into_owned();
    for part in ["suspend local128 CTA", "restore local128 CTA", "priority", "SM 0 warp states", "L2 sectors"]
    {
        assert!(trace.contains(part), "`{part}` is not in the timeline");
    }
    let whole = folder.read("kept");
    // It goes on from a checkpoint, too.
    let kept = [&run[..], &["--checkpoint-every", "30000", "--checkpoint", "state"]].concat();
    assert_eq!(succeeded(folder.warploom(&kept)).stdout, output.stdout);
    std::fs::remove_file(folder.0.join("kept")).expect("removed");
    assert_eq!(succeeded(folder.warploom(&["resume", "state"])).stdout, output.stdout);
    assert_eq!(folder.read("kept"), whole);
    let text = succeeded(folder.warploom(&["profile", "work.toml", "--config", "tiny"])).stdout;
    assert!(String::from_utf8_lossy(&text).contains("suspended: "), "who made room");
    let refused = folder.warploom(&["profile", "work.toml", "--config", "tiny", "--sample", "100"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("one after the other"));
}

/// A run that fails: with these words, and nothing written.
fn fails(folder: &Folder, parts: &[&str]) {
    for more in [&["--functional"][..], &["--config", "tiny"]] {
        let output = folder.warploom(&[&["run", "work.toml", "--out", "results"], more].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
        assert!(!text.contains("panicked"), "{text}");
        let left = std::fs::read_dir(folder.0.join("results")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "nothing is half written");
    }
}

#[test]
fn child_tasks_without_end_are_told() {
    let launch = |entry: &str, arguments: &str| {
        format!(
            "ptx = \"tasks.ptx\"\nentry = \"{entry}\"\ngrid = [1, 1, 1]\nblock = [32, 1, 1]\n\
             arg = [{{ name = \"out\", buffer = \"u32\", count = 64, out = true }}{arguments}]\n"
        )
    };
    let endless = Folder::new("endless", &launch("endless", ""));
    fails(&endless, &["child tasks nest deeper than 64 levels", "endless"]);
    // Without time they run at once, one after the other, and none waits.
    let many = Folder::new("many", &launch("many", ", { u32 = 200 }"));
    let output = many.warploom(&["run", "work.toml", "--config", "tiny", "--out", "results"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("more than 2048 child tasks wait to run"), "{text}");
}

#[test]
fn a_queue_that_overflows_is_told() {
    let folder = Folder::new(
        "overflow",
        r#"
[[launch]]
ptx = "queue.ptx"
entry = "make"
grid = [1, 1, 1]
block = [1, 1, 1]
arg = [{ name = "queue", buffer = "u32", count = 64, out = true }, { u32 = 8 }]

[[launch]]
ptx = "tasks.ptx"
entry = "produce"
grid = [20, 1, 1]
block = [32, 1, 1]
arg = [{ use = "queue" }, { u32 = 40 }]
"#,
    );
    fails(&folder, &["is full: its 8 entries are not done yet", "produce"]);
}

#[test]
fn a_clock_that_ends_is_told() {
    let late = |at: u64| {
        format!(
            "ptx = \"tasks.ptx\"\n[[launch]]\nentry = \"spin\"\ngrid = [2, 1, 1]\nblock = [64, 1, 1]\nat = {at}\n\
             arg = [{{ name = \"out\", buffer = \"u32\", count = 128, out = true }}, {{ u32 = 30 }}]\n"
        )
    };
    let took = |at: u64| {
        let folder = Folder::new(&format!("late-{at}"), &late(at));
        let run = folder.warploom(&["run", "work.toml", "--config", "tiny", "--json"]);
        results(run)["work"]["timeline"]["cycles"].as_u64().expect("cycles") - at
    };
    // The last cycles are as good as the first.
    let (early, last) = (took(1 << 20), took((1 << 42) - (1 << 20)));
    assert!(early.abs_diff(last) * 50 < early, "{early} and {last} cycles");
    let folder = Folder::new("too-late", &late(1 << 42));
    let output = folder.warploom(&["run", "work.toml", "--config", "tiny", "--out", "results"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the machine's clock ends at cycle 4398046511104"), "{text}");
}
