//! Functions, variables and source files of the module.

use super::Result;
use super::function::{Binding, FnLower};
use super::initializer;
use crate::ast::{
    self, Declarator, DirectiveKind, FunctionDirectiveKind, FunctionKind as AstKind, Linkage as AstLinkage,
    SourcePlace, StateSpace, Variable,
};
use crate::constant::integer_bits;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::span::{LineIndex, Span};
use crate::types::TypeClass;
use ir::{
    FileId, FuncId, FunctionKind, Global, GlobalId, GlobalSpace, Linkage, LocId, Location, SourceLine, Type,
};
use std::collections::HashMap;

/// The module as it grows.
pub(super) struct ModuleLower<'t, 'a> {
    pub(super) module: ir::Module,
    pub(super) diagnostics: Diagnostics,
    lines: LineIndex<'a>,
    functions: HashMap<&'a str, FuncId>,
    globals: HashMap<&'a str, GlobalId>,
    /// Bytes of an element of the variables declared last under each name, for `name[index]`.
    elements: HashMap<&'a str, u64>,
    /// `.file` numbers to places in the module's list.
    files: HashMap<u32, FileId>,
    locations: HashMap<Location, LocId>,
    declared: HashMap<FuncId, &'t ast::Function<'a>>,
}

pub(super) fn lower<'a>(
    name: &str,
    source: &'a [u8],
    tree: &ast::Module<'a>,
) -> std::result::Result<ir::Module, Vec<Diagnostic>> {
    let target =
        tree.targets().find_map(|t| t.text.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok());
    let mut m = ModuleLower {
        module: ir::Module {
            name: name.to_string(),
            locations: vec![Location::default()],
            target: target.unwrap_or(90),
            address_bits: tree.address_size().unwrap_or(64),
            ..ir::Module::default()
        },
        diagnostics: Diagnostics::default(),
        lines: LineIndex::new(source),
        functions: HashMap::new(),
        globals: HashMap::new(),
        elements: HashMap::new(),
        files: HashMap::new(),
        locations: HashMap::from([(Location::default(), LocId(0))]),
        declared: HashMap::new(),
    };
    m.declare_all(tree);
    m.lower_bodies(tree);
    let ModuleLower { module, diagnostics, .. } = m;
    if diagnostics.has_errors() { Err(diagnostics.into_vec()) } else { Ok(module) }
}

/// Size in bytes and alignment of one declared variable; an array without extent has size 0.
pub(super) fn layout(variable: &Variable<'_>, d: &Declarator<'_>) -> Result<(u64, u32)> {
    let element = u64::from(variable.ty.bytes()) * u64::from(variable.vector.unwrap_or(1));
    let mut size = element;
    for (n, dimension) in d.dimensions.iter().enumerate() {
        let extent = match dimension {
            Some(expr) => integer_bits(expr).map_err(|e| Diagnostic::error(e.span, e.message))?,
            None if n == 0 => match &d.initializer {
                Some(ast::Initializer::List { items, .. }) => items.len() as u64,
                _ => 0,
            },
            None => {
                return Err(Diagnostic::error(d.span, "only the first extent of an array may be left out"));
            }
        };
        size = match size.checked_mul(extent) {
            Some(size) if size <= 1 << 40 => size,
            _ => return Err(Diagnostic::error(d.span, "this variable is too large")),
        };
    }
    let align = variable.align.unwrap_or(element.max(1) as u32);
    if !align.is_power_of_two() {
        return Err(Diagnostic::error(d.span, "an alignment is a power of two"));
    }
    Ok((size, align))
}

/// Widths of the values a `.param` or `.reg` parameter travels in: one for a scalar, one a word for an aggregate.
pub(super) fn flatten(variable: &Variable<'_>, d: &Declarator<'_>) -> Result<Vec<Type>> {
    let scalar = d.dimensions.is_empty() && variable.vector.is_none();
    if scalar && variable.ty.bits() <= 64 {
        return Ok(vec![if variable.ty.bits() == 64 { Type::B64 } else { Type::B32 }]);
    }
    let (size, _) = layout(variable, d)?;
    Ok(vec![Type::B32; size.div_ceil(4) as usize])
}

impl<'t, 'a> ModuleLower<'t, 'a> {
    pub(super) fn function_id(&self, name: &str) -> Option<FuncId> {
        self.functions.get(name).copied()
    }

    pub(super) fn global_id(&self, name: &str) -> Option<GlobalId> {
        self.globals.get(name).copied()
    }

    /// The declaration of a function.
    pub(super) fn declaration(&self, id: FuncId) -> Option<&'t ast::Function<'a>> {
        self.declared.get(&id).copied()
    }

    pub(super) fn line(&self, span: Span) -> u32 {
        self.lines.locate(span.start).line
    }

    pub(super) fn location_of(&self, id: LocId) -> Location {
        self.module.locations.get(id.index()).copied().unwrap_or_default()
    }

    pub(super) fn location(&mut self, location: Location) -> LocId {
        let next = LocId::new(self.module.locations.len());
        let id = *self.locations.entry(location).or_insert(next);
        if id == next {
            self.module.locations.push(location);
        }
        id
    }

    /// A line of a file that `.file` names; line 0 is code without a source line.
    pub(super) fn source_line(
        &mut self,
        place: SourcePlace,
        inlined_at: Option<LocId>,
    ) -> Option<SourceLine> {
        let file = *self.files.get(&place.file)?;
        (place.line > 0).then_some(SourceLine { file, line: place.line, column: place.column, inlined_at })
    }

    fn declare_all(&mut self, tree: &'t ast::Module<'a>) {
        for directive in &tree.directives {
            if let DirectiveKind::File(file) = &directive.kind {
                self.module.files.push(file.name.text.to_string());
                self.files.insert(file.index, FileId(self.module.files.len() as u32 - 1));
            }
        }
        for directive in &tree.directives {
            let result = match &directive.kind {
                DirectiveKind::Function(function) => self.declare_function(function),
                DirectiveKind::Variable(v) => {
                    v.declarators.iter().try_for_each(|d| self.declare_global(v, d))
                }
                _ => Ok(()),
            };
            if let Err(diagnostic) = result {
                self.diagnostics.push(diagnostic);
            }
        }
        for directive in &tree.directives {
            if let DirectiveKind::Alias { alias, aliasee } = &directive.kind
                && let Some(&id) = self.functions.get(aliasee.text)
            {
                self.functions.insert(alias.text, id);
            }
        }
        // Initialisers last: they may name what is declared further down.
        for directive in &tree.directives {
            if let DirectiveKind::Variable(v) = &directive.kind {
                for d in &v.declarators {
                    if let Some(id) = self.global_id(d.name.text)
                        && let Err(diagnostic) = self.initialize(id, v, d)
                    {
                        self.diagnostics.push(diagnostic);
                    }
                }
            }
        }
    }

    fn declare_global(&mut self, variable: &'t Variable<'a>, d: &'t Declarator<'a>) -> Result {
        if variable.ty.class() == TypeClass::Opaque
            || matches!(variable.space, StateSpace::Tex | StateSpace::Sreg)
        {
            return Ok(());
        }
        if let Some(&known) = self.globals.get(d.name.text) {
            // A declaration and its definition are one variable; the definition counts.
            let (size, align) = layout(variable, d)?;
            let global = &mut self.module.globals[known.index()];
            if global.linkage == Linkage::Extern && variable.linkage != Some(AstLinkage::Extern) {
                (global.size, global.align, global.linkage) = (size, align, linkage(variable.linkage));
            }
            return Ok(());
        }
        let id = self.push_global(variable, d)?;
        self.globals.insert(d.name.text, id);
        Ok(())
    }

    pub(super) fn note_element(&mut self, variable: &Variable<'a>, d: &Declarator<'a>) {
        let bytes = u64::from(variable.ty.bytes()) * u64::from(variable.vector.unwrap_or(1));
        self.elements.insert(d.name.text, bytes);
    }

    /// Bytes of an element of a variable.
    pub(super) fn element_bytes(&self, name: &str) -> u64 {
        self.elements.get(name).copied().unwrap_or(1)
    }

    /// Adds a variable declared inside a function.
    pub(super) fn add_global(
        &mut self,
        variable: &'t Variable<'a>,
        d: &'t Declarator<'a>,
    ) -> Result<GlobalId> {
        let id = self.push_global(variable, d)?;
        self.initialize(id, variable, d)?;
        Ok(id)
    }

    fn push_global(&mut self, variable: &Variable<'a>, d: &Declarator<'a>) -> Result<GlobalId> {
        let space = match variable.space {
            StateSpace::Global => GlobalSpace::Global,
            StateSpace::Const(_) => GlobalSpace::Const,
            StateSpace::Shared(_) => GlobalSpace::Shared,
            _ => {
                let message = format!("`.{}` variables cannot be declared here", variable.space.word());
                return Err(Diagnostic::error(variable.span, message));
            }
        };
        self.note_element(variable, d);
        let (size, align) = layout(variable, d)?;
        let line = self.line(d.span);
        let loc = self.location(Location { line, source: None });
        self.module.globals.push(Global {
            name: d.name.text.to_string(),
            space,
            linkage: linkage(variable.linkage),
            size,
            align,
            init: Vec::new(),
            pieces: Vec::new(),
            loc,
        });
        Ok(GlobalId::new(self.module.globals.len() - 1))
    }

    fn initialize(&mut self, id: GlobalId, variable: &Variable<'a>, d: &Declarator<'a>) -> Result {
        if let Some(init) = &d.initializer {
            let (bytes, pieces) = initializer::bytes(self, variable, d, init)?;
            let global = &mut self.module.globals[id.index()];
            (global.init, global.pieces) = (bytes, pieces);
        }
        Ok(())
    }

    fn declare_function(&mut self, function: &'t ast::Function<'a>) -> Result {
        let id = match self.functions.get(function.name.text) {
            Some(&id) => {
                if function.body.is_none() {
                    return Ok(());
                }
                id
            }
            None => {
                let id = FuncId::new(self.module.functions.len());
                self.functions.insert(function.name.text, id);
                self.module.functions.push(ir::Function::new(function.name.text, FunctionKind::Device));
                id
            }
        };
        self.declared.insert(id, function);
        let signature = self.signature(function)?;
        self.module.functions[id.index()] = signature;
        Ok(())
    }

    /// The function without its body.
    fn signature(&mut self, function: &ast::Function<'a>) -> Result<ir::Function> {
        let kind = match function.kind {
            AstKind::Entry => FunctionKind::Entry,
            AstKind::Func => FunctionKind::Device,
        };
        let mut f = ir::Function::new(function.name.text, kind);
        f.linkage = linkage(function.linkage);
        f.is_declaration = function.body.is_none();
        let line = self.line(function.span);
        f.loc = self.location(Location { line, source: None });
        for directive in &function.directives {
            let three = |v: &[u32]| std::array::from_fn(|n| v.get(n).copied().unwrap_or(1));
            match &directive.kind {
                FunctionDirectiveKind::MaxNReg(n) => f.launch.max_registers = *n,
                FunctionDirectiveKind::MaxNTid(v) => f.launch.max_threads = three(v),
                FunctionDirectiveKind::ReqNTid(v) => f.launch.required_threads = three(v),
                FunctionDirectiveKind::ReqNCtaPerCluster(v) => f.launch.required_cluster = three(v),
                FunctionDirectiveKind::MinNCtaPerSm(n) => f.launch.min_ctas = *n,
                FunctionDirectiveKind::MaxNCtaPerSm(n) => f.launch.max_ctas = *n,
                FunctionDirectiveKind::MaxClusterRank(n) => f.launch.max_cluster_rank = *n,
                FunctionDirectiveKind::NoReturn => f.no_return = true,
                _ => {}
            }
        }
        let declarators = |list: &'_ [Variable<'a>]| -> Vec<(Variable<'a>, Declarator<'a>)> {
            list.iter().flat_map(|v| v.declarators.iter().map(|d| (v.clone(), d.clone()))).collect()
        };
        if kind == FunctionKind::Entry {
            let mut offset = 0u64;
            for (v, d) in declarators(&function.params) {
                let (size, align) = layout(&v, &d)?;
                offset = offset.next_multiple_of(u64::from(align.max(1)));
                if offset + size > 4096 {
                    return Err(Diagnostic::error(
                        d.span,
                        "the parameters of a kernel take at most 4096 bytes",
                    ));
                }
                f.params.push(ir::Param {
                    name: d.name.text.to_string(),
                    offset: offset as u32,
                    size: size as u32,
                    align,
                    is_pointer_sized: d.dimensions.is_empty() && variable_is_address(&v),
                });
                offset += size;
            }
            return Ok(f);
        }
        for (v, d) in declarators(&function.params) {
            for ty in flatten(&v, &d)? {
                let n = f.param_values.len() as u32;
                let value = f.new_value(ty, ir::ValueDef::FuncParam(n));
                f.param_values.push(value);
            }
        }
        for (v, d) in declarators(&function.returns) {
            f.results.extend(flatten(&v, &d)?);
        }
        Ok(f)
    }

    fn lower_bodies(&mut self, tree: &'t ast::Module<'a>) {
        for function in tree.functions() {
            let (Some(body), Some(id)) = (&function.body, self.function_id(function.name.text)) else {
                continue;
            };
            if self.diagnostics.is_full() {
                return;
            }
            let signature = self.module.functions[id.index()].clone();
            let offsets: Vec<u32> = signature.params.iter().map(|p| p.offset).collect();
            let mut cx = FnLower::new(self, signature);
            if let Err(diagnostic) = bind_params(&mut cx, function, &offsets) {
                self.diagnostics.push(diagnostic);
                continue;
            }
            let lowered = cx.body(body);
            self.module.functions[id.index()] = lowered;
        }
    }
}

fn variable_is_address(v: &Variable<'_>) -> bool {
    v.vector.is_none() && v.ty.bits() == 64
}

/// Binds parameters to what they are inside the function, and stores aggregates to their slots.
fn bind_params<'t, 'a>(
    cx: &mut FnLower<'_, 't, 'a>,
    function: &'t ast::Function<'a>,
    offsets: &[u32],
) -> Result {
    if cx.b.func.kind == FunctionKind::Entry {
        let names = function.params.iter().flat_map(|v| &v.declarators);
        for (d, &offset) in names.zip(offsets) {
            cx.bind(d.name.text, Binding::EntryParam(offset));
        }
        return Ok(());
    }
    let mut values = cx.b.func.param_values.clone().into_iter();
    for v in &function.params {
        for d in &v.declarators {
            let words = flatten(v, d)?.len();
            let binding = device_param(cx, v, d)?;
            let words: Vec<ir::Value> = values.by_ref().take(words).collect();
            cx.store_words(&binding, &words);
            cx.bind(d.name.text, binding);
        }
    }
    for v in &function.returns {
        for d in &v.declarators {
            let binding = device_param(cx, v, d)?;
            cx.bind(d.name.text, binding.clone());
            cx.returns.push((v, binding));
        }
    }
    Ok(())
}

fn device_param<'t, 'a>(
    cx: &mut FnLower<'_, 't, 'a>,
    v: &'t Variable<'a>,
    d: &'t Declarator<'a>,
) -> Result<Binding<'t, 'a>> {
    if v.space == StateSpace::Reg {
        return Ok(Binding::Reg(cx.b.declare_var(super::operand::width(v.ty))));
    }
    cx.param_binding(v, d)
}

fn linkage(linkage: Option<AstLinkage>) -> Linkage {
    match linkage {
        None => Linkage::Internal,
        Some(AstLinkage::Visible) => Linkage::Visible,
        Some(AstLinkage::Weak) => Linkage::Weak,
        Some(AstLinkage::Common) => Linkage::Common,
        Some(AstLinkage::Extern) => Linkage::Extern,
    }
}
