//! Whole programs: PTX compiled at every level and with few registers, run, and compared with the words in the file.
//!
//! A test file is PTX whose kernel takes one 64-bit pointer to the result. Lines that start with `//` say the rest:
//! `// block: N` threads of the CTA (32 if absent), `// words: N` 32-bit words of the result, `// regs: N ...` register
//! limits to try besides the default, `// result:` lines with the expected words (hexadecimal), written by `BLESS=1`.

use std::fmt::Write;
use std::path::Path;

struct Case {
    block: u32,
    words: usize,
    limits: Vec<Option<u32>>,
    expected: Vec<u32>,
}

fn header(text: &str) -> Case {
    let numbers = |key: &str| {
        let lines = text.lines().filter_map(|l| l.strip_prefix(key));
        lines.flat_map(|l| l.split_whitespace()).map(str::to_string).collect::<Vec<_>>()
    };
    let number =
        |key: &str, default: u32| numbers(key).first().map_or(default, |n| n.parse().expect("a number"));
    let mut limits = vec![None];
    limits.extend(numbers("// regs:").iter().map(|n| Some(n.parse().expect("a register limit"))));
    Case {
        block: number("// block:", 32),
        words: number("// words:", 32) as usize,
        limits,
        expected: numbers("// result:").iter().map(|w| u32::from_str_radix(w, 16).expect("a word")).collect(),
    }
}

fn run(name: &str, text: &str, case: &Case, options: &compiler::Options) -> Vec<u32> {
    let module = ptx::to_ir(name, text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let image = compiler::compile(module, options).unwrap_or_else(|e| panic!("{name} {options:?}: {e}"));
    run_image(name, case, image)
}

fn run_image(name: &str, case: &Case, image: isa::Image) -> Vec<u32> {
    let image = isa::Image::from_bytes(&image.to_bytes().expect("encodes")).expect("decodes");
    let entry = image.entries().next().expect("an entry").name.clone();
    let memory = simt::Memory::new(1 << 24).expect("memory");
    let out = memory.alloc(4 * case.words as u64).expect("a buffer");
    memory.fill(out, 4 * case.words as u64, 0).expect("a buffer");
    let program = simt::Program::load(std::sync::Arc::new(image), &memory, &|_| None).expect("loads");
    let shape = simt::Shape::new([1, 1, 1], [case.block, 1, 1]);
    let engine = simt::Options { threads: 1, max_instructions: 10_000_000, ..simt::Options::default() };
    simt::run(&program, &entry, &shape, &out.to_le_bytes(), &memory, &engine)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut bytes = vec![0; 4 * case.words];
    memory.read(out, &mut bytes).expect("a buffer");
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

#[test]
fn programs_give_the_same_words_however_they_are_compiled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("text");
        let mut case = header(&text);
        if std::env::var_os("BLESS").is_some() {
            case.expected = run(&name, &text, &case, &compiler::Options::default());
            let mut new: String = text
                .lines()
                .filter(|l| !l.starts_with("// result:"))
                .fold(String::new(), |s, l| s + l + "\n");
            for row in case.expected.chunks(8) {
                let row = row.iter().fold(String::new(), |s, w| s + &format!(" {w:x}"));
                writeln!(new, "// result:{row}").expect("a string");
            }
            std::fs::write(&path, new).expect("blessed");
        }
        assert_eq!(case.expected.len(), case.words, "{name} says what it expects");
        for &max_registers in &case.limits {
            for opt_level in [3, 0, 1] {
                let options = compiler::Options { opt_level, max_registers, ..compiler::Options::default() };
                assert_eq!(run(&name, &text, &case, &options), case.expected, "{name} {options:?}");
            }
        }
    }
}

/// No pass leaves a branch on a constant, but selection does not depend on that.
#[test]
fn selection_leaves_nothing_behind_branches_that_are_known() {
    for text in [include_str!("run/known_branches.ptx"), include_str!("run/known_loops.ptx")] {
        let case = header(text);
        for opt_level in [0, 1, 3] {
            let module = ptx::to_ir("known", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}"));
            let options = compiler::Options { opt_level, ..compiler::Options::default() };
            let image = compiler::image::build(module, &options, None).expect("compiles");
            assert_eq!(run_image("known", &case, image), case.expected, "level {opt_level}");
        }
    }
}

#[test]
fn long_chains_of_moves_between_words_and_pairs_need_no_stack() {
    let mut text = String::from(
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .u64 o, d;\n.reg .u32 a, b;\n.reg .pred p;\nld.param.u64 o, [out];\nmov.u32 a, %tid.x;\nadd.u32 b, a, 7;\nsetp.lt.u32 p, a, 9;\n",
    );
    for _ in 0..20_000 {
        text += "mov.b64 d, {a, b};\nmov.b64 {b, a}, d;\nnot.pred p, p;\n";
    }
    text +=
        "@p add.u32 a, a, 100;\nmul.wide.u32 d, b, 0;\nadd.u64 o, o, d;\nst.global.u32 [o], a;\nexit;\n}\n";
    let case = Case { block: 1, words: 1, limits: Vec::new(), expected: Vec::new() };
    for opt_level in [0, 3] {
        let options = compiler::Options { opt_level, ..compiler::Options::default() };
        assert_eq!(run("chain", &text, &case, &options), [100]);
    }
}
