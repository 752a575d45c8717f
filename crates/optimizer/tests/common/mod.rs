//! Runs kernels functionally: to see their profiles, and with optimized versions in the place of their blocks.

// Each test file uses its part.
#![allow(dead_code)]

use isa::image::{Function, Image};
use isa::{Inst, Op, PredUse, text};
use optimizer::profile::Where;
use optimizer::{Blocks, Limits, Profile, Recorder, Source, Version, Watch, optimize, sites, translate};
use simt::log::apply;
use simt::resident::Access;
use simt::special::{Place, Time};
use simt::{Isa, Launch, Log, Memory, Program, Resident, Shape, Stepped};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A launch and its data.
pub struct Job {
    pub image: Image,
    pub entry: u32,
    pub shape: Shape,
    pub params: Vec<u8>,
}

/// Where a warp is: the block, what it remembers, and values of loads that are to be looked at after the instruction.
struct Watcher {
    block: usize,
    recorder: Recorder,
}

fn time(r: &Resident, w: usize) -> Time {
    let n = r.warp(w).executed + 1;
    Time { clock: n, nanoseconds: n }
}

/// Runs CTAs one after the other, an instruction of each warp in turn, and records what happens in each block.
pub fn profile(job: &Job, blocks: &Blocks, memory: &Memory, program: &Program, ctas: u64) -> Vec<Profile> {
    let mut profiles = vec![Profile::default(); blocks.blocks.len()];
    let mut by_place: Vec<BTreeMap<u32, Vec<Watch>>> = Vec::new();
    for b in &blocks.blocks {
        let mut map: BTreeMap<u32, Vec<Watch>> = BTreeMap::new();
        for s in sites(blocks, b.id) {
            map.entry(s.place).or_default().push(s.watch);
        }
        by_place.push(map);
    }
    let name = &job.image.functions[job.entry as usize].name;
    let kernel = program.kernel(name, Isa::Baseline).expect("kernel");
    let launch = Arc::new(Launch::new(program, kernel, &job.shape, &job.params, memory).expect("launch"));
    let mut log = Log::new();
    let mut access = Access::default();
    for linear in 0..launch.ctas().min(ctas) {
        let mut r = Resident::new(&launch, memory);
        r.start(linear, Place::default());
        let mut watchers: Vec<Watcher> =
            (0..r.warps()).map(|_| Watcher { block: 0, recorder: Recorder::default() }).collect();
        let mut entered = vec![true; r.warps()];
        while !r.finished() {
            let mut moved = false;
            for w in 0..r.warps() {
                let Some(pc) = r.pc(w) else { continue };
                moved = true;
                let inst: Inst = blocks.inst(pc).copied().unwrap_or_else(|| Inst::new(Op::Nop));
                let (mask, active) = (r.mask(w), r.active(w));
                let watcher = &mut watchers[w];
                let (profile, rec) = (&mut profiles[watcher.block], &mut watcher.recorder);
                let here = by_place[watcher.block].get(&pc).cloned().unwrap_or_default();
                let mut loaded = None;
                for watch in &here {
                    match watch {
                        Watch::Entry(values) if std::mem::take(&mut entered[w]) => {
                            rec.enter(profile);
                            for &v in values {
                                if let Where::Register(n) = v {
                                    let lanes = std::array::from_fn(|i| r.warp(w).register(n, i as u32));
                                    rec.value(profile, v, active, &lanes);
                                }
                            }
                        }
                        Watch::Branch => rec.branch(profile, pc, active, mask),
                        Watch::Access { bytes, is_store } if r.access(w, &mut access) => {
                            let lanes = std::array::from_fn(|i| access.address(i as u32));
                            rec.access(profile, pc, mask, &lanes, *bytes, *is_store);
                        }
                        Watch::Loaded { register } => loaded = Some(*register),
                        _ => {}
                    }
                }
                let now = time(&r, w);
                log.token = 0;
                let stepped = r.step(w, now, 0, &mut log).expect("no fault");
                apply(memory, &mut [&mut log]);
                log.answers(|a| assert!(r.deliver(&a)));
                if stepped == Stepped::Later {
                    r.step_alone(w, now, 0, &mut log).expect("no fault");
                }
                if let Some(n) = loaded {
                    let lanes = std::array::from_fn(|i| r.warp(w).register(n, i as u32));
                    rec.value(profile, Where::Loaded(pc), mask, &lanes);
                }
                if optimizer::blocks::is_barrier(&inst)
                    && let Some(b) = blocks.behind(pc)
                {
                    watchers[w].block = b.id as usize;
                    entered[w] = true;
                }
            }
            assert!(moved || r.unblock(), "nothing can run");
        }
    }
    profiles
}

/// Versions of all blocks that can be made better.
pub fn versions(blocks: &Blocks, profiles: &[Profile], limits: &Limits) -> Vec<Version> {
    blocks
        .blocks
        .iter()
        .filter_map(|b| optimize(blocks, b.id, &profiles[b.id as usize], Source::Original, limits))
        .collect()
}

/// The image with versions behind its code, and a jump to each where its block begins.
pub fn patch(image: &Image, entry: u32, blocks: &Blocks, versions: &[Version]) -> Image {
    let mut image = image.clone();
    for v in versions {
        let at = image.code.len() as u32;
        image.code.extend(v.place(at));
        let mut f = image.functions[entry as usize].clone();
        f.name = format!("version_{at}");
        f.is_entry = false;
        (f.start, f.end) = (at, image.code.len() as u32);
        f.registers = f.registers.max(v.registers);
        // A function ends where nothing runs on.
        let mut end = Inst::new(Op::Exit);
        end.guard = PredUse::TRUE;
        image.code.push(end.canonical());
        f.end += 1;
        image.functions.push(f);
        let mut jump = Inst::new(Op::Bra);
        jump.set_target(at + v.entry);
        image.code[blocks.blocks[v.block as usize].entry as usize] = jump.canonical();
        let main = &mut image.functions[entry as usize];
        main.registers = main.registers.max(v.registers);
    }
    image.validate().expect("a valid image");
    image
}

/// Runs a kernel to its end; what a fault said, if there was one.
pub fn run(image: &Image, job: &Job, memory: &Memory) -> Result<(), String> {
    let program = Program::load(Arc::new(image.clone()), memory, &|_| None).expect("load");
    let name = &image.functions[job.entry as usize].name;
    let options = simt::Options { threads: 1, max_instructions: 1 << 26, ..simt::Options::default() };
    simt::run(&program, name, &job.shape, &job.params, memory, &options)
        .map(|_| ())
        .map_err(|e| e.to_string())
}

pub fn blocks_of(job: &Job) -> Blocks {
    translate(&job.image, job.entry).expect("a function")
}

/// Threads of a CTA of a program that is written here.
pub const THREADS: u32 = 64;

/// Assembles lines with labels into an image with one kernel.
pub fn assemble(lines: &[String]) -> Image {
    let mut labels = std::collections::BTreeMap::new();
    let mut code = Vec::new();
    for line in lines {
        match line.strip_suffix(':') {
            Some(label) => drop(labels.insert(label, code.len())),
            None => code.push(line),
        }
    }
    let code: Vec<Inst> = code
        .iter()
        .map(|line| {
            let (head, last) = line.rsplit_once(' ').unwrap_or((line, ""));
            let placed = match labels.get(last) {
                Some(at) => format!("{head} {at:#x}"),
                None => line.to_string(),
            };
            text::parse(&placed).unwrap_or_else(|e| panic!("`{placed}`: {e}"))
        })
        .collect();
    let function = Function {
        shared_bytes: 16 * THREADS + 64,
        shared_align: 16,
        barriers: 1,
        param_bytes: 24,
        ..Function::entry("main", 0..code.len() as u32, 32)
    };
    Image { name: "random".into(), code, functions: vec![function], target: 90, ..Image::default() }
}
