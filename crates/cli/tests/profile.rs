//! `warploom profile` as a user meets it: every form it writes, traces, comparisons, and mistakes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("warploom-profile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
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

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

fn profile(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .arg("profile")
        .args(args)
        .output()
        .expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

#[test]
fn every_form_is_written() {
    let folder = Folder::new("forms");
    let (html, svg) = (folder.path("p.html"), folder.path("p.svg"));
    let (pprof, perfetto, trace) = (folder.path("p.pb.gz"), folder.path("p.pft"), folder.path("p.wltr"));
    let matmul = example("matmul/matmul.toml");
    let (status, out, err) = profile(&[
        &matmul,
        "--config",
        "tiny",
        "--html",
        &html,
        "--flamegraph",
        &svg,
        "--pprof",
        &pprof,
        "--perfetto",
        &perfetto,
        "--trace",
        &trace,
    ]);
    assert_eq!(status, Some(0), "{err}");
    for part in ["matmul on tiny: ", "Warp states", "Lines", "matmul.cu:18", "short_scoreboard"] {
        assert!(out.contains(part), "`{part}` is not in:\n{out}");
    }
    let page = String::from_utf8(folder.read("p.html")).expect("text");
    assert!(page.contains("float from_b = tile_b[i][x];"), "the source is in the page");
    assert!(page.contains("ld.shared.f32") && page.contains("LDS"), "PTX and machine code too");
    assert!(page.len() < 2 << 20, "{}", page.len());
    assert!(folder.read("p.svg").starts_with(b"<?xml"));
    assert!(folder.read("p.pb.gz").starts_with(&[0x1f, 0x8b]));
    assert!(folder.read("p.pft").len() > 60);

    // The trace holds all that the run showed.
    let shown =
        |text: &str| text.lines().filter(|l| !l.contains("written to")).collect::<Vec<_>>().join("\n");
    let (status, again, err) = profile(&[&trace]);
    assert_eq!((status, shown(&again)), (Some(0), shown(&out)), "{err}");
    let (_, same, _) = profile(&[&trace, "--compare", &trace]);
    assert!(same.contains("Comparison: ") && same.contains("(+0.0 %)"), "{same}");
    let (status, other, _) = profile(&[&matmul, "--config", "tiny", "--opt-level", "0", "--compare", &trace]);
    assert_eq!(status, Some(0));
    let change = other.split("Comparison: ").nth(1).unwrap_or_default();
    assert!(change.contains("matmul.cu:") && !change.contains("(+0.0 %)"), "{other}");
}

#[test]
fn tables_are_for_programs() {
    let saxpy = example("saxpy/saxpy.toml");
    let (status, out, err) = profile(&[&saxpy, "--config", "tiny", "--csv"]);
    assert_eq!(status, Some(0), "{err}");
    let mut lines = out.lines();
    assert!(lines.next().is_some_and(|l| l.starts_with("address,function,file,line,")), "{out}");
    assert!(lines.all(|l| l.starts_with("0x")), "{out}");
    let (status, out, err) = profile(&[&saxpy, "--config", "tiny", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let launch = &value[0];
    let sum = |name: &str| -> u64 {
        let rows = launch[name].as_array().expect("rows");
        rows.iter().filter_map(|r| r["warp_cycles"].as_u64()).sum()
    };
    assert!(sum("code") > 0 && sum("code") == sum("lines"), "all code of this kernel has a line");
}

#[test]
fn mistakes_are_explained() {
    let folder = Folder::new("mistakes");
    std::fs::write(folder.path("bad.wltr"), b"WLTR\x01\0\0\0PROFxxxx").expect("written");
    let saxpy = example("saxpy/saxpy.toml");
    for (args, part) in [
        (vec![folder.path("bad.wltr")], "the trace is cut off"),
        (
            vec![saxpy.clone(), "--config".into(), "tiny".into(), "--compare".into(), saxpy.clone()],
            "not a Warploom trace",
        ),
        (
            vec![saxpy.clone(), "--config".into(), "tiny".into(), "--launch".into(), "3".into()],
            "there is no launch 3",
        ),
        (vec![folder.path("none.toml")], "cannot read"),
        (
            vec![
                saxpy.clone(),
                "--config".into(),
                "tiny".into(),
                "--html".into(),
                folder.path("no/dir.html"),
            ],
            "cannot write",
        ),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (status, out, err) = profile(&args);
        assert_eq!(status, Some(2), "{args:?}\n{out}{err}");
        assert!(err.contains(part) && !err.contains("panicked"), "`{part}` is not in:\n{err}");
    }
}

#[test]
fn samples_beside_the_exact_profile() {
    let folder = Folder::new("samples");
    let matmul = example("matmul/matmul.toml");
    let trace = folder.path("s.wltr");
    let tiny = ["--config", "tiny", "--sample", "50"];
    let run = |more: &[&str]| profile(&[&[matmul.as_str()], &tiny[..], more].concat());
    let (status, out, err) = run(&["--samples", "100000", "--trace", &trace]);
    assert_eq!(status, Some(0), "{err}");
    let line = out.lines().find(|l| l.contains(" samples, every 50 cycles, 0 lost")).expect("a line");
    assert!(line.ends_with("+0 cycles"), "{line}");
    let launches = trace::file::read(&folder.read("s.wltr")).expect("a trace");
    let samples = launches[0].profile.samples.as_ref().expect("samples");
    assert_eq!(samples.records, launches[0].records.len() as u64);
    assert!(samples.records >= 100_000 && samples.passes > 1, "{} in {}", samples.records, samples.passes);
    // Records on their way through the load-store units slow the program down.
    let (_, out, _) = run(&["--sample-path", "load-store"]);
    let line = out.lines().find(|l| l.contains(" samples, ")).expect("a line");
    assert!(!line.ends_with("+0 cycles"), "{line}");
    let (_, out, _) = run(&["--sample-by", "barriers", "--sample-in-turn"]);
    assert!(out.contains("every 50 barriers, one warp of each scheduler in turn"), "{out}");
    for wrong in
        [["--sample-sms", "x"], ["--warps", "3-1"], ["--sample-ctas", "5-1"], ["--sample-cycles", "1,2"]]
    {
        let (status, _, err) = run(&wrong);
        assert!(status == Some(2) && err.contains(wrong[0]), "{err}");
    }
}
