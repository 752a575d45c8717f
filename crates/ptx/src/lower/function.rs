//! One function: scopes, labels, statements.

use super::Result;
use super::module::ModuleLower;
use super::operand::width;
use crate::ast::{
    Block as AstBlock, Instruction, Loc, Name, ScalarType, SourcePlace, StateSpace, Statement, Variable,
};
use crate::diagnostic::Diagnostic;
use ir::{Block, FunctionBuilder, FunctionKind, GlobalId, Guard, LocId, SlotId, Terminator, Type, Var};
use std::collections::HashMap;

/// What a name stands for inside a function.
#[derive(Clone, Debug)]
pub(super) enum Binding<'t, 'a> {
    Reg(Var),
    /// A 128-bit register: low and high half.
    Wide(Var, Var),
    Vector(Vec<Var>),
    /// A variable in global, constant or shared memory.
    Global(GlobalId),
    /// A local variable, or an aggregate `.param` of a call or of a device function.
    Slot(SlotId),
    /// A scalar `.param` of a call or of a device function, and its type.
    ScalarParam(Var, ScalarType),
    /// Offset in the parameter block of an entry.
    EntryParam(u32),
    Label(Block),
    /// `.branchtargets`, `.calltargets`, `.callprototype`.
    Targets(&'t Statement<'a>),
}

#[derive(Default)]
struct Scope<'t, 'a> {
    names: HashMap<&'a str, Binding<'t, 'a>>,
    /// `%r<10>` by its prefix.
    ranges: HashMap<&'a str, (&'t Variable<'a>, u32)>,
}

/// Lowers one function body.
pub(super) struct FnLower<'m, 't, 'a> {
    pub(super) module: &'m mut ModuleLower<'t, 'a>,
    pub(super) b: FunctionBuilder,
    scopes: Vec<Scope<'t, 'a>>,
    /// The guard of the instruction at hand.
    pub(super) guard: Option<Guard>,
    /// The carry flag.
    pub(super) cc: Var,
    /// Where a device function's results are, in order.
    pub(super) returns: Vec<(&'t Variable<'a>, Binding<'t, 'a>)>,
    source: Option<ir::SourceLine>,
    /// The last location seen for a source place, to chain what was inlined into inlined code.
    inlined: HashMap<(u32, u32, u32), LocId>,
}

impl<'m, 't, 'a> FnLower<'m, 't, 'a> {
    pub(super) fn new(module: &'m mut ModuleLower<'t, 'a>, func: ir::Function) -> Self {
        let mut b = FunctionBuilder::new(func);
        let cc = b.declare_var(Type::P);
        FnLower {
            module,
            b,
            scopes: vec![Scope::default()],
            guard: None,
            cc,
            returns: Vec::new(),
            source: None,
            inlined: HashMap::new(),
        }
    }

    pub(super) fn bind(&mut self, name: &'a str, binding: Binding<'t, 'a>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, binding);
        }
    }

    /// Finds a name from the innermost scope outwards, then among the module's variables.
    pub(super) fn lookup(&mut self, name: &'a str) -> Option<Binding<'t, 'a>> {
        for n in (0..self.scopes.len()).rev() {
            if let Some(found) = self.scopes[n].names.get(name) {
                return Some(found.clone());
            }
            if let Some(binding) = self.member_of_range(n, name) {
                // Found again at once next time.
                self.scopes[n].names.insert(name, binding.clone());
                return Some(binding);
            }
        }
        self.module.global_id(name).map(Binding::Global)
    }

    /// `%r12` of `%r<20>`, or of `%r1<5>`.
    fn member_of_range(&mut self, scope: usize, name: &'a str) -> Option<Binding<'t, 'a>> {
        if self.scopes[scope].ranges.is_empty() {
            return None;
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).take(10).count();
        for count in (1..=digits).rev() {
            let (prefix, number) = name.split_at(name.len() - count);
            if count > 1 && number.starts_with('0') {
                continue;
            }
            let found = self.scopes[scope].ranges.get(prefix).copied();
            if let (Some((variable, limit)), Ok(number)) = (found, number.parse::<u32>())
                && number < limit
            {
                return Some(self.register_binding(variable));
            }
        }
        None
    }

    fn register_binding(&mut self, variable: &Variable<'_>) -> Binding<'t, 'a> {
        if let Some(n) = variable.vector {
            let ty = width(variable.ty);
            return Binding::Vector((0..n).map(|_| self.b.declare_var(ty)).collect());
        }
        if variable.ty == ScalarType::B128 {
            return Binding::Wide(self.b.declare_var(Type::B64), self.b.declare_var(Type::B64));
        }
        Binding::Reg(self.b.declare_var(width(variable.ty)))
    }

    /// Declares the variables of one declaration in the innermost scope.
    pub(super) fn declare(&mut self, variable: &'t Variable<'a>) -> Result {
        for d in &variable.declarators {
            let name = d.name.text;
            match variable.space {
                StateSpace::Reg => match d.range {
                    Some(count) => {
                        if let Some(scope) = self.scopes.last_mut() {
                            scope.ranges.insert(name, (variable, count));
                        }
                    }
                    None => {
                        let binding = self.register_binding(variable);
                        self.bind(name, binding);
                    }
                },
                StateSpace::Local => {
                    self.module.note_element(variable, d);
                    let count = d.range.unwrap_or(1);
                    for n in 0..count {
                        let slot = self.slot(variable, d)?;
                        // Parameterised local variables are rare: their names must live as long as the text.
                        if d.range.is_none() {
                            self.bind(name, Binding::Slot(slot));
                        } else if n == 0 {
                            return Err(Diagnostic::error(
                                d.span,
                                "numbered `.local` variables are not supported",
                            ));
                        }
                    }
                }
                StateSpace::Param => {
                    let binding = self.param_binding(variable, d)?;
                    self.bind(name, binding);
                }
                StateSpace::Global | StateSpace::Const(_) | StateSpace::Shared(_) => {
                    let id = self.module.add_global(variable, d)?;
                    self.bind(name, Binding::Global(id));
                }
                StateSpace::Sreg | StateSpace::Tex => {}
            }
        }
        Ok(())
    }

    fn slot(&mut self, variable: &Variable<'a>, d: &crate::ast::Declarator<'a>) -> Result<SlotId> {
        let (size, align) = super::module::layout(variable, d)?;
        let Ok(size) = u32::try_from(size) else {
            return Err(Diagnostic::error(d.span, "a local variable cannot be that large"));
        };
        // Whole words, so that an aggregate travels word by word.
        let size = size.next_multiple_of(4);
        self.b.func.slots.push(ir::StackSlot { name: d.name.text.to_string(), size, align: align.max(4) });
        Ok(SlotId::new(self.b.func.slots.len() - 1))
    }

    /// A `.param` that is no entry parameter: a value where it is scalar, a slot where it is an aggregate.
    pub(super) fn param_binding(
        &mut self,
        variable: &'t Variable<'a>,
        d: &'t crate::ast::Declarator<'a>,
    ) -> Result<Binding<'t, 'a>> {
        if d.dimensions.is_empty() && variable.vector.is_none() && variable.ty.bits() <= 64 {
            return Ok(Binding::ScalarParam(self.b.declare_var(width(variable.ty)), variable.ty));
        }
        Ok(Binding::Slot(self.slot(variable, d)?))
    }

    /// Lowers the body and ends the function.
    pub(super) fn body(mut self, body: &'t AstBlock<'a>) -> ir::Function {
        self.block(body);
        if !self.b.is_terminated() {
            self.end();
        }
        let mut func = self.b.finish();
        func.compact();
        func
    }

    /// `ret` from an entry ends the thread.
    pub(super) fn end(&mut self) {
        if self.b.func.kind == FunctionKind::Entry {
            self.b.terminate(Terminator::Exit);
        } else {
            let values = self.return_values();
            self.b.terminate(Terminator::Return(values.into()));
        }
    }

    fn block(&mut self, block: &'t AstBlock<'a>) {
        self.scopes.push(Scope::default());
        for statement in &block.statements {
            match statement {
                Statement::Label(name) => {
                    let b = self.b.create_block();
                    self.bind(name.text, Binding::Label(b));
                }
                Statement::BranchTargets { label, .. } | Statement::CallTargets { label, .. } => {
                    self.bind(label.text, Binding::Targets(statement));
                }
                Statement::CallPrototype(p) => self.bind(p.label.text, Binding::Targets(statement)),
                _ => {}
            }
        }
        for statement in &block.statements {
            if self.module.diagnostics.is_full() {
                break;
            }
            if let Err(diagnostic) = self.statement(statement) {
                self.module.diagnostics.push(diagnostic);
            }
        }
        self.scopes.pop();
    }

    fn statement(&mut self, statement: &'t Statement<'a>) -> Result {
        match statement {
            Statement::Label(name) => {
                if let Some(Binding::Label(b)) = self.lookup(name.text) {
                    if !self.b.is_terminated() {
                        self.b.jump(b);
                    }
                    self.b.switch_to(b);
                }
            }
            Statement::Instruction(inst) => {
                if self.b.is_terminated() {
                    // Nothing jumps here: the block is dropped at the end.
                    let b = self.b.create_block();
                    self.b.switch_to(b);
                }
                self.set_location(inst);
                self.guard = self.read_guard(inst)?;
                self.instruction(inst)?;
            }
            Statement::Variable(variable) => self.declare(variable)?,
            Statement::Block(block) => self.block(block),
            Statement::Loc(loc) => self.loc(loc),
            Statement::Pragma { strings, .. } => {
                if strings.iter().any(|s| s.text.trim() == "nounroll") {
                    let b = self.b.current();
                    self.b.func.block_mut(b).no_unroll = true;
                }
            }
            Statement::BranchTargets { .. } | Statement::CallTargets { .. } | Statement::CallPrototype(_) => {
            }
        }
        Ok(())
    }

    fn read_guard(&mut self, inst: &Instruction<'a>) -> Result<Option<Guard>> {
        let Some(guard) = &inst.guard else { return Ok(None) };
        let var = self.register(guard.predicate)?;
        let value = self.b.use_var(var);
        if self.b.func.ty(value) != Type::P {
            return self.fail(guard.predicate.span, format!("`{}` is not a predicate", guard.predicate.text));
        }
        Ok(Some(Guard { value, negated: guard.negated }))
    }

    fn set_location(&mut self, inst: &Instruction<'a>) {
        let line = self.module.line(inst.span);
        let loc = self.module.location(ir::Location { line, source: self.source });
        self.b.set_loc(loc);
    }

    fn loc(&mut self, loc: &Loc<'a>) {
        let inlined_at = loc.inlined.as_ref().map(|inlined| match self.inlined.get(&place_key(inlined.at)) {
            Some(&known) => known,
            None => {
                let source = self.module.source_line(inlined.at, None);
                self.module.location(ir::Location { line: 0, source })
            }
        });
        self.source = self.module.source_line(loc.place, inlined_at);
        // The first place is that of the function: what it does before its first instruction belongs there.
        let start = self.module.location_of(self.b.func.loc);
        if start.source.is_none() {
            self.b.func.loc = self.module.location(ir::Location { source: self.source, ..start });
        }
        let id = self.module.location(ir::Location { line: 0, source: self.source });
        self.inlined.insert(place_key(loc.place), id);
    }

    /// A label's block.
    pub(super) fn label(&mut self, name: Name<'a>) -> Result<Block> {
        match self.lookup(name.text) {
            Some(Binding::Label(b)) => Ok(b),
            _ => self.fail(name.span, format!("there is no label `{}`", name.text)),
        }
    }

    /// Runs what follows only where the guard holds, for instructions that cannot carry one. The returned block is
    /// where the others go on: give it to [`FnLower::rejoin`].
    pub(super) fn branch_around(&mut self) -> Option<Block> {
        let guard = self.guard.take()?;
        let (inside, after) = (self.b.create_block(), self.b.create_block());
        let (then, otherwise) = if guard.negated { (after, inside) } else { (inside, after) };
        self.b.branch(guard.value, then, otherwise, false);
        self.b.switch_to(inside);
        Some(after)
    }

    pub(super) fn rejoin(&mut self, after: Option<Block>) {
        if let Some(after) = after {
            if !self.b.is_terminated() {
                self.b.jump(after);
            }
            self.b.switch_to(after);
        }
    }
}

fn place_key(place: SourcePlace) -> (u32, u32, u32) {
    (place.file, place.line, place.column)
}
