//! Programs in assembly text, their memory and what they should leave there.
//!
//! A case is a text file:
//! ```text
//! # comment
//! launch 2 1 1 x 64 1 1 shared 128       grid, block, dynamic shared bytes
//! option ordered | local N | stack | limit N
//! buffer out 256                         zeroed bytes
//! buffer in u32 1 2 3                    words; also: ramp COUNT STEP
//! param out                              a buffer's address
//! param 5                                a word; param64 5: a double word
//! code
//! loop:                                  labels are places; `func NAME` starts a function
//!     @P0 BRA loop
//! expect
//! out u32 ...                            what follows is rewritten by BLESS=1
//! ```

// Each test file uses its part.
#![allow(dead_code)]

use isa::Inst;
use isa::image::{Function, Image, Relocation, Symbol};
use simt::cta::CtaState;
use simt::special::Place;
use simt::*;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

pub struct Case {
    pub image: Arc<Image>,
    pub shape: Shape,
    buffers: Vec<(String, Vec<u8>)>,
    params: Vec<Param>,
    limit: u64,
}

enum Param {
    Buffer(String),
    Word(u32),
    Double(u64),
}

/// How to run a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Run { level: Isa, threads: usize },
    Step { level: Isa },
}

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse::<i64>().map(|n| n as u64),
    };
    parsed.unwrap_or_else(|_| panic!("`{text}` is no number"))
}

fn replace_labels(line: &str, labels: &HashMap<String, u32>) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in line.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '_' || c == '.' {
            word.push(c);
            continue;
        }
        match labels.get(&word) {
            Some(pc) => write!(out, "{pc:#x}").expect("write"),
            None => out.push_str(&word),
        }
        word.clear();
        out.push(c);
    }
    out
}

/// Assembles code into an image whose entry is `main`.
pub fn assemble(lines: &[&str]) -> Image {
    let mut labels = HashMap::new();
    let mut starts = vec![("main".to_string(), 0)];
    let mut code = Vec::new();
    for line in lines.iter().map(|l| l.split('#').next().unwrap_or("").trim()).filter(|l| !l.is_empty()) {
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label.to_string(), code.len() as u32);
        } else if let Some(name) = line.strip_prefix("func ") {
            labels.insert(name.to_string(), code.len() as u32);
            starts.push((name.to_string(), code.len() as u32));
        } else {
            code.push(line);
        }
    }
    let code: Vec<Inst> = code
        .iter()
        .map(|l| isa::text::parse(&replace_labels(l, &labels)).unwrap_or_else(|e| panic!("`{l}`: {e}")))
        .collect();
    let mut image = Image { name: "test".into(), code, target: 90, ..Image::default() };
    for (n, (name, start)) in starts.iter().enumerate() {
        let end = starts.get(n + 1).map_or(image.code.len() as u32, |s| s.1);
        let registers =
            image.code.iter().flat_map(|i| i.reads().chain(i.writes())).map(|(r, n)| u32::from(r.0) + n);
        image.functions.push(Function {
            name: name.clone(),
            is_entry: n == 0,
            is_visible: true,
            start: *start,
            end,
            registers: registers.max().unwrap_or(1),
            shared_bytes: 0,
            shared_align: 16,
            local_bytes: 0,
            unbounded_stack: false,
            barriers: 16,
            params: Vec::new(),
            param_bytes: 0,
            max_threads: [0; 3],
            required_threads: [0; 3],
            min_ctas: 0,
            max_registers: 0,
            order_dependent: false,
        });
        // Word n of the loader's bank: the place of function n, so that calls by address reach it.
        image.loader_bank.extend([0; 8]);
        image.loader_relocations.push(Relocation {
            offset: 8 * n as u32,
            size: 8,
            symbol: Symbol::Function(n as u32),
            addend: 0,
            generic: false,
            shift: 0,
        });
    }
    image.validate().expect("a valid image");
    image
}

impl Case {
    pub fn parse(text: &str) -> Case {
        let (mut shape, mut buffers, mut params) = (Shape::new([1; 3], [32, 1, 1]), Vec::new(), Vec::new());
        let (mut ordered, mut local, mut stack, mut limit) = (false, 0, false, 1 << 32);
        let mut lines = text.lines();
        for line in lines.by_ref() {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                ["code"] => break,
                ["launch", gx, gy, gz, "x", bx, by, bz, rest @ ..] => {
                    shape.grid = [gx, gy, gz].map(|n| number(n) as u32);
                    shape.block = [bx, by, bz].map(|n| number(n) as u32);
                    if let ["shared", n] = rest {
                        shape.dynamic_shared = number(n) as u32;
                    }
                }
                ["option", "ordered"] => ordered = true,
                ["option", "local", n] => local = number(n) as u32,
                ["option", "stack"] => stack = true,
                ["option", "limit", n] => limit = number(n),
                ["buffer", name, "u32", values @ ..] => {
                    let bytes = values.iter().flat_map(|v| (number(v) as u32).to_le_bytes()).collect();
                    buffers.push((name.to_string(), bytes));
                }
                ["buffer", name, "f32", values @ ..] => {
                    let bytes = values.iter().flat_map(|v| v.parse::<f32>().expect("a float").to_le_bytes());
                    buffers.push((name.to_string(), bytes.collect()));
                }
                ["buffer", name, "text", ..] => {
                    let text = line.split_once("text ").map_or("", |t| t.1).replace("\\n", "\n");
                    buffers.push((name.to_string(), [text.as_bytes(), &[0]].concat()));
                }
                ["buffer", name, "ramp", count, step] => {
                    let bytes = (0..number(count)).flat_map(|n| ((n * number(step)) as u32).to_le_bytes());
                    buffers.push((name.to_string(), bytes.collect()));
                }
                ["buffer", name, size] => buffers.push((name.to_string(), vec![0; number(size) as usize])),
                ["param", value] if value.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                    params.push(Param::Word(number(value) as u32));
                }
                ["param", name] => params.push(Param::Buffer(name.to_string())),
                ["param64", value] => params.push(Param::Double(number(value))),
                _ => panic!("`{line}` is not understood"),
            }
        }
        let code: Vec<&str> = lines.take_while(|l| l.trim() != "expect").collect();
        let mut image = assemble(&code);
        let main = &mut image.functions[0];
        (main.order_dependent, main.local_bytes, main.unbounded_stack) = (ordered, local, stack);
        Case { image: Arc::new(image), shape, buffers, params, limit }
    }

    /// Runs it and tells what came of it.
    pub fn run(&self, how: How) -> String {
        let memory = Memory::new(1 << 30).expect("memory");
        let program = Program::load(self.image.clone(), &memory, &|_| None).expect("load");
        let mut addresses = HashMap::new();
        for (name, bytes) in &self.buffers {
            let a = memory.alloc(bytes.len() as u64).expect("alloc");
            memory.write(a, bytes).expect("write");
            addresses.insert(name.as_str(), a);
        }
        let mut params: Vec<u8> = Vec::new();
        for p in &self.params {
            let (bytes, size) = match p {
                Param::Buffer(name) => (addresses[name.as_str()].to_le_bytes(), 8),
                Param::Double(x) => (x.to_le_bytes(), 8),
                Param::Word(x) => (u64::from(*x).to_le_bytes(), 4),
            };
            params.resize(params.len().next_multiple_of(size), 0);
            params.extend_from_slice(&bytes[..size]);
        }
        let output = Mutex::new(Vec::new());
        let result = match how {
            How::Run { level, threads } => {
                let sink = |text: &[u8]| output.lock().expect("lock").extend_from_slice(text);
                let options = Options {
                    threads,
                    level,
                    max_instructions: self.limit,
                    output: Some(&sink),
                    ..Options::default()
                };
                simt::run(&program, "main", &self.shape, &params, &memory, &options)
                    .map(|_| ())
                    .map_err(|e| e.to_string())
            }
            How::Step { level } => {
                let (text, result) = self.step(&program, level, &params, &memory);
                *output.lock().expect("lock") = text;
                result
            }
        };
        let mut out = String::new();
        if let Err(e) = result {
            // Addresses depend on where buffers lie.
            let mut e = e;
            for (name, a) in &addresses {
                let size = self.buffers.iter().find(|b| b.0 == *name).map_or(0, |b| b.1.len() as u64);
                for k in (0..=size + 64).rev() {
                    e = e.replace(&format!("{:#x}", a + k), &format!("{name}+{k:#x}"));
                }
            }
            writeln!(out, "error {e}").expect("write");
        }
        let text = output.into_inner().expect("lock");
        for line in String::from_utf8_lossy(&text).lines() {
            writeln!(out, "print {line}").expect("write");
        }
        for (name, before) in &self.buffers {
            let mut bytes = vec![0; before.len()];
            memory.read(addresses[name.as_str()], &mut bytes).expect("read");
            if bytes == *before && !name.starts_with("out") {
                continue;
            }
            writeln!(out, "{name}").expect("write");
            for line in bytes.chunks(32) {
                let words: Vec<String> = line
                    .chunks(4)
                    .map(|w| format!("{:08x}", w.iter().rev().fold(0u32, |v, b| v << 8 | u32::from(*b))))
                    .collect();
                writeln!(out, "    {}", words.join(" ")).expect("write");
            }
        }
        out
    }

    /// Drives the warps one instruction at a time, as a timed machine would.
    fn step(
        &self,
        program: &Program,
        level: Isa,
        params: &[u8],
        memory: &Memory,
    ) -> (Vec<u8>, Result<(), String>) {
        let kernel = program.kernel("main", level).expect("kernel");
        let launch = Launch::new(program, kernel, &self.shape, params, memory).expect("launch");
        let mut bounds = Env::bounds(&launch);
        let mut text = Vec::new();
        let mut steps = 0u64;
        for linear in 0..launch.ctas() {
            let mut warps: Vec<Warp> = (0..launch.warps()).map(|_| Warp::new(&launch)).collect();
            let mut cta =
                CtaState::new(launch.grid, launch.block, launch.shared_bytes, launch.dynamic_shared);
            cta.start(launch.index(linear), Place { sm: (linear % 132) as u32, ..Place::default() });
            for (n, w) in warps.iter_mut().enumerate() {
                w.start(&launch, n as u32);
            }
            while warps.iter().any(|w| !w.is_done()) {
                let mut moved = false;
                for w in &mut warps {
                    let mut env = Env {
                        launch: &launch,
                        memory,
                        bounds: &mut bounds,
                        cta: &mut cta,
                        concurrent: false,
                        time: None,
                        counts: None,
                    };
                    let step = w.step(&self.image.code, &mut env);
                    steps += 1;
                    if steps > self.limit {
                        return (text, Err(format!("more than {} warp instructions", self.limit)));
                    }
                    match step.effect {
                        Effect::Blocked | Effect::Done => {}
                        Effect::Fault(fault) => {
                            text.extend_from_slice(&cta.output);
                            return (text, Err(fault.to_string()));
                        }
                        effect => {
                            check_effect(&self.image.code[step.pc.0 as usize], step.mask, &effect);
                            moved = true;
                        }
                    }
                }
                let mut env = Env {
                    launch: &launch,
                    memory,
                    bounds: &mut bounds,
                    cta: &mut cta,
                    concurrent: false,
                    time: None,
                    counts: None,
                };
                if !moved && !warps.iter_mut().any(|w| w.unblock(&mut env)) {
                    let fault = warps.iter().find_map(|w| w.deadlock(&env)).expect("a warp that waits");
                    return (text, Err(fault.to_string()));
                }
            }
            text.extend_from_slice(&cta.output);
        }
        (text, Ok(()))
    }
}

/// What the table says of an instruction agrees with what executing it reported.
fn check_effect(inst: &Inst, mask: u32, effect: &Effect) {
    let effects = inst.op.row().effects;
    match effect {
        Effect::Memory { is_store, mask: lanes, addresses, size, .. } => {
            assert_eq!(*is_store, effects.has(isa::Effects::WRITES), "{inst}");
            assert_eq!(*lanes, mask, "{inst}");
            for lane in (0..32).filter(|i| mask >> i & 1 != 0) {
                assert_eq!(addresses[lane] % u64::from(*size), 0, "{inst}");
            }
        }
        Effect::Branch { .. } => assert!(effects.has(isa::Effects::JUMPS), "{inst}"),
        Effect::Barrier => assert!(effects.has(isa::Effects::BARRIER), "{inst}"),
        Effect::Exit { lanes } => assert_eq!(*lanes, mask, "{inst}"),
        _ => {}
    }
}

/// Every way to run a case on this host.
pub fn ways() -> Vec<How> {
    let levels: Vec<Isa> = Isa::ALL.into_iter().filter(|l| l.is_available()).collect();
    let mut ways = Vec::new();
    for &level in &levels {
        ways.push(How::Run { level, threads: 1 });
        ways.push(How::Run { level, threads: 3 });
        ways.push(How::Step { level });
    }
    ways
}
