//! How near our code is to NVIDIA's: executed warp instructions and registers against the counters of a real GPU, the mix of
//! instructions against the disassembly, for every kernel of a directory with `kernels/`, `ptx/`, `sass/` and `h200.json`.

use crate::kernels::Kernel;
use driver::launch_file::LaunchFile;
use driver::{CompileOptions, LaunchOptions, Session};
use isa::field::Width;
use isa::{Inst, Op, Unit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Instructions by class: integer, float, memory by width, control, special.
pub type Mix = BTreeMap<&'static str, u64>;

/// One kernel's comparison.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// Warp instructions executed: ours and the GPU's.
    pub executed: (u64, u64),
    /// Registers a thread: ours and the GPU's.
    pub registers: (u32, u32),
    /// Instructions in the program by class: ours, and the disassembly's where there is one.
    pub mix: (Mix, Option<Mix>),
}

impl Row {
    /// Executed instructions against the GPU's, in per cent; more is positive.
    pub fn difference(&self) -> f64 {
        (self.executed.0 as f64 / self.executed.1 as f64 - 1.0) * 100.0
    }
}

fn memory_class(width: Width) -> &'static str {
    match width {
        Width::U8 | Width::S8 | Width::U16 | Width::S16 => "mem<32",
        Width::B32 => "mem32",
        Width::B64 => "mem64",
        Width::B128 => "mem128",
    }
}

/// The class of one of our instructions.
pub fn class(inst: &Inst) -> &'static str {
    match inst.op.row().unit {
        Unit::Alu | Unit::Imad | Unit::Uniform => "integer",
        Unit::Fma | Unit::Half | Unit::Fp64 => "float",
        Unit::Xu => "special",
        Unit::Tex => "mem32",
        Unit::Lsu if matches!(inst.op, Op::Shfl) => "special",
        Unit::Lsu | Unit::Const if inst.op != Op::Membar => memory_class(inst.get()),
        Unit::Misc if matches!(inst.op, Op::S2r | Op::Cs2r) => "special",
        Unit::Lsu | Unit::Const | Unit::Branch | Unit::Misc => "control",
    }
}

/// The class of a disassembled instruction, by its mnemonic.
fn sass_class(opcode: &str) -> Option<&'static str> {
    let mut parts = opcode.split('.');
    let name = parts.next()?;
    let has = |word: &str| opcode.split('.').any(|p| p == word);
    Some(match name {
        "NOP" => return None,
        "LDG" | "STG" | "LDS" | "STS" | "LDL" | "STL" | "LD" | "ST" | "LDC" | "ATOM" | "ATOMG" | "ATOMS"
        | "RED" | "REDG" | "LDSM" | "LDGSTS" => {
            if has("128") {
                "mem128"
            } else if has("64") {
                "mem64"
            } else if has("U8") || has("S8") || has("U16") || has("S16") {
                "mem<32"
            } else {
                "mem32"
            }
        }
        "BRA" | "BRX" | "JMP" | "CALL" | "RET" | "EXIT" | "BSSY" | "BSYNC" | "BREAK" | "BAR" | "WARPSYNC"
        | "MEMBAR" | "ERRBAR" | "CCTL" | "DEPBAR" | "YIELD" | "BPT" | "BMOV" | "NANOSLEEP" | "KILL" => {
            "control"
        }
        "MUFU" | "POPC" | "FLO" | "BREV" | "I2F" | "F2I" | "F2F" | "FRND" | "I2FP" | "SHFL" | "S2R"
        | "S2UR" | "CS2R" | "MATCH" | "REDUX" | "UPOPC" | "UFLO" => "special",
        _ if name.starts_with("HMMA") || name.starts_with("IMMA") || name.starts_with("DMMA") => "special",
        // HFMA2.MMA and IMAD.MOV are how the assembler moves constants and registers when the other pipe is busy.
        "HFMA2" if has("MMA") => "integer",
        _ if name.starts_with('F') || name.starts_with('D') || name.starts_with('H') => "float",
        _ => "integer",
    })
}

/// The mix of a disassembly: lines like `/*0010*/ @P0 FADD R1, R2, R3 ;`. The branch to itself that pads the end does not count.
pub fn sass_mix(text: &str) -> Mix {
    let mut mix = Mix::new();
    for line in text.lines() {
        let line = line.trim_start();
        let Some((at, rest)) = line.strip_prefix("/*").and_then(|l| l.split_once("*/")) else { continue };
        if !at.bytes().all(|b| b.is_ascii_hexdigit()) {
            continue;
        }
        let mut words = rest.split_whitespace().filter(|w| !w.starts_with('@'));
        let (Some(opcode), next) = (words.next(), words.next()) else { continue };
        let to_itself = opcode == "BRA"
            && next
                .is_some_and(|t| t.trim_matches(';').trim_start_matches("0x") == at.trim_start_matches('0'));
        if let (false, Some(class)) = (to_itself, sass_class(opcode.trim_end_matches(';'))) {
            *mix.entry(class).or_default() += 1;
        }
    }
    mix
}

/// Compiles and runs one kernel.
pub fn measure(
    dir: &Path,
    kernel: &Kernel,
    results: &Value,
    options: &CompileOptions,
) -> Result<Row, String> {
    let metrics = &results[&kernel.name]["metrics"];
    let number =
        |key: &str| metrics[key].as_f64().ok_or(format!("h200.json has no {key} for {}", kernel.name));
    let file = LaunchFile::load(&kernel.path).map_err(|p| p.to_string())?;
    let session = Session::new(&file, options).map_err(|p| p.to_string())?;
    let mut ours = 0;
    let mut registers = 0;
    let mut mix = Mix::new();
    for n in 0..file.launches.len() {
        let stats = session.launch(n, &LaunchOptions::default()).map_err(|e| e.to_string())?;
        ours += stats.warp_instructions;
        let Some(module) = session.module(n) else { continue };
        let image = module.image();
        registers = image.find(&file.launches[n].entry).map_or(registers, |f| registers.max(f.registers));
        if n == 0 {
            for inst in &image.code {
                *mix.entry(class(inst)).or_default() += 1;
            }
        }
    }
    let sass = std::fs::read_to_string(dir.join("sass").join(format!("{}.sass", kernel.name))).ok();
    Ok(Row {
        name: kernel.name.clone(),
        executed: (ours, number("smsp__inst_executed.sum")? as u64),
        registers: (registers, number("launch__registers_per_thread")? as u32),
        mix: (mix, sass.map(|text| sass_mix(&text))),
    })
}

const CLASSES: [&str; 8] = ["integer", "float", "mem<32", "mem32", "mem64", "mem128", "control", "special"];

/// The table for people, and its closing line.
pub fn table(rows: &[Row]) -> String {
    let mut out =
        format!("{:<20} {:>11} {:>11} {:>8} {:>9}", "kernel", "executed", "H200", "differ", "registers");
    for class in CLASSES {
        let _ = write!(out, " {class:>9}");
    }
    out.push('\n');
    for r in rows {
        let _ = write!(
            out,
            "{:<20} {:>11} {:>11} {:>+7.1}% {:>9}",
            r.name,
            r.executed.0,
            r.executed.1,
            r.difference(),
            format!("{}/{}", r.registers.0, r.registers.1)
        );
        for class in CLASSES {
            let get = |m: &Mix| m.get(class).copied().unwrap_or(0);
            let cell = match &r.mix.1 {
                Some(theirs) => format!("{}/{}", get(&r.mix.0), get(theirs)),
                None => get(&r.mix.0).to_string(),
            };
            let _ = write!(out, " {cell:>9}");
        }
        out.push('\n');
    }
    out.push_str(&summary(rows));
    out
}

/// `code: mean difference x %, worst NAME y %, registers mean difference z`
pub fn summary(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "code: no kernel was measured\n".into();
    }
    let n = rows.len() as f64;
    let mean = rows.iter().map(|r| r.difference().abs()).sum::<f64>() / n;
    let registers = rows.iter().map(|r| f64::from(r.registers.0.abs_diff(r.registers.1))).sum::<f64>() / n;
    let worst = rows.iter().max_by(|a, b| a.difference().abs().total_cmp(&b.difference().abs()));
    let worst = worst.map_or(String::new(), |r| format!("{} {:+.1} %", r.name, r.difference()));
    format!("code: mean difference {mean:.1} %, worst {worst}, registers mean difference {registers:.1}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disassembly_is_counted_by_class() {
        let mix = sass_mix(
            "        /*0000*/                   LDC R1, c[0x0][0x28] ;  /* 0x00000a00ff017b82 */\n\
             \t/* 0x000fe20000000800 */\n\
             /*0010*/ @P0 EXIT ;\n/*0020*/ LDG.E.128 R4, desc[UR6][R4.64] ;\n/*0030*/ FADD R1, R2, R3 ;\n\
             /*0040*/ MUFU.RSQ R1, R2 ;\n/*0050*/ IMAD.WIDE R2, R3, 0x4, R4 ;\n/*0060*/ BRA 0x60;\n/*0070*/ NOP;\n",
        );
        let expected =
            [("control", 1), ("float", 1), ("integer", 1), ("mem128", 1), ("mem32", 1), ("special", 1)];
        assert_eq!(mix, Mix::from(expected));
    }
}
