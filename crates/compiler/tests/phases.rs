//! Phases of cache accesses: each file of `phases/` is PTX with the accesses it becomes, in `// access:` lines written by
//! `BLESS=1`, and a comment that says why they are marked so. Marks and clusters change no result.

use compiler::{Options, Phases};
use isa::field::Field;
use isa::{Image, Op};
use std::path::Path;

fn compile(name: &str, text: &str, phases: Phases) -> Image {
    let module = ptx::to_ir(name, text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let options = Options { phases, ..Options::default() };
    compiler::compile(module, &options).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Loads, barriers and jumps in the order of the code; dots stand for what is between.
fn accesses(image: &Image) -> String {
    let mut out = String::new();
    let mut between = false;
    for i in &image.code {
        if matches!(i.op, Op::Ldg | Op::Bar | Op::Bra | Op::Exit) {
            if std::mem::take(&mut between) {
                out += "// access: ...\n";
            }
            out += &format!("// access: {i}\n");
        } else {
            between = true;
        }
    }
    out
}

#[test]
fn accesses_are_marked_as_in_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/phases");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() >= 4);
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("text");
        let found = accesses(&compile(&name, &text, Phases::Loads));
        let (listed, program): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|l| l.starts_with("// access:"));
        let join = |lines: &[&str]| lines.iter().fold(String::new(), |s, l| s + l + "\n");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, join(&program) + &found).expect("blessed");
            continue;
        }
        assert_eq!(join(&listed), found, "{name}");
    }
}

#[test]
fn loads_are_left_alone_unless_asked_for() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/phases/dependent.ptx"))
            .expect("text");
    let image = compile("dependent.ptx", &text, Phases::Textures);
    assert!(image.code.iter().any(|i| i.op == Op::Ldg));
    for i in image.code.iter().filter(|i| i.op == Op::Ldg) {
        assert_eq!((i.field(Field::TexStep), i.field(Field::PhaseStep)), (0, 0), "{i}");
    }
}

#[test]
fn marks_survive_the_image_and_the_text() {
    for text in ["LDG.E.TSTEP R4, [R2.64]", "LDG.CONSTANT.E.PSTEP R4, [R2.64+UR4+0x10]"] {
        let inst = isa::text::parse(text).expect("an instruction");
        assert_eq!(inst.to_string(), text);
        let word = inst.encode().expect("a word");
        assert_eq!(isa::Inst::decode(word), Ok(inst));
    }
}
