//! `warploom disasm`: an image's machine code with its source lines.

use crate::End;
use crate::compile::write_text;
use crate::explain::Explanation;
use driver::compile::read_program;
use driver::{Image, Problem};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// The image, as `warploom compile` writes it.
    #[arg(value_name = "IMAGE")]
    file: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), End> {
    let source = read_program(&arguments.file)?;
    if !Image::is_image(&source.bytes) {
        return Err(Problem::new(format!("{} is no program image", source.name))
            .help("for PTX, use `warploom compile --emit asm`")
            .into());
    }
    let image = driver::compile(&source, &Default::default())?;
    let text = match arguments.json {
        true => format!("{:#}\n", json(&image)),
        false => listing(&image, Explanation::default()),
    };
    write_text(None, &text)
}

/// What a function needs, in one line.
pub fn needs(f: &driver::image::Function) -> String {
    let mut text = format!(
        "{}: {} instructions, {} registers, {} bytes shared, {} bytes local, {} barriers",
        f.name,
        f.end - f.start,
        f.registers,
        f.shared_bytes,
        f.local_bytes,
        f.barriers
    );
    if f.unbounded_stack {
        text += ", stack grows";
    }
    if f.order_dependent {
        text += ", depends on the order of CTAs";
    }
    text
}

/// Where an instruction comes from, in words.
fn origin(image: &Image, pc: u32) -> String {
    let place = image.place(driver::Pc(pc));
    let mut text = String::new();
    for (n, (file, line, _)) in place.frames.iter().enumerate() {
        let _ = write!(text, "{}{file}:{line}", if n > 0 { ", inlined at " } else { "" });
    }
    if place.ptx_line > 0 {
        let _ = write!(text, "{}PTX {}", if text.is_empty() { "" } else { " | " }, place.ptx_line);
    }
    text
}

/// The whole image as text, with what is known about its making.
pub fn listing(image: &Image, mut explanation: Explanation) -> String {
    let mut out = String::new();
    for f in &image.functions {
        let _ = writeln!(out, "// {} {}", if f.is_entry { "kernel" } else { "function" }, needs(f));
        for p in &f.params {
            let _ = writeln!(out, "//   parameter {} at {:#x}, {} bytes", p.name, p.offset, p.size);
        }
        let lines: BTreeSet<u32> = (f.start..f.end).map(|pc| image.place(driver::Pc(pc)).ptx_line).collect();
        out += &explanation.without_code(&f.name, &lines);
        let _ = writeln!(out, "{}:", f.name);
        let mut last = String::new();
        for pc in f.start..f.end {
            let from = origin(image, pc);
            if from != last {
                let _ = writeln!(out, "        // {from}");
                last = from;
                for note in explanation.take(&f.name, image.place(driver::Pc(pc)).ptx_line) {
                    let _ = writeln!(out, "        //   {note}");
                }
            }
            if let Some(inst) = image.code.get(pc as usize) {
                let _ = writeln!(out, "  {pc:04x}  {inst}");
            }
        }
        out.push('\n');
    }
    for v in &image.variables {
        let _ = writeln!(out, "// variable {}: {} bytes, {:?}", v.name, v.size, v.space);
    }
    out + &explanation.summary()
}

pub fn function_json(f: &driver::image::Function) -> Value {
    json!({
        "name": f.name, "entry": f.is_entry, "instructions": f.end - f.start, "registers": f.registers,
        "shared_bytes": f.shared_bytes, "local_bytes": f.local_bytes, "barriers": f.barriers,
        "parameters": f.params.iter().map(|p| json!({ "name": p.name, "offset": p.offset, "size": p.size })).collect::<Vec<_>>(),
        "order_dependent": f.order_dependent,
    })
}

pub fn json(image: &Image) -> Value {
    let functions: Vec<Value> = image
        .functions
        .iter()
        .map(|f| {
            let code: Vec<Value> = (f.start..f.end)
                .filter_map(|pc| {
                    let place = image.place(driver::Pc(pc));
                    let source = place.frames.first().map(|(file, line, _)| format!("{file}:{line}"));
                    let text = image.code.get(pc as usize)?.to_string();
                    Some(json!({ "pc": pc, "text": text, "ptx_line": place.ptx_line, "source": source }))
                })
                .collect();
            let mut row = function_json(f);
            row["code"] = code.into();
            row
        })
        .collect();
    json!({ "name": image.name, "functions": functions })
}
