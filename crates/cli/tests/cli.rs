//! The command as a user meets it: what it prints, what it writes, and its exit status for every kind of mistake.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("warploom-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn warploom(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warploom")).args(args).output().expect("the command starts")
}

fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    root.join(name).display().to_string()
}

/// Asserts the exit status and that the output has all parts; gives what was printed.
fn expect(output: &Output, status: i32, parts: &[&str]) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// A kernel with one pointer parameter, one warp.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .u32 %r<9>;\n.reg .u64 %rd<9>;\n.reg .pred %p<9>;\n.reg .f32 %f<9>;\nld.param.u64 %rd1, [p];\n{body}\nret;\n}}\n"
    )
}

const LAUNCH: &str = "ptx = \"k.ptx\"\nentry = \"k\"\ngrid = [2, 1, 1]\nblock = [32, 1, 1]\n[[arg]]\nname = \"data\"\n\
    buffer = \"u32\"\ncount = 64\nout = true\n";

/// Runs a kernel body with the launch file above.
fn run_body(name: &str, body: &str, more: &[&str]) -> Output {
    run_files(name, &kernel(body), LAUNCH, more)
}

fn run_files(name: &str, ptx: &str, launch: &str, more: &[&str]) -> Output {
    let folder = Folder::new(name);
    folder.write("k.ptx", ptx);
    folder.write("k.toml", launch);
    warploom(&[&["run", &folder.path("k.toml")], more].concat())
}

#[test]
fn runs_and_checks_an_example() {
    let output = warploom(&["run", &example("saxpy/saxpy.toml"), "--check", &example("expected.json")]);
    expect(
        &output,
        0,
        &[
            "y: 65,536 f32",
            "min -",
            "sha256 788a8e34e478414e",
            "as expected",
            " cycles (",
            " us) on h200, 256 CTAs",
            "Speed of light",
            "Achieved occupancy",
            "long_scoreboard",
            "L1 hit rate",
        ],
    );
    let output = warploom(&["run", &example("saxpy/saxpy.toml"), "--functional"]);
    let text = expect(&output, 0, &["sha256 788a8e34e478414e", "saxpy: 256 CTAs"]);
    assert!(!text.contains("cycles"), "{text}");
}

#[test]
fn machines_are_chosen_and_cycles_do_not_depend_on_threads() {
    let launch = example("reduction/reduction.toml");
    let cycles = |more: &[&str]| {
        let text = expect(&warploom(&[&["run", &launch, "--json"], more].concat()), 0, &[]);
        let table: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let launches = table["reduction"]["launches"].as_array().expect("launches").clone();
        launches.iter().map(|l| l["timing"]["cycles"].as_u64().expect("cycles")).collect::<Vec<u64>>()
    };
    let one = cycles(&["--threads", "1"]);
    assert_eq!(one, cycles(&["--threads", "2"]));
    assert_ne!(one, cycles(&["--config", "tiny"]));
    assert!(one < cycles(&["--cold"]));
    expect(&warploom(&["run", &launch, "--config", "h20"]), 2, &["did you mean `h200`?"]);
    expect(&warploom(&["run", &launch, "--functional", "--cold"]), 2, &["--cold"]);
}

#[test]
fn json_can_be_checked_against_and_differences_are_found() {
    let folder = Folder::new("json");
    let output = warploom(&["run", &example("reduction/reduction.toml"), "--json"]);
    let text = expect(&output, 0, &[]);
    let table: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(table["reduction"]["launches"].as_array().map(Vec::len), Some(2));
    let good = folder.write("good.json", &text);
    let launch = example("reduction/reduction.toml");
    expect(&warploom(&["run", &launch, "--check", &good.display().to_string()]), 0, &["as expected"]);
    let sha = table["reduction"]["outputs"][0]["sha256"].as_str().expect("a digest");
    let bad = folder.write("bad.json", text.replace(sha, &"0".repeat(64)));
    expect(&warploom(&["run", &launch, "--check", &bad.display().to_string()]), 1, &["differs: sha256 is"]);
    let other = folder.write("other.json", "{}");
    expect(
        &warploom(&["run", &launch, "--check", &other.display().to_string()]),
        2,
        &["no outputs for `reduction`"],
    );
}

#[test]
fn writes_arrays_and_pictures() {
    let folder = Folder::new("out");
    let (first, second) = (folder.path("a"), folder.path("b"));
    let output = warploom(&["run", &example("mandelbrot/mandelbrot.toml"), "--out", &first]);
    expect(&output, 0, &["mandelbrot.png", "iterations.npy"]);
    let png = std::fs::read(Path::new(&first).join("mandelbrot.png")).expect("a picture");
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    let launch = example("mandelbrot/mandelbrot.toml");
    expect(&warploom(&["run", &launch, "--out", &second, "--check", &first]), 0, &["as expected"]);
    let array = Path::new(&first).join("iterations.npy");
    let mut bytes = std::fs::read(&array).expect("an array");
    let at = bytes.len() - 4;
    bytes[at] ^= 1;
    std::fs::write(&array, bytes).expect("written");
    let output = warploom(&["run", &launch, "--out", &second, "--check", &first]);
    expect(&output, 1, &["1 elements; element 393215 is "]);
}

#[test]
fn compiles_disassembles_and_runs_images() {
    let folder = Folder::new("compile");
    let ptx = folder.write("k.ptx", kernel("mov.u32 %r1, 7;\nst.global.u32 [%rd1], %r1;"));
    let (ptx, image) = (ptx.display().to_string(), folder.path("k.wli"));
    expect(&warploom(&["compile", &ptx, "-o", &image]), 0, &["k: ", "registers", "written to"]);
    expect(&warploom(&["disasm", &image]), 0, &["// kernel k:", "STG", "EXIT", "PTX 12"]);
    let json = expect(&warploom(&["disasm", &image, "--json"]), 0, &[]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["functions"][0]["name"], "k");
    folder.write("k.toml", LAUNCH.replace("k.ptx", "k.wli"));
    expect(&warploom(&["run", &folder.path("k.toml")]), 0, &["data: 64 u32  min 0  max 7  sum 7", "7 0 0"]);
    expect(&warploom(&["compile", &ptx, "--emit", "asm"]), 0, &["STG"]);
    expect(&warploom(&["compile", &ptx, "--emit", "ir"]), 0, &["k"]);
    expect(&warploom(&["compile", &ptx, "--emit", "ptx-ast"]), 0, &["Module"]);
    expect(&warploom(&["disasm", &ptx]), 2, &["no program image", "--emit asm"]);
    let mut damaged = std::fs::read(&image).expect("the image");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x40;
    let damaged = folder.write("damaged.wli", damaged).display().to_string();
    expect(&warploom(&["disasm", &damaged]), 2, &["damaged"]);
}

#[test]
fn printf_goes_to_standard_output() {
    let ptx = kernel(
        "{ .local .align 8 .b8 args[8];\n.reg .b64 %s<4>;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n\
         setp.ne.u32 %p1, %r2, 0;\n@%p1 bra done;\nst.local.u32 [args], %r1;\nmov.u64 %s1, text;\n\
         cvta.global.u64 %s1, %s1;\nmov.u64 %s2, args;\ncvta.local.u64 %s2, %s2;\n\
         { .param .b64 a;\nst.param.b64 [a], %s1;\n.param .b64 b;\nst.param.b64 [b], %s2;\n.param .b32 r;\n\
         call.uni (r), vprintf, (a, b);\nld.param.b32 %r3, [r];\n}\ndone:\n}",
    )
    .replace(
        ".visible .entry",
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .global .align 1 .b8 text[11] = {67, 84, 65, 32, 37, 100, 33, 10};\n.visible .entry",
    );
    let output = run_files("printf", &ptx, LAUNCH, &[]);
    let text = expect(&output, 0, &[]);
    assert!(text.starts_with("CTA 0!\nCTA 1!\n"), "{text}");
}

#[test]
fn faults_name_kernel_line_thread_and_address() {
    let tid = "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r3, %r2, 32, %r1;\n";
    let index = format!("{tid}mul.wide.u32 %rd2, %r3, 8;\nadd.u64 %rd3, %rd1, %rd2;\n");
    let out_of_bounds = run_body("oob", &format!("{index}st.global.u32 [%rd3], %r1;"), &[]);
    expect(
        &out_of_bounds,
        1,
        &[
            "kernel k: store of 4 bytes at global address 0x",
            "k.ptx:16",
            "thread: (0, 0, 0) of CTA (1, 0, 0)",
            "address: 0x",
            "STG",
        ],
    );
    let misaligned = run_body("misaligned", "ld.global.u32 %r1, [%rd1+2];\nst.global.u32 [%rd1], %r1;", &[]);
    expect(
        &misaligned,
        1,
        &["kernel k: load of 4 bytes", "no multiple of 4", "k.ptx:11", "thread: (0, 0, 0) of CTA (0, 0, 0)"],
    );
    let trap = run_body("trap", &format!("{tid}setp.eq.u32 %p1, %r3, 37;\n@%p1 trap;"), &[]);
    expect(&trap, 1, &["kernel k: trap", "thread: (5, 0, 0) of CTA (1, 0, 0)"]);
}

#[test]
fn endless_kernels_can_be_ended() {
    let output =
        run_body("endless", "again:\nadd.u32 %r1, %r1, 1;\nbra again;", &["--max-instructions", "10000"]);
    expect(
        &output,
        1,
        &[
            "kernel k",
            "10000 warp instructions",
            "PTX line 1",
            "thread (0, 0, 0) of CTA (",
            "--max-instructions",
        ],
    );
}

#[test]
fn ptx_mistakes_point_at_the_place() {
    for (name, body, parts) in [
        ("opcode", "frob.u32 %r1, %r2;", &["k.ptx:11:1", "frob"][..]),
        ("type", "add.u32 %rd1, %r1, %r2;", &["k.ptx:11:", "%rd1"]),
        ("label", "bra nowhere;", &["k.ptx:11:5", "nowhere"]),
        ("name", "mov.u32 %r1, %r99;", &["k.ptx:11:14", "%r99"]),
        (
            "not-built",
            "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f0}, {%r1}, {%r2}, {%f1};",
            &["k.ptx:11:", "wmma"],
        ),
    ] {
        expect(&run_body(name, body, &[]), 2, parts);
    }
    let unterminated = kernel("").replace(".visible", ".file 1 \"k.cu\n.visible");
    expect(&run_files("string", &unterminated, LAUNCH, &[]), 2, &["k.ptx:4:"]);
}

#[test]
fn launch_mistakes_point_at_the_place() {
    let good = kernel("");
    for (name, launch, parts) in [
        (
            "arguments",
            LAUNCH.to_owned() + "[[arg]]\ni32 = 3\n",
            &["k.toml:10:1", "1 parameters, 2 are given"][..],
        ),
        (
            "size",
            LAUNCH.replace("name = \"data\"\nbuffer = \"u32\"\ncount = 64\nout = true", "i32 = 5"),
            &["k.toml:5:1", "has 4 bytes", "takes 8"],
        ),
        ("entry", LAUNCH.replace("\"k\"", "\"kk\""), &["k.toml:2:9", "no kernel kk", "did you mean k?"]),
        ("block", LAUNCH.replace("[32, 1, 1]", "[32, 32, 2]"), &["k.toml:4:9", "2048 threads", "1024"]),
        ("missing", LAUNCH.replace("k.ptx", "none.ptx"), &["k.toml:1:7", "none.ptx"]),
        ("key", LAUNCH.replace("count", "cuont"), &["k.toml:8:1", "did you mean `count`?"]),
    ] {
        expect(&run_files(name, &good, &launch, &[]), 2, parts);
    }
    expect(&warploom(&["run", "no-such-file.toml"]), 2, &["cannot read no-such-file.toml"]);
}

#[test]
fn noise_is_refused_quickly() {
    let folder = Folder::new("noise");
    let mut z = 1u64;
    let noise: Vec<u8> = (0..4 << 20)
        .map(|_| {
            z = z.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (z >> 56) as u8
        })
        .collect();
    let noise = folder.write("noise.ptx", noise).display().to_string();
    expect(&warploom(&["compile", &noise]), 2, &["noise.ptx:1:"]);
    let huge = folder.path("huge.ptx");
    // Sparse: it takes no disk.
    std::fs::File::create(&huge).and_then(|f| f.set_len(2 << 30)).expect("a long file");
    for command in ["compile", "disasm", "run"] {
        expect(&warploom(&[command, &huge]), 2, &["longer than"]);
    }
}

#[test]
fn usage_is_explained() {
    expect(&warploom(&["--help"]), 0, &["Exit status", "run", "compile", "disasm"]);
    expect(&warploom(&["run", "--help"]), 0, &["--max-instructions", "--check", "--out", "--fmad"]);
    expect(&warploom(&["run", "--frob"]), 2, &["--frob"]);
    expect(&warploom(&[]), 2, &["Usage"]);
}

#[test]
fn explain_says_what_became_of_lines() {
    let folder = Folder::new("explain");
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\
        .reg .b32 %r<4>;\n.reg .b64 %q<2>;\nld.param.u64 %q1, [out];\nmov.u32 %r1, 3;\n\
        add.u32 %r2, %r1, 4;\nmul.lo.u32 %r3, %r2, 9;\nst.global.u32 [%q1], %r2;\nret;\n}\n";
    let file = folder.write("k.ptx", text).display().to_string();
    let out = warploom(&["compile", &file, "--emit", "asm", "--explain"]);
    let listing = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(listing.contains("// PTX 10, no code: fold constants: computed while compiling"), "{listing}");
    assert!(listing.contains("// What the passes did:\n//   fold constants: "), "{listing}");
    let out = warploom(&["compile", &file, "--emit", "asm", "--explain", "--json"]);
    let json = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(json.contains("\"ptx_line\": 10") && json.contains("\"passes\""), "{json}");
    // Only code can be explained.
    let out = warploom(&["compile", &file, "--explain"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("add --emit asm"));
}

#[test]
fn configurations_are_listed_shown_and_compared() {
    expect(&warploom(&["config", "list"]), 0, &["tiny ", "classic ", "h200 "]);
    expect(&warploom(&["config", "show", "h200"]), 0, &["# Warp slots.\nwarps = 64\n", "[sm.latency]"]);
    expect(&warploom(&["config", "show", "h200", "sm.warps", "--json"]), 0, &["\"value\": 64"]);
    expect(&warploom(&["config", "diff", "h200", "tiny"]), 0, &["clock_mhz: 1980 -> 1000\n"]);
    expect(&warploom(&["config", "show", "h20"]), 2, &["did you mean `h200`?"]);
    let folder = Folder::new("config");
    let file = folder.write("mine.toml", "base = \"h200\"\n[sm]\nwarps = 32\n").display().to_string();
    expect(&warploom(&["config", "diff", "h200", &file]), 0, &["sm.warps: 64 -> 32\n"]);
    let file = folder.write("bad.toml", "base = \"h200\"\n[sm]\nwrps = 32\n").display().to_string();
    expect(&warploom(&["config", "show", &file]), 2, &["unknown key `sm.wrps`", "bad.toml:3:1", "`warps`"]);
}

#[test]
fn schedulers_are_compared() {
    let folder = Folder::new("schedulers");
    folder.write(
        "k.ptx",
        kernel("ld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd1+64], %r1;"),
    );
    folder.write("k.toml", LAUNCH);
    let file = folder.path("k.toml");
    let (svg, png) = (folder.path("plot.svg"), folder.path("plot.png"));
    let run = |more: &[&str]| warploom(&[&["schedulers", &file, "--config", "tiny"], more].concat());
    let text = expect(&run(&["--plot", &svg]), 0, &["scheduler", "L1 hit %", "two-level", "credit+grants"]);
    assert_eq!(text.lines().count(), 11, "a line a scheduler:\n{text}");
    let drawn = std::fs::read_to_string(&svg).expect("a plot");
    assert!(drawn.starts_with("<svg ") && drawn.contains("credit+grants"));
    let output = run(&["--schedulers", "lrr,window", "--json", "--plot", &png]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["schedulers"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter().all(|r| r["cycles"].as_u64() > Some(0) && r["stalls"]["selected"].as_u64() > Some(0))
    );
    assert_eq!(rows[0]["results"], rows[1]["results"]);
    assert_eq!(std::fs::read(&png).expect("a plot")[1..4], *b"PNG");
    expect(&run(&["--schedulers", "fifo"]), 2, &["there is no scheduler `fifo`", "two-level"]);
    expect(&run(&["--plot", "plot.gif"]), 2, &["neither .svg nor .png"]);
    let output =
        warploom(&["run", &file, "--config", "tiny", "--scheduler", "credit+grants", "--phases", "loads"]);
    expect(&output, 0, &["cycles"]);
    expect(&warploom(&["run", &file, "--scheduler", "best"]), 2, &["there is no scheduler `best`"]);
}

#[cfg(unix)]
#[test]
fn stands_in_for_the_assembler() {
    use std::os::unix::process::CommandExt;
    let folder = Folder::new("ptxas");
    let ptxas = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        command.arg0("/some/where/ptxas").args(args).output().expect("the command starts")
    };
    let version = ptxas(&["--version"]);
    assert!(String::from_utf8_lossy(&version.stdout).contains("release 13.0"));
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
    folder.write("k.ptx", text);
    let (input, output) = (folder.path("k.ptx"), folder.path("k.cubin"));
    let done = ptxas(&["-lineinfo", "-v", "--gpu-name=sm_80", &input, "-o", &output]);
    assert!(done.status.success());
    assert_eq!(std::fs::read_to_string(&output).expect("written"), text);
    // What the driver could not know later is done now.
    assert!(ptxas(&["--fmad=false", &input, "-o", &output]).status.success());
    assert!(std::fs::read(&output).expect("written").starts_with(b"WLIM"));
    folder.write("k.ptx", text.replace("ret", "rat"));
    let refused = ptxas(&[&input, "-o", &output]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("rat"));
}

#[test]
fn cuda_source_needs_its_compiler_and_a_launch_file() {
    let folder = Folder::new("source");
    folder.write("k.cu", "extern \"C\" __global__ void k() {}");
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warploom"));
        let nowhere = folder.path("libnvrtc.so");
        command.args(["run", &folder.path("k.cu")]).env("WARPLOOM_NVRTC", nowhere);
        let output = command.output().expect("the command starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run();
    assert!(code == Some(2) && text.contains("k.toml"), "{text}");
    folder.write("k.toml", "entry = \"k\"\ngrid = [1, 1, 1]\nblock = [1, 1, 1]\n");
    let (code, text) = run();
    assert!(code == Some(2) && text.contains("NVRTC") && text.contains("pip install"), "{text}");
}

#[test]
fn exec_says_what_is_wrong() {
    let exec = |args: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_warploom")).arg("exec").args(args).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = exec(&["--config", "huge", "--", "true"]);
    assert!(code == Some(2) && text.contains("huge"), "{text}");
    let (code, _) = exec(&[]);
    assert_eq!(code, Some(2));
}

#[cfg(unix)]
#[test]
fn ends_when_nobody_reads() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warploom"))
        .args(["run", &example("matmul/matmul.toml"), "--functional"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), None, "the signal ends it: {text}");
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn optimize_shows_what_was_gained_and_why() {
    let nbody = example("nbody/nbody.toml");
    let args = ["optimize", &nbody, "--config", "tiny"];
    let with = |more: &[&str]| warploom(&[&args[..], more].concat());
    let text = expect(
        &with(&["--explain", "--events", "2"]),
        0,
        &[
            "accelerate: ",
            "version 0 of block 1",
            "takes the place of block 1",
            "more events",
            "before, entered",
        ],
    );
    assert!(text.contains("LDS.128"), "the code is shown: {text}");
    for explain in [false, true] {
        let output = with(if explain { &["--json", "--explain"] } else { &["--json"] });
        let text = expect(&output, 0, &[]);
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let row = &json.as_object().and_then(|o| o.values().next()).expect("a file")[0];
        let cycles = |key: &str| row[key].as_u64().expect("cycles");
        assert!(cycles("cycles_optimized") < cycles("cycles"));
        assert!(row["optimized"]["versions"].as_array().is_some_and(|v| !v.is_empty()));
        let code = row["explained"][0].as_str();
        assert_eq!(code.is_some_and(|c| c.contains("LDS.128")), explain, "{code:?}");
    }
    // A kernel in which nothing can be gained says so.
    let matmul = example("matmul/matmul.toml");
    let args = ["optimize", &matmul, "--config", "tiny", "--optimizer", "helper", "--optimize", "cta"];
    expect(&warploom(&args), 0, &["level cta, by helper", "no block could be made better"]);
}
