//! Instruction vectors: every form of a directory becomes a kernel, whose results are compared bit for bit.

use crate::inputs::{operand, size};
use driver::problem::Source;
use driver::{CompileOptions, Device, Dim, LaunchOptions, LaunchStats, Module, Timing};
use rayon::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// Operand tuples of a form.
pub const COUNT: u64 = 1024;
/// Threads of a CTA: whole warps, since warp-wide forms use 32 consecutive elements.
const BLOCK: u32 = 256;

/// A row of `forms.json`.
#[derive(Clone, Debug)]
pub struct Form {
    pub text: String,
    pub result: String,
    pub operands: Vec<String>,
    pub seed: u64,
    pub offset: usize,
}

/// How a form fared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Exact,
    /// How many elements differ, and the first of them in words.
    Differs {
        count: usize,
        example: String,
    },
    /// It did not compile or faulted, and why.
    Fails(String),
}

/// The forms and the expected results of a directory.
pub fn load(dir: &Path) -> Result<(Vec<Form>, Vec<u8>), String> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))
    };
    Ok((parse(&read("forms.json")?)?, read("forms.bin")?))
}

/// Reads `forms.json`.
pub fn parse(json: &[u8]) -> Result<Vec<Form>, String> {
    let rows: serde_json::Value = serde_json::from_slice(json).map_err(|e| format!("forms.json: {e}"))?;
    let rows = rows.as_array().ok_or("forms.json is no list of forms")?;
    rows.iter()
        .enumerate()
        .map(|(n, row)| {
            let text = |v: &serde_json::Value| v.as_str().map(str::to_owned);
            let form = || {
                Some(Form {
                    text: text(&row["text"])?,
                    result: text(&row["result"])?,
                    operands: row["operands"].as_array()?.iter().map(text).collect::<Option<_>>()?,
                    seed: row["seed"].as_u64()?,
                    offset: row["offset"].as_u64()? as usize,
                })
            };
            let form = form().ok_or_else(|| {
                format!("forms.json: row {n} needs `text`, `result`, `operands`, `seed` and `offset`")
            })?;
            if let Some(kind) = form.operands.iter().chain([&form.result]).find(|k| size(k).is_none()) {
                return Err(format!("forms.json: row {n} has the unknown type `{kind}`"));
            }
            Ok(form)
        })
        .collect()
}

/// The PTX module with one kernel for a form.
pub fn kernel(form: &Form) -> String {
    kernel_with(form, false)
}

/// The same where it is in rounds: with everything but the way to the element in a loop with a barrier, behind which operands are
/// loaded again. How often is the last parameter.
fn kernel_with(form: &Form, in_rounds: bool) -> String {
    let mut ptx = String::from(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry form(.param .u64 result",
    );
    for k in 0..form.operands.len() {
        let _ = write!(ptx, ", .param .u64 operand{k}");
    }
    if in_rounds {
        ptx.push_str(", .param .u64 rounds");
    }
    ptx.push_str(
        ")\n{\n\t.reg .u32 %i, %j, %n;\n\t.reg .u64 %address, %round, %rounds;\n\t.reg .pred %again;\n",
    );
    let names = form.operands.iter().enumerate().map(|(k, kind)| (k + 1, kind));
    for (k, kind) in names.clone().chain([(0, &form.result)]) {
        // Registers have 16 bits at least.
        let register = match kind.as_str() {
            "p32" => "pred",
            "u8" => "u32",
            "s8" => "s32",
            other => other,
        };
        let _ = writeln!(ptx, "\t.reg .{register} %v{k};");
    }
    ptx.push_str("\tmov.u32 %i, %ctaid.x;\n\tmov.u32 %j, %ntid.x;\n\tmov.u32 %n, %tid.x;\n\tmad.lo.u32 %i, %i, %j, %n;\n");
    if in_rounds {
        ptx.push_str("\tmov.u64 %round, 0;\n\tld.param.u64 %rounds, [rounds];\nnext:\n\tbar.sync 0;\n");
    }
    let place = |ptx: &mut String, param: &str, kind: &str| {
        let bytes = size(kind).unwrap_or(4);
        let _ = writeln!(
            ptx,
            "\tld.param.u64 %address, [{param}];\n\tmad.wide.u32 %address, %i, {bytes}, %address;"
        );
    };
    for (k, kind) in names {
        place(&mut ptx, &format!("operand{}", k - 1), kind);
        let _ = writeln!(ptx, "\tld.global.{kind} %v{k}, [%address];");
    }
    let _ = writeln!(ptx, "\t{}", with_registers(&form.text));
    place(&mut ptx, "result", &form.result);
    match form.result.as_str() {
        "p32" => ptx.push_str("\tselp.u32 %j, 1, 0, %v0;\n\tst.global.u32 [%address], %j;\n"),
        kind => {
            let _ = writeln!(ptx, "\tst.global.{kind} [%address], %v0;");
        }
    }
    if in_rounds {
        ptx.push_str(
            "\tadd.u64 %round, %round, 1;\n\tsetp.lt.u64 %again, %round, %rounds;\n\t@%again bra next;\n",
        );
    }
    ptx.push_str("\tret;\n}\n");
    ptx
}

/// `%0` to `%9` as registers `%v0` to `%v9`.
fn with_registers(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        out.push(c);
        if c == '%' && rest.peek().is_some_and(char::is_ascii_digit) {
            out.push('v');
        }
    }
    out
}

/// How forms are run.
#[derive(Clone, Copy, Default)]
pub struct How<'a> {
    /// Times that each is executed, with barriers in between.
    pub rounds: Option<u64>,
    /// On the timed machine.
    pub timing: Option<Timing<'a>>,
}

/// Runs one form; what its launch did, where it ran.
pub fn run(form: &Form, expected: &[u8], device: &Device, how: How<'_>) -> (Outcome, Option<LaunchStats>) {
    match results(form, device, how) {
        Ok((got, stats)) => (compare(form, expected, &got), Some(stats)),
        Err(why) => (Outcome::Fails(why), None),
    }
}

fn results(form: &Form, device: &Device, how: How<'_>) -> Result<(Vec<u8>, LaunchStats), String> {
    let show = |e: &dyn std::fmt::Display| e.to_string();
    let source = Source::new("form.ptx", kernel_with(form, how.rounds.is_some()).into_bytes());
    let image = driver::compile(&source, &CompileOptions::default()).map_err(|e| show(&e))?;
    let module = Module::load(device, image).map_err(|e| show(&e))?;
    let mut buffers = Vec::new();
    for (k, kind) in std::iter::once(&form.result).chain(&form.operands).enumerate() {
        let bytes = size(kind).unwrap_or(4);
        let buffer = device.alloc(COUNT * bytes as u64).map_err(|e| show(&e))?;
        if k > 0 {
            let seed = form.seed.wrapping_add(k as u64 - 1);
            let data: Vec<u8> = (0..COUNT)
                .flat_map(|i| operand(kind, seed, i).to_le_bytes().into_iter().take(bytes))
                .collect();
            device.write(buffer, &data).map_err(|e| show(&e))?;
        }
        buffers.push(buffer);
    }
    let args: Vec<[u8; 8]> = buffers.iter().chain(&how.rounds).map(|b| b.to_le_bytes()).collect();
    let args: Vec<&[u8]> = args.iter().map(|a| &a[..]).collect();
    let dim = Dim { grid: [COUNT as u32 / BLOCK, 1, 1], block: [BLOCK, 1, 1], shared_bytes: 0 };
    let options = LaunchOptions { threads: 1, timing: how.timing, ..LaunchOptions::default() };
    let launched = module.launch(device, "form", dim, &args, &options).map_err(|e| show(&e));
    let mut got = vec![0; COUNT as usize * size(&form.result).unwrap_or(4)];
    let read = device.read(buffers[0], &mut got).map_err(|e| show(&e));
    for buffer in buffers {
        device.free(buffer).map_err(|e| show(&e))?;
    }
    module.unload(device).map_err(|e| show(&e))?;
    let stats = launched?;
    read?;
    Ok((got, stats))
}

fn compare(form: &Form, expected: &[u8], got: &[u8]) -> Outcome {
    let bytes = size(&form.result).unwrap_or(4);
    let Some(expected) = expected.get(form.offset..).and_then(|e| e.get(..got.len())) else {
        return Outcome::Fails("forms.bin is too short for its results".into());
    };
    let differing: Vec<usize> = (0..COUNT as usize)
        .filter(|i| expected[i * bytes..(i + 1) * bytes] != got[i * bytes..(i + 1) * bytes])
        .collect();
    let Some(&first) = differing.first() else { return Outcome::Exact };
    let hex = |b: &[u8]| b.iter().rev().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    let mut example = format!("element {first}:");
    for (k, kind) in form.operands.iter().enumerate() {
        let value = operand(kind, form.seed.wrapping_add(k as u64), first as u64);
        let _ = write!(example, " %{}={value:#x}", k + 1);
    }
    let at = first * bytes..(first + 1) * bytes;
    let _ = write!(example, " gives {}, expected {}", hex(&got[at.clone()]), hex(&expected[at]));
    Outcome::Differs { count: differing.len(), example }
}

/// Runs all forms, in their order.
pub fn run_all(forms: &[Form], expected: &[u8]) -> Result<Vec<Outcome>, String> {
    forms
        .par_iter()
        .map_init(Device::new, |device, form| match device {
            Ok(device) => Ok(run(form, expected, device, How::default()).0),
            Err(e) => Err(e.to_string()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_become_registers() {
        assert_eq!(
            with_registers("shfl.sync.down.b32 %0|p, %1, 7, 31, -1;"),
            "shfl.sync.down.b32 %v0|p, %v1, 7, 31, -1;"
        );
        assert_eq!(with_registers("mov.u32 %0, %tid.x; 5 % 3"), "mov.u32 %v0, %tid.x; 5 % 3");
    }

    #[test]
    fn bad_tables_are_errors() {
        assert!(parse(b"{}").is_err() && parse(b"[{}]").is_err() && parse(b"no").is_err());
        let row = br#"[{"text": "x", "result": "u128", "operands": [], "seed": 1, "offset": 0}]"#;
        assert!(parse(row).expect_err("a type we do not know").contains("u128"));
    }

    #[test]
    fn differences_name_the_operands() {
        let form = Form {
            text: "add.u16 %0, %1, %2;".into(),
            result: "u16".into(),
            operands: vec!["u16".into(), "u16".into()],
            seed: 1000,
            offset: 0,
        };
        let (mut got, expected) = (vec![0; 2048], vec![0; 2048]);
        assert_eq!(compare(&form, &expected, &got), Outcome::Exact);
        got[7] = 1;
        let Outcome::Differs { count: 1, example } = compare(&form, &expected, &got) else {
            panic!("one element differs");
        };
        assert!(example.starts_with("element 3: %1=") && example.ends_with("gives 0x0100, expected 0x0000"));
        assert!(matches!(compare(&form, &expected[..100], &got), Outcome::Fails(_)));
    }
}
