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

use isa::image::{Function, Image, Relocation, Symbol};
use isa::{Inst, Op};
use simt::log::apply;
use simt::special::{Place, Time};
use simt::sprint::Track;
use simt::*;
use std::collections::{BTreeMap, HashMap};
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
    Run {
        level: Isa,
        threads: usize,
    },
    /// An exchange after so many turns.
    Step {
        level: Isa,
        every: u64,
    },
    /// The same, but warps sprint as far as this place first.
    Sprint {
        level: Isa,
        cut: u32,
    },
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
            is_entry: n == 0,
            shared_align: 16,
            barriers: 16,
            ..Function::entry(name.as_str(), *start..end, registers.max().unwrap_or(1))
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
            How::Step { level, every } => {
                let (text, result) = self.step(&program, level, (every, None), &params, &memory);
                *output.lock().expect("lock") = text;
                result
            }
            How::Sprint { level, cut } => {
                let (text, result) = self.step(&program, level, (7, Some(cut)), &params, &memory);
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

    /// Drives the warps one instruction at a time, as a timed machine would: each SM every warp in turn, and an exchange
    /// after every `every` turns.
    fn step(
        &self,
        program: &Program,
        level: Isa,
        (every, cut): (u64, Option<u32>),
        params: &[u8],
        memory: &Memory,
    ) -> (Vec<u8>, Result<(), String>) {
        let kernel = program.kernel("main", level).expect("kernel");
        let launch = Launch::new(program, kernel, &self.shape, params, memory).expect("launch");
        let launch = std::sync::Arc::new(launch);
        let mut sms: Vec<Sm> = (0..SMS)
            .map(|_| Sm {
                log: Log::new(),
                residents: Vec::new(),
                text: Vec::new(),
                waiting: Vec::new(),
                cut,
                track: Track::default(),
                ahead: BTreeMap::new(),
            })
            .collect();
        let mut next = 0;
        let mut text = BTreeMap::new();
        let mut error = None;
        for cycle in 0.. {
            let mut idle = true;
            for sm in &mut sms {
                let room = RESIDENTS.saturating_sub(sm.residents.len());
                for _ in 0..room.min((launch.ctas() - next) as usize) {
                    let mut r = Resident::new(&launch, memory);
                    r.start(next, Place { sm: (next % 132) as u32, ..Place::default() });
                    next += 1;
                    sm.residents.push(r);
                }
                match sm.turn(&self.image.code, cycle) {
                    Ok(stepped) => idle &= !stepped,
                    Err(e) => error = error.or(Some(e)),
                }
            }
            if cycle % every == 0 || idle || error.is_some() {
                apply(memory, &mut sms.iter_mut().map(|sm| &mut sm.log).collect::<Vec<_>>());
                for sm in &mut sms {
                    error = error.or(sm.exchanged(cycle).err());
                }
            }
            for sm in &mut sms {
                text.extend(sm.text.drain(..));
            }
            let executed = sms.iter().flat_map(|sm| &sm.residents).map(|r| r.executed()).sum::<u64>();
            if executed > self.limit {
                error = error.or(Some(format!("more than {} warp instructions", self.limit)));
            }
            let over =
                next == launch.ctas() && sms.iter().all(|sm| sm.residents.is_empty() && sm.log.is_empty());
            if over || error.is_some() {
                break;
            }
        }
        (text.into_values().flatten().collect(), error.map_or(Ok(()), Err))
    }
}

/// SMs and CTAs in each.
const SMS: usize = 3;
const RESIDENTS: usize = 3;

struct Sm<'l> {
    log: Log,
    residents: Vec<Resident<'l>>,
    text: Vec<(u64, Vec<u8>)>,
    /// Warps (resident and number) that have to wait for the exchange, and whether to execute an instruction.
    waiting: Vec<(usize, usize, bool)>,
    /// How far warps sprint, and of each (CTA and number) the next instruction that it executed so and how many there are.
    cut: Option<u32>,
    track: Track,
    ahead: BTreeMap<(u64, usize), (u32, u32)>,
}

impl Sm<'_> {
    /// Every warp one instruction; whether one was executed.
    fn turn(&mut self, code: &[Inst], cycle: u64) -> Result<bool, String> {
        let mut any = false;
        let mut access = simt::resident::Access::default();
        for (n, r) in self.residents.iter_mut().enumerate() {
            let mut moved = false;
            for w in 0..r.warps() {
                if self.waiting.iter().any(|&(r, v, _)| (r, v) == (n, w)) {
                    moved = true;
                    continue;
                }
                if let (Some(cut), Some(pc)) = (self.cut, r.pc(w)) {
                    let ahead = self.ahead.entry((r.linear(), w)).or_insert((pc, 0));
                    if r.warp(w).executed == 0 {
                        let end = cut.min(code.len() as u32 - 1);
                        *ahead = (pc, r.sprint(w, end, &mut self.track, &mut self.log, |_| ()));
                    }
                    if ahead.1 > 0 {
                        let inst = &code[ahead.0 as usize];
                        if matches!(inst.op, Op::Ldg | Op::Stg) {
                            r.touched(w, cycle, &mut access, &mut self.log, |_| ());
                            check_access(inst, access.mask, &access);
                        }
                        *ahead = (ahead.0 + 1, ahead.1 - 1);
                        (any, moved) = (true, true);
                        continue;
                    }
                }
                let Some(pc) = r.pc(w) else { continue };
                moved = true;
                let time = time(r, w);
                let touches = r.access(w, &mut access);
                let (mask, active) = (r.mask(w), r.active(w));
                assert!(mask & !active == 0 && active & !r.live(w) == 0);
                self.log.token = n as u32;
                let stepped = r.step(w, time, cycle, &mut self.log).map_err(|fault| {
                    self.text.push((r.linear(), r.take_output()));
                    fault.to_string()
                })?;
                any |= stepped != Stepped::Later;
                if stepped == Stepped::Next {
                    assert_eq!((r.pc(w), r.active(w)), (Some(pc + 1), active));
                }
                let inst = &code[pc as usize];
                // Lanes that wait for something of the exchange, atomics' results among it.
                let is_atomic = matches!(inst.op, Op::Atomg | Op::Atom);
                if stepped == Stepped::Later || is_atomic {
                    self.waiting.push((n, w, stepped == Stepped::Later));
                }
                if touches && stepped != Stepped::Later {
                    check_access(inst, mask, &access);
                }
            }
            if !moved && !r.finished() && !r.unblock() {
                self.text.push((r.linear(), r.take_output()));
                return Err(r.deadlock().expect("a warp that waits").to_string());
            }
        }
        Ok(any)
    }

    /// Results of atomics arrive; what the machine shares can be changed; CTAs that ended leave.
    fn exchanged(&mut self, cycle: u64) -> Result<(), String> {
        let residents = &mut self.residents;
        self.log.answers(|a| assert!(residents[a.token() as usize].deliver(&a)));
        for (n, w, later) in std::mem::take(&mut self.waiting) {
            let r = &mut residents[n];
            if later {
                let time = time(r, w);
                let stepped = r.step_alone(w, time, cycle, &mut self.log).map_err(|f| f.to_string())?;
                assert_ne!(stepped, Stepped::Later);
            }
        }
        self.residents.retain_mut(|r| {
            if r.finished() {
                self.text.push((r.linear(), r.take_output()));
            }
            !r.finished()
        });
        Ok(())
    }
}

/// As functional runs have it: a cycle an instruction.
fn time(r: &Resident, w: usize) -> Time {
    let n = r.warp(w).executed + 1;
    Time { clock: n, nanoseconds: n }
}

/// What an access was said to be agrees with the instruction.
fn check_access(inst: &Inst, mask: u32, access: &simt::resident::Access) {
    assert_eq!(access.mask, mask, "{inst}");
    assert_eq!(access.global | access.shared | access.local, mask, "{inst}");
    for lane in (0..32).filter(|i| mask >> i & 1 != 0) {
        assert_eq!(access.address(lane) % u64::from(access.size), 0, "{inst}");
        let is_global = access.address(lane) >= isa::abi::GLOBAL_BASE;
        assert_eq!(is_global, access.global >> lane & 1 != 0, "{inst}");
    }
}

/// Every way to run a case on this host.
pub fn ways() -> Vec<How> {
    let levels: Vec<Isa> = Isa::ALL.into_iter().filter(|l| l.is_available()).collect();
    let mut ways = Vec::new();
    for (n, &level) in levels.iter().enumerate() {
        ways.push(How::Run { level, threads: 1 });
        ways.push(How::Run { level, threads: 3 });
        // All on one level, the others in turn.
        for every in [1, 7, 64].into_iter().filter(|&k| n == 0 || [64, 1, 7][n] == k) {
            ways.push(How::Step { level, every });
        }
    }
    ways
}
