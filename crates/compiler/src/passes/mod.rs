//! The middle end: passes over `ir`, each a file with one entry, and the one list that orders them.
//!
//! The order is part of the contract with the hardware's results: fusing `mul` and `add` works on what is left after
//! copies, dead code and constants are gone and loops are unrolled, and before equal products are merged. What brings the
//! code near that of NVIDIA's assembler without touching a float comes after it.

pub mod aggregate_atomics;
pub mod contract;
mod edit;
pub mod eliminate_common_subexpressions;
pub mod evaluate;
pub mod expand_approx;
pub mod expand_division;
pub mod explain;
pub mod fold_constants;
pub mod fold_offsets;
pub mod hoist_invariants;
pub mod predicate_branches;
pub mod promote_slots;
pub mod reduce_float_inductions;
pub mod remove_dead_code;
pub mod reuse_loads;
pub mod rotate_loops;
pub mod simplify_bits;
pub mod simplify_cfg;
pub mod sink_invariants;
pub mod unroll;

use explain::Snapshot;
use ir::{Block, Function, LocId, Module};

/// How much work the passes do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum OptLevel {
    /// Only what the back end needs.
    O0,
    /// Everything but unrolling.
    O1,
    O2,
    #[default]
    O3,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassOptions {
    pub opt_level: OptLevel,
    /// Fuse `mul` and `add` without rounding modifiers.
    pub fmad: bool,
}

impl Default for PassOptions {
    fn default() -> Self {
        PassOptions { opt_level: OptLevel::default(), fmad: true }
    }
}

/// Something a pass decided, for people who ask why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    pub function: String,
    pub loc: LocId,
    pub pass: &'static str,
    pub message: String,
}

/// What passes know besides the function.
pub struct Context<'a> {
    pub options: PassOptions,
    /// Headers of loops that unrolling made, by function: contraction treats them unlike loops it left alone.
    pub unrolled: Vec<Block>,
    remarks: Option<&'a mut Vec<Remark>>,
    pass: &'static str,
}

impl Context<'_> {
    /// Records a decision when somebody asked for them.
    pub fn remark(&mut self, f: &Function, loc: LocId, message: impl FnOnce() -> String) {
        let pass = self.pass;
        if let Some(remarks) = &mut self.remarks {
            remarks.push(Remark { function: f.name.clone(), loc, pass, message: message() });
        }
    }
}

struct Pass {
    name: &'static str,
    run: Run,
    /// The least level that runs it.
    level: OptLevel,
}

enum Run {
    /// On one function after the other.
    Function(fn(&mut Function, &mut Context)),
    /// On the module, to which it may add functions.
    Module(fn(&mut Module)),
}

const fn pass(name: &'static str, run: fn(&mut Function, &mut Context), level: OptLevel) -> Pass {
    Pass { name, run: Run::Function(run), level }
}

const PASSES: &[Pass] = &[
    pass("fold_constants", fold_constants::run, OptLevel::O1),
    pass("simplify_cfg", simplify_cfg::run, OptLevel::O1),
    pass("fold_constants", fold_constants::run, OptLevel::O1),
    pass("remove_dead_code", remove_dead_code::run, OptLevel::O1),
    pass("rotate_loops", rotate_loops::run, OptLevel::O1),
    pass("fold_constants", fold_constants::run, OptLevel::O1),
    pass("simplify_cfg", simplify_cfg::run, OptLevel::O1),
    pass("remove_dead_code", remove_dead_code::run, OptLevel::O1),
    pass("reduce_float_inductions", reduce_float_inductions::run, OptLevel::O1),
    pass("unroll", unroll::run, OptLevel::O2),
    pass("fold_constants", fold_constants::run, OptLevel::O1),
    pass("simplify_cfg", simplify_cfg::run, OptLevel::O1),
    pass("expand_approx", expand_approx::run, OptLevel::O0),
    pass("fold_constants", fold_constants::run, OptLevel::O1),
    pass("remove_dead_code", remove_dead_code::run, OptLevel::O1),
    pass("contract", contract::run, OptLevel::O1),
    pass("expand_approx", expand_approx::run_last, OptLevel::O0),
    Pass { name: "expand_division", run: Run::Module(expand_division::run), level: OptLevel::O0 },
    pass("eliminate_common_subexpressions", eliminate_common_subexpressions::run, OptLevel::O1),
    pass("promote_slots", promote_slots::run, OptLevel::O1),
    pass("remove_dead_code", remove_dead_code::run, OptLevel::O1),
    pass("simplify_bits", simplify_bits::run, OptLevel::O1),
    pass("fold_constants", fold_constants::run, OptLevel::O1),
    pass("simplify_cfg", simplify_cfg::run, OptLevel::O1),
    pass("remove_dead_code", remove_dead_code::run, OptLevel::O1),
    pass("fold_offsets", fold_offsets::run, OptLevel::O1),
    pass("eliminate_common_subexpressions", eliminate_common_subexpressions::run, OptLevel::O1),
    pass("reuse_loads", reuse_loads::run, OptLevel::O1),
    pass("hoist_invariants", hoist_invariants::run, OptLevel::O1),
    pass("predicate_branches", predicate_branches::run, OptLevel::O1),
    pass("aggregate_atomics", aggregate_atomics::run, OptLevel::O1),
    pass("sink_invariants", sink_invariants::run, OptLevel::O2),
    pass("remove_dead_code", remove_dead_code::run, OptLevel::O1),
];

/// Runs all passes on all functions of a valid module.
pub fn run(module: &mut Module, options: &PassOptions) {
    run_passes(module, options, None);
}

/// The same, and what the passes decided and why.
pub fn run_explained(module: &mut Module, options: &PassOptions) -> Vec<Remark> {
    let mut remarks = Vec::new();
    run_passes(module, options, Some(&mut remarks));
    remarks
}

fn run_passes(module: &mut Module, options: &PassOptions, mut remarks: Option<&mut Vec<Remark>>) {
    let mut unrolled: Vec<Vec<Block>> = vec![Vec::new(); module.functions.len()];
    for pass in PASSES.iter().filter(|p| options.opt_level >= p.level) {
        match pass.run {
            Run::Module(run) => {
                let before: Vec<Snapshot> = match remarks {
                    Some(_) => module.functions.iter().map(Snapshot::of).collect(),
                    None => Vec::new(),
                };
                run(module);
                if let Some(remarks) = remarks.as_deref_mut() {
                    for (before, f) in before.iter().zip(&module.functions) {
                        before.explain(f, pass.name, remarks);
                    }
                }
                unrolled.resize(module.functions.len(), Vec::new());
            }
            Run::Function(run) => {
                for (f, unrolled) in module.functions.iter_mut().zip(&mut unrolled) {
                    if f.is_declaration {
                        continue;
                    }
                    let before = remarks.as_ref().map(|r| (Snapshot::of(f), r.len()));
                    let mut context = Context {
                        options: *options,
                        unrolled: std::mem::take(unrolled),
                        remarks: remarks.as_deref_mut(),
                        pass: pass.name,
                    };
                    run(f, &mut context);
                    *unrolled = context.unrolled;
                    // A pass that has nothing to say is spoken for.
                    if let (Some((before, said)), Some(remarks)) = (before, remarks.as_deref_mut())
                        && remarks.len() == said
                    {
                        before.explain(f, pass.name, remarks);
                    }
                }
            }
        }
        if cfg!(debug_assertions)
            && let Err(e) = ir::validate(module)
        {
            panic!("{} made {e}\n{}", pass.name, ir::print::module(module));
        }
    }
}
