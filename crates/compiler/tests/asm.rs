//! The code of small programs: each file is PTX with the assembly it becomes in `// asm:` lines, written by `BLESS=1`.

use std::path::Path;

#[test]
fn programs_become_the_code_in_their_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/asm");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("text");
        let module = ptx::to_ir(&name, text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let image = compiler::compile(module, &compiler::Options::default())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut code = String::new();
        for f in &image.functions {
            code += &format!(
                "// asm: {}: registers {} local {} shared {}\n",
                f.name, f.registers, f.local_bytes, f.shared_bytes
            );
            for pc in f.start..f.end {
                code += &format!("// asm:   {pc:04x} {}\n", image.code[pc as usize]);
            }
        }
        let program: String =
            text.lines().filter(|l| !l.starts_with("// asm:")).fold(String::new(), |s, l| s + l + "\n");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, format!("{program}{code}")).expect("blessed");
            continue;
        }
        let expected: String =
            text.lines().filter(|l| l.starts_with("// asm:")).fold(String::new(), |s, l| s + l + "\n");
        assert_eq!(expected, code, "{name}");
    }
}

#[test]
fn lines_of_the_text_are_found_again() {
    let text =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/asm/addresses.ptx")).expect("text");
    let module = ptx::to_ir("addresses.ptx", &text).expect("valid");
    let image = compiler::compile(module, &compiler::Options::default()).expect("compiles");
    let store = image.code.iter().position(|i| i.op == isa::Op::Stg).expect("a store");
    let line = image.place(isa::Pc(store as u32)).ptx_line as usize;
    let text = String::from_utf8(text).expect("text");
    assert!(text.lines().nth(line - 1).is_some_and(|l| l.contains("st.global")), "line {line}");
}

#[test]
fn what_the_order_of_ctas_decides_is_marked() {
    let kernel = |body: &str| {
        let text = format!(
            ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .u64 o;\n.reg .u32 v;\n.reg .f32 f;\nld.param.u64 o, [out];\nmov.u32 v, 1;\nmov.f32 f, 0f3f800000;\n{body}\nexit;\n}}\n"
        );
        let module = ptx::to_ir("k", text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}"));
        let image = compiler::compile(module, &compiler::Options::default()).expect("compiles");
        let entry = image.entries().next().expect("an entry").clone();
        entry.order_dependent
    };
    assert!(!kernel("st.global.u32 [o], v;"));
    assert!(!kernel("red.global.add.u32 [o], v;"));
    assert!(!kernel("atom.global.add.u32 v, [o], 3;"), "the result is not used");
    assert!(kernel("atom.global.add.u32 v, [o], 3; st.global.u32 [o+4], v;"));
    assert!(kernel("red.global.add.f32 [o], f;"));
    assert!(kernel("ld.volatile.global.u32 v, [o]; st.global.u32 [o+4], v;"));
}
