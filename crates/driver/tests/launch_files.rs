//! Launch files: what is read, and which message each mistake gets, with its line.

use driver::element::Element;
use driver::init::Init;
use driver::launch_file::{Arg, LaunchFile};
use driver::problem::Source;
use std::path::Path;

fn parse(text: &str) -> Result<LaunchFile, String> {
    LaunchFile::parse(Source::new("k.toml", text.as_bytes()), Path::new("k.toml")).map_err(|e| e.to_string())
}

const HEAD: &str = "ptx = \"k.ptx\"\nentry = \"k\"\ngrid = [1, 2, 3]\nblock = [32, 1, 1]\n";

#[test]
fn a_launch_is_read() {
    let text = HEAD.to_owned()
        + "shared_bytes = 64\n[[arg]]\nbuffer = \"f32\"\ncount = 4\ninit = { uniform = [0, 1.5], seed = 9 }\nout = true\n\
           [[arg]]\nf16 = 1\n[[arg]]\nbuffer = \"u8\"\nname = \"bytes\"\ninit = { values = [1, 2] }\n\
           [[arg]]\nuse = \"arg0\"\n[[arg]]\nbytes = [7, 8, 9]\n[[arg]]\nu64 = 0xffff_ffff_ffff_ffff\n";
    let file = parse(&text).expect("a good file");
    assert_eq!(file.name, "k");
    let launch = &file.launches[0];
    assert_eq!((launch.grid, launch.block, launch.shared_bytes), ([1, 2, 3], [32, 1, 1], 64));
    assert_eq!(file.buffers[0].init, Init::Uniform { low: 0.0, high: 1.5, seed: 9 });
    assert_eq!((file.buffers[1].element, file.buffers[1].count), (Element::U8, 2));
    assert!(file.buffers[0].out.is_some() && file.buffers[1].out.is_none());
    let args: Vec<&Arg> = launch.args.iter().map(|(a, _)| a).collect();
    assert_eq!(args[1], &Arg::Value { what: "f16".into(), bytes: vec![0, 0x3c] });
    assert_eq!((args[0], args[2], args[3]), (&Arg::Buffer(0), &Arg::Buffer(1), &Arg::Buffer(0)));
    assert_eq!(args[5], &Arg::Value { what: "u64".into(), bytes: vec![0xff; 8] });
}

#[test]
fn launches_in_sequence_share_buffers() {
    let text = "ptx = \"k.ptx\"\n\
        [[launch]]\nentry = \"a\"\ngrid = [1, 1, 1]\nblock = [1, 1, 1]\n\
        [[launch.arg]]\nbuffer = \"i32\"\nname = \"x\"\ncount = 3\n\
        [[launch]]\nptx = \"other.ptx\"\nentry = \"b\"\ngrid = [1, 1, 1]\nblock = [1, 1, 1]\n\
        [[launch.arg]]\nuse = \"x\"\n[[launch.arg]]\nbuffer = \"i32\"\ncount = 1\n";
    let file = parse(text).expect("a good file");
    assert_eq!(file.launches.len(), 2);
    assert_eq!(file.launches[1].program, Path::new("other.ptx"));
    assert_eq!(file.launches[1].args[0].0, Arg::Buffer(0));
    assert_eq!(file.buffers[1].name, "launch1_arg1");
}

#[test]
fn every_mistake_has_its_line_and_a_way_out() {
    let arg = |text: &str| format!("{HEAD}[[arg]]\n{text}\n");
    for (text, expected) in [
        ("entry = ", "k.toml:1:9: error: the launch file is not TOML"),
        ("colour = 1\n", "k.toml:1:1: error: unknown key `colour` in the launch file"),
        (
            "entry = \"k\"\n",
            "k.toml:1:1: error: the launch file has no `grid` (add `grid = ...`: three positive",
        ),
        ("entry = \"k\"\n", "k.toml:1:1: error: the launch names no program (add `ptx = \"FILE.ptx\"`"),
        ("ptx = \"a\"\nsource = \"b\"\n", "both `ptx` and `source`"),
        (&HEAD.replace("[1, 2, 3]", "[1, 2]"), "k.toml:3:8: error: `grid` is an array (write three positive"),
        (&HEAD.replace("[1, 2, 3]", "7"), "k.toml:3:8: error: `grid` is an integer"),
        (
            &HEAD.replace("[1, 2, 3]", "[1, 0, 3]"),
            "k.toml:3:12: error: `grid` is 0 (it must be 1 to 4294967295)",
        ),
        (&HEAD.replace("\"k\"", "7"), "k.toml:2:9: error: `entry` is an integer (write the kernel's name"),
        (
            &HEAD.replace("entry", "enrty"),
            "k.toml:2:1: error: unknown key `enrty` in the launch file (did you mean `entry`?)",
        ),
        (&(HEAD.to_owned() + "shared_bytes = -1"), "k.toml:5:16: error: `shared_bytes` is -1"),
        (
            &(HEAD.to_owned() + "arg = 3"),
            "k.toml:5:7: error: `arg` is an integer (write tables under `[[arg]]`)",
        ),
        (&arg(""), "k.toml:5:1: error: the argument is empty (write a scalar"),
        (&arg("i31 = 4"), "k.toml:6:1: error: `i31` is no kind of argument (did you mean `i32`?)"),
        (&arg("i32 = \"4\""), "k.toml:6:7: error: `i32` is a string (write a number of type i32)"),
        (&arg("i32 = 4\nf32 = 2"), "k.toml:7:1: error: the argument has two values"),
        (&arg("u8 = 256"), "k.toml:6:6: error: 256 does not fit u8, which holds 0 to 255"),
        (&arg("i32 = 1.5"), "k.toml:6:7: error: 1.5 is no integer"),
        (&arg("bytes = [1, 256]"), "k.toml:6:13: error: `bytes` is 256"),
        (&arg("use = \"x\""), "k.toml:6:7: error: there is no buffer `x` (an earlier argument"),
        (
            &arg("buffer = \"f31\"\ncount = 1"),
            "k.toml:6:10: error: `f31` is no element type (the types are u8",
        ),
        (&arg("buffer = \"f32\""), "k.toml:5:1: error: an argument has no `count`"),
        (&arg("buffer = \"f32\"\ncount = 0"), "k.toml:7:9: error: `count` is 0"),
        (&arg("buffer = \"f64\"\ncount = 1000000000000"), "k.toml:5:1: error: the buffer takes"),
        (&arg("buffer = \"f32\"\ncount = 1\nname = \"../x\""), "cannot name a buffer"),
        (
            &arg("buffer = \"f32\"\ncount = 1\n[[arg]]\nbuffer = \"f32\"\nname = \"arg0\"\ncount = 1"),
            "k.toml:8:1: error: two buffers are named `arg0`",
        ),
        (&arg("buffer = \"f32\"\ncount = 1\ninit = 3"), "k.toml:8:8: error: `init` is an integer"),
        (&arg("buffer = \"f32\"\ncount = 1\ninit = {}"), "k.toml:8:8: error: `init` has 0 kinds"),
        (
            &arg("buffer = \"f32\"\ncount = 1\ninit = { fil = 1 }"),
            "unknown key `fil` in `init` (did you mean `fill`?)",
        ),
        (&arg("buffer = \"f32\"\ncount = 1\ninit = { fill = 1, iota = [1, 2] }"), "`init` has 2 kinds"),
        (&arg("buffer = \"f32\"\ncount = 1\ninit = { fill = 1, seed = 2 }"), "unknown key `seed`"),
        (&arg("buffer = \"f32\"\ncount = 1\ninit = { uniform = [0, 1] }"), "`init` has no `seed`"),
        (
            &arg("buffer = \"f32\"\ncount = 1\ninit = { uniform = [0], seed = 1 }"),
            "`uniform` needs two numbers",
        ),
        (
            &arg("buffer = \"i32\"\ncount = 1\ninit = { randint = [4, 4], seed = 1 }"),
            "the first below the second",
        ),
        (
            &arg("buffer = \"i32\"\ncount = 3\ninit = { values = [4, 4] }"),
            "`values` has 2 elements, `count` is 3",
        ),
        (&arg("buffer = \"i32\"\ninit = { values = [] }"), "`values` has no elements"),
        (&arg("buffer = \"i32\"\ninit = { npy = \"none.npy\" }"), "k.toml:7:16: error: cannot read none.npy"),
        (&arg("buffer = \"i32\"\ncount = 1\nout = 3"), "k.toml:8:7: error: `out` is an integer"),
        (&arg("buffer = \"i32\"\ncount = 1\nout = \"/etc/x.npy\""), "is no name for an output"),
        (&arg("buffer = \"i32\"\ncount = 1\nout = \"x.txt\""), "is no name for an output"),
        (&arg("buffer = \"i32\"\ncount = 1\nout = { width = 3 }"), "`width` is for pictures"),
        (
            &arg("buffer = \"i32\"\ncount = 6\nout = { png = \"a.png\", width = 3, height = 3 }"),
            "3 x 3 pixels, the buffer 6",
        ),
        (
            &arg(
                "buffer = \"i32\"\ncount = 6\nout = { png = \"a.png\", width = 3, height = 2, palette = \"pink\" }",
            ),
            "no palette `pink` (the palettes are `gray`",
        ),
        (
            &arg(
                "buffer = \"i32\"\ncount = 6\nout = { png = \"a.png\", width = 3, height = 2, range = [3, 3] }",
            ),
            "`range` is an array",
        ),
        ("launch = []", "the launch file has no launch"),
        ("grid = [1, 1, 1]\n[[launch]]\n", "unknown key `grid`"),
    ] {
        let message = parse(text).expect_err(text);
        assert!(message.contains(expected), "for\n{text}\nexpected {expected}\ngot {message}");
        assert!(message.contains('('), "no way out in {message}");
    }
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text = HEAD.replace("[1, 2, 3]", "1") + "[[arg]]\ni32 = true\n[[arg]]\nbuffer = \"x\"\n";
    let message = parse(&text).expect_err("three mistakes");
    assert_eq!(message.lines().count(), 3, "{message}");
}

#[test]
fn bytes_that_are_no_text() {
    let error = LaunchFile::parse(Source::new("k.toml", *b"entry\n\xff\xfe"), Path::new("k.toml"));
    assert!(
        error
            .expect_err("no text")
            .to_string()
            .starts_with("k.toml:2:1: error: the launch file is not UTF-8")
    );
}
