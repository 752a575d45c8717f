//! Puts a module together: code of all functions, variables, line table, what entries need.

use crate::analysis::{DomTree, Loops};
use crate::calls::{self, Needs};
use crate::clobbers::Clobbers;
use crate::emit::Code;
use crate::mir::{MFunction, Target};
use crate::passes::Remark;
use crate::passes::explain::Snapshot;
use crate::places::Places;
use crate::{
    CompileError, Options, allocate, balance, converge, emit, mark_phases, merge_loads, merge_stores,
    prepare, schedule, select, uniform,
};
use ir::{FuncId, Function, FunctionKind, Launch, Linkage, LocId, Module};
use isa::image::{Image, LineRow, Param, Relocation, SourceLine, Symbol};
use std::collections::{BTreeMap, HashMap};

/// Registers of an SM, which the threads of a CTA share.
const SM_REGISTERS: u32 = 65536;
/// Fewer registers than the calling convention needs make no sense.
const LEAST_REGISTERS: u32 = 24;

/// Registers that the hardware gives a thread at least.
const SMALLEST_THREAD: u32 = 16;

/// Makes the image; what the back end did to which line goes to the remarks.
pub fn build(
    mut m: Module,
    options: &Options,
    mut remarks: Option<&mut Vec<Remark>>,
) -> Result<Image, CompileError> {
    let mut places = Places::new(&m)?;
    let mut codes: Vec<Option<Code>> = m.functions.iter().map(|_| None).collect();
    let mut needs: Vec<Needs> = vec![Needs::default(); m.functions.len()];
    // Callees first: callers keep what lives across a call where the callee does not write.
    let mut clobbers: Vec<Option<Clobbers>> = vec![None; m.functions.len()];
    for id in calls::callees_first(&m) {
        let mut need = Needs::of(&m, id);
        let remarks = remarks.as_deref_mut();
        let code = function(&mut m, id, &mut places, options, &mut need, &mut clobbers, remarks)?;
        codes[id.index()] = Some(code);
        needs[id.index()] = need;
    }
    let mut image = Image {
        name: m.name.clone(),
        target: m.target,
        files: m.files.clone(),
        const_bytes: places.const_bytes,
        ..Image::default()
    };
    let mut lines = Lines::new(&m);
    let mut starts = vec![0u32; m.functions.len()];
    let mut calls: Vec<(u32, FuncId)> = Vec::new();
    let totals = calls::totals(&m, &needs);
    for (n, code) in codes.into_iter().enumerate() {
        let Some(mut code) = code else { continue };
        let start = image.code.len() as u32;
        starts[n] = start;
        for &at in &code.jumps {
            let i = &mut code.insts[at as usize];
            if let Some(t) = i.target() {
                i.set_target(t + start);
            }
        }
        calls.extend(code.calls.iter().map(|&(at, f)| (at + start, f)));
        for &(offset, place) in &code.table_words {
            let symbol = Symbol::Code(place + start);
            places.loader.relocations.push(Relocation {
                offset,
                size: 4,
                symbol,
                addend: 0,
                generic: false,
                shift: 0,
            });
        }
        lines.add(start, &code.locs);
        image.code.append(&mut code.insts);
        let t = &totals[n];
        image.functions.push(describe(&m.functions[n], start, image.code.len() as u32, t, &places, n));
    }
    for (at, f) in calls {
        image.code[at as usize].set_target(starts[f.index()]);
    }
    (image.lines, image.sources) = (lines.rows, lines.sources);
    image.variables = places.variables;
    image.loader_bank = places.loader.bytes;
    image.loader_relocations = places.loader.relocations;
    if image.functions.is_empty() {
        // A module may hold nothing but variables.
        image.lines.clear();
    }
    image.validate().map_err(|e| CompileError { message: e.0, function: m.name.clone(), line: 0 })?;
    Ok(image)
}

/// Compiles one function.
fn function(
    m: &mut Module,
    id: FuncId,
    places: &mut Places,
    options: &Options,
    need: &mut Needs,
    clobbers: &mut [Option<Clobbers>],
    mut remarks: Option<&mut Vec<Remark>>,
) -> Result<Code, CompileError> {
    let f = &mut m.functions[id.index()];
    if options.opt_level > 0 {
        let merges: [(&str, fn(&mut Function, &Places)); 2] =
            [("merge_loads", merge_loads::run), ("merge_stores", merge_stores::run)];
        for (name, run) in merges {
            let before = remarks.is_some().then(|| Snapshot::of(f));
            run(f, places);
            if let (Some(before), Some(remarks)) = (before, remarks.as_deref_mut()) {
                before.explain(f, name, remarks);
            }
        }
    }
    prepare::prepare(f);
    let convergence = converge::converge(f);
    prepare::split_edges(f);
    debug_assert_eq!(ir::validate(m).map_err(|e| format!("{e}")), Ok(()));
    let f = m.function(id);
    let loops = Loops::new(f, &DomTree::new(f));
    let blocks = || (0..f.blocks.len()).map(ir::Block::new);
    let nesting = select::Nesting {
        depth: blocks().map(|b| loops.innermost(b).map_or(0, |l| loops.get(l).depth)).collect(),
        before_loops: blocks().map(|b| before_loops(&loops, b)).collect(),
    };
    let uses_uniform = options.opt_level > 0 && f.kind == FunctionKind::Entry;
    let mut mir = select::select(m, id, f, places, &convergence, &nesting, uses_uniform)?;
    mir.keeps_order = options.opt_level == 0;
    mir.phases = options.phases;
    for i in mir.blocks.iter_mut().flat_map(|b| &mut b.insts) {
        if let (Some(call), Some(Target::Function(callee))) = (&mut i.call, i.target) {
            call.clobbers = clobbers[callee.index()].clone();
        }
    }
    if uses_uniform {
        uniform::run(&mut mir);
    }
    let limit = register_limit(&f.launch, options);
    let before = remarks.is_some().then(|| stack_accesses(&mir));
    let starts = allocate::merge_copies(&mut mir);
    let allocation = if options.opt_level > 0 {
        balance::run(&mut mir);
        schedule::schedule_and_allocate(&mut mir, limit, starts)
    } else {
        allocate::assign(&mut mir, limit, allocate::Choice::Lowest)
    };
    let allocation = allocation.map_err(|e| CompileError::at(m, f, f.loc, e))?;
    if cfg!(debug_assertions)
        && let Err(e) = allocate::verify(&mir, &allocation)
    {
        return Err(CompileError::at(m, f, f.loc, format!("register allocation is wrong: {e}")));
    }
    if let (Some(before), Some(remarks)) = (before, remarks) {
        explain_spills(f, &before, &stack_accesses(&mir), remarks);
    }
    mark_phases::run(&mut mir, options.phases);
    clobbers[id.index()] = Clobbers::of(&mir, &allocation);
    need.registers = allocation.count;
    need.frame_bytes = allocation.frame_bytes;
    need.shared_bytes = if f.kind == FunctionKind::Entry { places.shared_bytes[id.index()] } else { 0 };
    let mut code = emit::emit(&mir, &allocation, f.kind, f.loc);
    if options.opt_level > 0 {
        schedule::reuse::mark(&mut code.insts);
    }
    Ok(code)
}

/// Loads and stores of local memory by line.
fn stack_accesses(f: &MFunction) -> BTreeMap<LocId, [usize; 2]> {
    let mut lines: BTreeMap<LocId, [usize; 2]> = BTreeMap::new();
    for i in f.blocks.iter().flat_map(|b| &b.insts) {
        match i.inst.op {
            isa::Op::Ldl => lines.entry(i.loc).or_default()[0] += 1,
            isa::Op::Stl => lines.entry(i.loc).or_default()[1] += 1,
            _ => {}
        }
    }
    lines
}

/// What register allocation moved to local memory.
fn explain_spills(
    f: &Function,
    before: &BTreeMap<LocId, [usize; 2]>,
    after: &BTreeMap<LocId, [usize; 2]>,
    remarks: &mut Vec<Remark>,
) {
    for (&loc, &[loads, stores]) in after {
        let [had_loads, had_stores] = before.get(&loc).copied().unwrap_or_default();
        let (loads, stores) = (loads.saturating_sub(had_loads), stores.saturating_sub(had_stores));
        if loads + stores > 0 {
            let message = format!("too few registers: {loads} loads and {stores} stores of spilled values");
            remarks.push(Remark { function: f.name.clone(), loc, pass: "allocate_registers", message });
        }
    }
}

/// The preheader of the outermost loop around a block.
fn before_loops(loops: &Loops, b: ir::Block) -> Option<ir::Block> {
    let mut at = loops.innermost(b)?;
    while let Some(parent) = loops.get(at).parent {
        at = parent;
    }
    loops.get(at).preheader
}

/// Registers a thread of the function may have.
fn register_limit(launch: &Launch, options: &Options) -> u32 {
    let mut limit = isa::Reg::COUNT as u32;
    if let Some(n) = options.max_registers {
        limit = limit.min(n);
    }
    if launch.max_registers > 0 {
        limit = limit.min(launch.max_registers);
    }
    for bounds in [launch.max_threads, launch.required_threads] {
        let threads = bounds.iter().fold(1u32, |n, &t| n.saturating_mul(t.max(1)));
        if bounds != [0; 3] {
            let warps = threads.div_ceil(32).max(1);
            let ctas = launch.min_ctas.max(1);
            // Registers are given out in eights a thread.
            limit = limit.min(SM_REGISTERS / (warps.saturating_mul(32).saturating_mul(ctas)) / 8 * 8);
        }
    }
    limit.max(LEAST_REGISTERS)
}

fn describe(
    f: &Function,
    start: u32,
    end: u32,
    t: &calls::Totals,
    places: &Places,
    n: usize,
) -> isa::image::Function {
    let params: Vec<Param> = f
        .params
        .iter()
        .map(|p| Param { name: p.name.clone(), offset: p.offset, size: p.size, align: p.align })
        .collect();
    let is_entry = f.kind == FunctionKind::Entry;
    isa::image::Function {
        name: f.name.clone(),
        is_entry,
        is_visible: f.linkage != Linkage::Internal,
        start,
        end,
        // An SM gives a thread no fewer.
        registers: if is_entry { t.registers.max(SMALLEST_THREAD) } else { t.registers },
        shared_bytes: if is_entry { places.shared_bytes[n] } else { 0 },
        shared_align: places.shared_align.max(1).next_power_of_two(),
        local_bytes: t.local_bytes,
        unbounded_stack: t.unbounded_stack,
        barriers: t.barriers,
        param_bytes: params.iter().map(|p| p.offset + p.size).max().unwrap_or(0),
        params,
        max_threads: f.launch.max_threads,
        required_threads: f.launch.required_threads,
        min_ctas: f.launch.min_ctas,
        max_registers: f.launch.max_registers,
        order_dependent: t.order_dependent,
    }
}

/// The line table as it grows.
struct Lines<'a> {
    m: &'a Module,
    rows: Vec<LineRow>,
    sources: Vec<SourceLine>,
    known: HashMap<SourceLine, u32>,
}

impl<'a> Lines<'a> {
    fn new(m: &'a Module) -> Self {
        Lines { m, rows: Vec::new(), sources: Vec::new(), known: HashMap::new() }
    }

    fn add(&mut self, start: u32, locs: &[LocId]) {
        let mut last = None;
        for (n, &loc) in locs.iter().enumerate() {
            if last == Some(loc) {
                continue;
            }
            last = Some(loc);
            let source = self.source(loc, 0);
            let row = LineRow { pc: start + n as u32, ptx_line: self.m.location(loc).line, source };
            self.rows.push(row);
        }
    }

    /// Index plus one of a location's source line, after those it is inlined at.
    fn source(&mut self, loc: LocId, depth: u32) -> u32 {
        // Inlining deeper than this is a cycle in the debug information.
        let Some(s) = self.m.location(loc).source.filter(|_| depth < 256) else { return 0 };
        let inlined_at = s.inlined_at.map_or(0, |at| self.source(at, depth + 1));
        if s.file.0 as usize >= self.m.files.len() {
            return 0;
        }
        let line = SourceLine { file: s.file.0, line: s.line, column: s.column, inlined_at };
        if let Some(&n) = self.known.get(&line) {
            return n;
        }
        self.sources.push(line);
        let n = self.sources.len() as u32;
        self.known.insert(line, n);
        n
    }
}
