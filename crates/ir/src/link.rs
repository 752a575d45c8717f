//! Several modules to one: names that modules share become one function or variable.
//!
//! # Rules
//! - A name that is visible may be defined once; weak definitions give way to it, and of several weak ones the first counts.
//! - Of common variables the largest counts.
//! - Declarations become the definition, or stay one declaration where nobody defines the name.
//! - Internal names belong to their module.
//! - Declarations may name more or fewer results than the definition gives, as C allows where they are not used: results that
//!   nobody gives are undefined. Parameters must agree.

use crate::entity::{FuncId, GlobalId, LocId};
use crate::function::{Function, FunctionKind, ValueDef};
use crate::module::{FileId, Global, GlobalSpace, Linkage, Module, SymbolRef};
use crate::op::{AddrOf, Op};
use crate::types::Type;
use std::collections::HashMap;
use std::fmt;

/// Why modules do not go together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// Defined by both modules.
    Twice { name: String, first: String, second: String },
    /// Parameters or results of a function differ.
    Signature { name: String, module: String },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LinkError::Twice { name, first, second } => {
                write!(f, "`{name}` is defined in {first} and in {second}")
            }
            LinkError::Signature { name, module } => {
                write!(f, "{module} declares `{name}` with other parameters than its definition has")
            }
        }
    }
}

impl std::error::Error for LinkError {}

/// What counts when a name is met again: the highest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Declared,
    Common,
    Weak,
    Defined,
}

fn function_strength(f: &Function) -> Strength {
    match f.linkage {
        _ if f.is_declaration => Strength::Declared,
        Linkage::Weak => Strength::Weak,
        _ => Strength::Defined,
    }
}

fn global_strength(g: &Global) -> Strength {
    match g.linkage {
        Linkage::Extern => Strength::Declared,
        Linkage::Common => Strength::Common,
        Linkage::Weak => Strength::Weak,
        _ => Strength::Defined,
    }
}

/// New numbers of a module's things.
struct Renumber {
    functions: Vec<FuncId>,
    globals: Vec<GlobalId>,
    first_location: u32,
}

impl Renumber {
    fn location(&self, id: LocId) -> LocId {
        // Number 0 is nowhere in every module.
        if id.0 == 0 { id } else { LocId(id.0 + self.first_location - 1) }
    }

    fn function(&self, f: &mut Function) {
        f.loc = self.location(f.loc);
        for inst in &mut f.insts {
            inst.loc = self.location(inst.loc);
            match &mut inst.op {
                Op::Call(id) | Op::Addr(AddrOf::Function(id), _) => *id = self.functions[id.index()],
                Op::Addr(AddrOf::Global(id), _) => *id = self.globals[id.index()],
                _ => {}
            }
        }
        for block in &mut f.blocks {
            block.term_loc = self.location(block.term_loc);
        }
    }

    fn global(&self, g: &mut Global) {
        g.loc = self.location(g.loc);
        for piece in &mut g.pieces {
            piece.symbol = match piece.symbol {
                SymbolRef::Global(id) => SymbolRef::Global(self.globals[id.index()]),
                SymbolRef::Function(id) => SymbolRef::Function(self.functions[id.index()]),
            };
        }
    }
}

/// Whether a caller that knows one can call the other.
fn is_compatible(a: &Function, b: &Function) -> bool {
    let types = |f: &Function| f.param_values.iter().map(|&v| f.ty(v)).collect::<Vec<_>>();
    let same_results = a.results.iter().zip(&b.results).all(|(a, b)| a == b);
    a.kind == FunctionKind::Entry || (same_results && types(a) == types(b))
}

/// Gives calls the results of the function that is called in the end.
fn adapt_calls(m: &mut Module) {
    let signatures: Vec<Vec<Type>> = m.functions.iter().map(|f| f.results.clone()).collect();
    for f in &mut m.functions {
        for b in 0..f.blocks.len() {
            let mut n = 0;
            while n < f.blocks[b].insts.len() {
                let i = f.blocks[b].insts[n];
                n += 1;
                let inst = f.inst(i);
                let Op::Call(callee) = inst.op else { continue };
                if inst.guard.is_some() {
                    // Front ends branch around calls; whatever else does not fit is the validator's to say.
                    continue;
                }
                let wanted = &signatures[callee.index()];
                let (have, loc) = (inst.results.len(), inst.loc);
                for k in wanted.len()..have {
                    let value = f.inst(i).results[k];
                    let ty = f.ty(value);
                    let undefined = f.make_inst(Op::Undef, &[], &[ty], None, loc);
                    // The instruction makes the value that the call does not.
                    let fresh = std::mem::replace(&mut f.inst_mut(undefined).results[0], value);
                    f.values[fresh.index()].1 = ValueDef::None;
                    f.values[value.index()].1 = ValueDef::Inst(undefined, 0);
                    f.blocks[b].insts.insert(n - 1, undefined);
                    n += 1;
                }
                f.inst_mut(i).results.truncate(wanted.len());
                for (k, &ty) in wanted.iter().enumerate().skip(have) {
                    let value = f.new_value(ty, ValueDef::Inst(i, k as u32));
                    f.inst_mut(i).results.push(value);
                }
            }
        }
    }
}

/// Links modules. The result has the first one's name.
pub fn link(modules: Vec<Module>) -> Result<Module, LinkError> {
    let mut out = Module { locations: vec![Default::default()], ..Module::default() };
    // By name: place in the result, and the module it came from.
    let mut functions: HashMap<String, (FuncId, usize)> = HashMap::new();
    let mut globals: HashMap<String, (GlobalId, usize)> = HashMap::new();
    let names: Vec<String> = modules.iter().map(|m| m.name.clone()).collect();
    let twice = |name: &str, first: usize, second: usize| LinkError::Twice {
        name: name.to_owned(),
        first: names[first].clone(),
        second: names[second].clone(),
    };
    for (n, mut m) in modules.into_iter().enumerate() {
        if n == 0 {
            (out.name, out.address_bits) = (m.name.clone(), m.address_bits);
        }
        out.target = out.target.max(m.target);
        let mut new =
            Renumber { functions: vec![], globals: vec![], first_location: out.locations.len() as u32 };
        let first_file = out.files.len() as u32;
        out.files.append(&mut m.files);
        for mut location in m.locations.into_iter().skip(1) {
            if let Some(source) = &mut location.source {
                source.file = FileId(source.file.0 + first_file);
                source.inlined_at = source.inlined_at.map(|id| new.location(id));
            }
            out.locations.push(location);
        }
        // First the numbers, then what uses them.
        let mut taken_functions = Vec::new();
        for f in m.functions {
            let known = functions.get(&f.name).copied().filter(|_| f.linkage != Linkage::Internal);
            let id = match known {
                None => {
                    let id = FuncId::new(out.functions.len());
                    if f.linkage != Linkage::Internal || f.is_declaration {
                        functions.insert(f.name.clone(), (id, n));
                    }
                    out.functions.push(Function::new(f.name.clone(), f.kind));
                    taken_functions.push((id, f));
                    id
                }
                Some((id, first)) => {
                    let there = &out.functions[id.index()];
                    if !is_compatible(there, &f) {
                        return Err(LinkError::Signature { name: f.name, module: names[n].clone() });
                    }
                    match (function_strength(there), function_strength(&f)) {
                        (Strength::Defined, Strength::Defined) => return Err(twice(&f.name, first, n)),
                        (old, now) if now > old => {
                            functions.insert(f.name.clone(), (id, n));
                            taken_functions.push((id, f));
                        }
                        _ => {}
                    }
                    id
                }
            };
            new.functions.push(id);
        }
        let mut taken_globals = Vec::new();
        for g in m.globals {
            // Dynamic shared memory is no variable of anybody's.
            let is_shared = g.linkage != Linkage::Internal && g.space != GlobalSpace::Shared;
            let id = match globals.get(&g.name).copied().filter(|_| is_shared) {
                None => {
                    let id = GlobalId::new(out.globals.len());
                    if is_shared {
                        globals.insert(g.name.clone(), (id, n));
                    }
                    out.globals.push(g.clone());
                    taken_globals.push((id, g));
                    id
                }
                Some((id, first)) => {
                    let there = &out.globals[id.index()];
                    match (global_strength(there), global_strength(&g)) {
                        (Strength::Defined, Strength::Defined) => return Err(twice(&g.name, first, n)),
                        (old, now)
                            if now > old
                                || (now == Strength::Common && old == now && g.size > there.size) =>
                        {
                            globals.insert(g.name.clone(), (id, n));
                            taken_globals.push((id, g));
                        }
                        _ => {}
                    }
                    id
                }
            };
            new.globals.push(id);
        }
        for (id, mut f) in taken_functions {
            new.function(&mut f);
            out.functions[id.index()] = f;
        }
        for (id, mut g) in taken_globals {
            new.global(&mut g);
            out.globals[id.index()] = g;
        }
    }
    adapt_calls(&mut out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, linkage: Linkage, body: bool) -> Function {
        let mut f = Function::new(name, FunctionKind::Device);
        (f.linkage, f.is_declaration) = (linkage, !body);
        f.results = vec![Type::B32];
        f
    }

    fn module(name: &str, functions: Vec<Function>, globals: Vec<Global>) -> Module {
        Module { name: name.into(), functions, globals, ..Module::default() }
    }

    fn global(name: &str, linkage: Linkage, size: u64) -> Global {
        Global {
            name: name.into(),
            space: GlobalSpace::Global,
            linkage,
            size,
            align: 4,
            init: vec![],
            pieces: vec![],
            loc: LocId(0),
        }
    }

    #[test]
    fn declarations_find_definitions_in_either_order() {
        for order in [[0, 1], [1, 0]] {
            let parts = [
                module(
                    "a",
                    vec![function("f", Linkage::Extern, false)],
                    vec![global("v", Linkage::Extern, 0)],
                ),
                module(
                    "b",
                    vec![function("f", Linkage::Visible, true)],
                    vec![global("v", Linkage::Visible, 8)],
                ),
            ];
            let linked = link(order.iter().map(|&n| parts[n].clone()).collect()).expect("linked");
            assert_eq!((linked.functions.len(), linked.globals.len()), (1, 1));
            assert!(!linked.functions[0].is_declaration && linked.globals[0].size == 8);
        }
    }

    #[test]
    fn weak_gives_way_and_internal_stays() {
        let a = module(
            "a",
            vec![function("f", Linkage::Weak, true), function("g", Linkage::Internal, true)],
            vec![],
        );
        let b = module(
            "b",
            vec![function("f", Linkage::Visible, true), function("g", Linkage::Internal, true)],
            vec![],
        );
        let linked = link(vec![a.clone(), b.clone()]).expect("linked");
        assert_eq!(linked.functions.len(), 3);
        assert_eq!(linked.functions[0].linkage, Linkage::Visible);
        let twice = link(vec![b.clone(), a, b]);
        assert_eq!(twice, Err(LinkError::Twice { name: "f".into(), first: "b".into(), second: "b".into() }));
    }

    #[test]
    fn signatures_must_agree() {
        let mut other = function("f", Linkage::Extern, false);
        other.results = vec![Type::B64];
        let a = module("a", vec![function("f", Linkage::Visible, true)], vec![]);
        let wrong = link(vec![a, module("b", vec![other], vec![])]);
        assert_eq!(wrong, Err(LinkError::Signature { name: "f".into(), module: "b".into() }));
    }
}
