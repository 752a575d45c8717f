//! What the text of a module must fulfil beyond its syntax. The rules:
//!
//! - The module begins with `.version` and `.target`.
//! - Every instruction is in the table of [`crate::opcodes`].
//! - Every name is declared before its use, once in its scope; labels may be used before they stand.
//! - A branch goes to a label of its own or an enclosing block, a call to a function or through a register.
//! - A call passes as many arguments and takes as many results as the function or prototype says.
//! - A register's size is the instruction's; loads, stores and conversions may use wider ones. Integer and
//!   floating-point registers do not mix; untyped ones fit both. Guards are predicates.
//! - Array extents, alignments and offsets are integers.

use crate::ast::*;
use crate::constant;
use crate::diagnostic::{Diagnostic, Diagnostics, closest};
use crate::opcodes::{self, Form};
use crate::parse::shorten;
use crate::span::Span;
use crate::special::special_register;
use crate::symbols::{Entry, Scopes, Symbol};
use crate::types::TypeClass;

/// Whether names are looked up: after a lost declaration every use of it would be one more error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Check,
    Skip,
}

/// Checks a module against the rules above.
pub fn validate(module: &Module<'_>, names: Names, diagnostics: &mut Diagnostics) {
    let mut validator = Validator { names, scopes: Scopes::default(), initializers: Vec::new(), diagnostics };
    validator.module(module);
}

struct Validator<'d, 't, 'a> {
    names: Names,
    scopes: Scopes<'t, 'a>,
    /// Of module variables: they may point at what comes later.
    initializers: Vec<&'t Initializer<'a>>,
    diagnostics: &'d mut Diagnostics,
}

impl<'t, 'a> Validator<'_, 't, 'a> {
    fn module(&mut self, module: &'t Module<'a>) {
        if self.names == Names::Check {
            self.header(module);
        }
        for directive in &module.directives {
            if self.diagnostics.is_full() {
                return;
            }
            match &directive.kind {
                DirectiveKind::Variable(variable) => self.variable(variable),
                DirectiveKind::Function(function) => self.function(function),
                DirectiveKind::Alias { alias, aliasee } => self.alias(alias, aliasee),
                _ => {}
            }
        }
        for initializer in std::mem::take(&mut self.initializers) {
            self.initializer(initializer);
        }
    }

    fn header(&mut self, module: &Module<'_>) {
        let first = module.directives.first();
        let span = first.map_or(Span::default(), |d| d.span);
        if !matches!(first.map(|d| &d.kind), Some(DirectiveKind::Version { .. })) {
            self.diagnostics.error(span, "a PTX module begins with `.version`");
        } else if module.targets().next().is_none() {
            self.diagnostics.error(span, "a PTX module needs a `.target`");
        }
    }

    fn alias(&mut self, alias: &'t Name<'a>, aliasee: &'t Name<'a>) {
        if self.names == Names::Skip {
            return;
        }
        match self.scopes.lookup(aliasee.text).map(|entry| entry.symbol) {
            Some(Symbol::Function(_)) => {}
            Some(_) => self.diagnostics.error(aliasee.span, format!("`{}` is not a function", aliasee.text)),
            None => self.undeclared(aliasee),
        }
        // The alias has a prototype of its own, which this completes.
        let entry = Entry { span: alias.span, symbol: Symbol::Alias(aliasee.text) };
        self.scopes.replace(alias.text, entry);
    }

    fn function(&mut self, function: &'t Function<'a>) {
        let name = function.name;
        let entry = Entry { span: name.span, symbol: Symbol::Function(function) };
        if let Some(before) = self.scopes.declare(name.text, entry) {
            match before.symbol {
                Symbol::Function(other) if other.body.is_none() => self.scopes.replace(name.text, entry),
                Symbol::Function(_) | Symbol::Alias(_) if function.body.is_none() => {}
                _ => self.duplicate(name, before.span),
            }
        }
        self.scopes.open();
        for param in function.returns.iter().chain(&function.params) {
            self.variable(param);
        }
        if let Some(body) = &function.body {
            // Locals of the outermost block may hide parameters.
            self.block(body);
        }
        self.scopes.close();
    }

    fn variable(&mut self, variable: &'t Variable<'a>) {
        if variable.ty == ScalarType::Pred && !matches!(variable.space, StateSpace::Reg | StateSpace::Sreg) {
            self.diagnostics.error(variable.span, "predicates live in registers only");
        }
        for declarator in &variable.declarators {
            for dimension in declarator.dimensions.iter().flatten() {
                self.integer(dimension);
            }
            if let Some(initializer) = &declarator.initializer {
                if !matches!(variable.space, StateSpace::Global | StateSpace::Const(_)) {
                    let message = format!("variables in `.{}` have no initialiser", variable.space.word());
                    self.diagnostics.error(declarator.span, message);
                }
                if self.scopes.is_outermost() {
                    self.initializers.push(initializer);
                } else {
                    self.initializer(initializer);
                }
            }
            if declarator.name.text == "_" {
                continue;
            }
            if let Some(before) = self.scopes.declare_variable(variable, declarator) {
                let is_open = |linkage: Option<Linkage>| {
                    matches!(linkage, Some(Linkage::Extern | Linkage::Weak | Linkage::Common))
                };
                let merges = match before.symbol {
                    Symbol::Variable(other, _) => is_open(other.linkage) || is_open(variable.linkage),
                    _ => false,
                };
                if !merges {
                    self.duplicate(declarator.name, before.span);
                }
            }
        }
    }

    fn initializer(&mut self, initializer: &'t Initializer<'a>) {
        match initializer {
            Initializer::Value(value) => self.symbols_of(value),
            Initializer::List { items, .. } => items.iter().for_each(|item| self.initializer(item)),
            // Fields of opaque types have values of their own vocabulary.
            Initializer::Field { .. } => {}
        }
    }

    fn symbols_of(&mut self, expr: &Expr<'a>) {
        match &expr.kind {
            ExprKind::Symbol(text) => {
                self.find(&Name { text, span: expr.span });
            }
            ExprKind::Generic(inner)
            | ExprKind::Mask { value: inner, .. }
            | ExprKind::Cast { value: inner, .. } => {
                self.symbols_of(inner);
            }
            ExprKind::Unary { value, .. } => self.symbols_of(value),
            ExprKind::Binary { left, right, .. } => {
                self.symbols_of(left);
                self.symbols_of(right);
            }
            ExprKind::Conditional(parts) => parts.iter().for_each(|part| self.symbols_of(part)),
            ExprKind::Integer { .. } | ExprKind::F32(_) | ExprKind::F64(_) | ExprKind::WarpSize => {}
        }
    }

    fn integer(&mut self, expr: &Expr<'_>) {
        if let Err(error) = constant::integer_bits(expr) {
            self.diagnostics.error(error.span, error.message);
        }
    }

    fn block(&mut self, block: &'t Block<'a>) {
        self.scopes.open();
        // Labels first: branches go forward too.
        for statement in &block.statements {
            let (label, symbol) = match statement {
                Statement::Label(label) => (label, Symbol::Label),
                Statement::BranchTargets { label, .. } | Statement::CallTargets { label, .. } => {
                    (label, Symbol::Targets(statement))
                }
                Statement::CallPrototype(prototype) => (&prototype.label, Symbol::Targets(statement)),
                _ => continue,
            };
            if let Some(before) = self.scopes.declare(label.text, Entry { span: label.span, symbol }) {
                self.duplicate(*label, before.span);
            }
        }
        for statement in &block.statements {
            if self.diagnostics.is_full() {
                break;
            }
            self.statement(statement);
        }
        self.scopes.close();
    }

    fn statement(&mut self, statement: &'t Statement<'a>) {
        match statement {
            Statement::Instruction(instruction) => self.instruction(instruction),
            Statement::Variable(variable) => self.variable(variable),
            Statement::Block(block) => self.block(block),
            Statement::BranchTargets { targets, .. } => {
                for target in targets {
                    match target.count {
                        None => self.label(&target.name),
                        Some(count) => self.label_range(&target.name, count),
                    }
                }
            }
            Statement::CallTargets { targets, .. } => {
                for target in targets {
                    let found = self.find(target).map(|entry| entry.symbol);
                    if found.is_some_and(|s| !matches!(s, Symbol::Function(_) | Symbol::Alias(_))) {
                        self.diagnostics.error(target.span, format!("`{}` is not a function", target.text));
                    }
                }
            }
            Statement::Label(_)
            | Statement::Loc(_)
            | Statement::Pragma { .. }
            | Statement::CallPrototype(_) => {}
        }
    }

    fn label(&mut self, name: &Name<'a>) {
        if self.names == Names::Skip {
            return;
        }
        match self.scopes.lookup(name.text).map(|entry| entry.symbol) {
            Some(Symbol::Label) => {}
            Some(_) => self.diagnostics.error(name.span, format!("`{}` is not a label", name.text)),
            None => {
                let message = format!("there is no label `{}` here", shorten(name.text));
                self.diagnostics.push(self.with_suggestion(Diagnostic::error(name.span, message), name.text));
            }
        }
    }

    /// Labels `N0` to `N4` of `N<5>`; one message tells of the first that is missing.
    fn label_range(&mut self, name: &Name<'a>, count: u32) {
        if self.names == Names::Skip {
            return;
        }
        let missing = (0..count).map(|number| format!("{}{number}", name.text)).find(|label| {
            !matches!(self.scopes.lookup(label).map(|entry| entry.symbol), Some(Symbol::Label))
        });
        if let Some(label) = missing {
            self.diagnostics.error(name.span, format!("there is no label `{}` here", shorten(&label)));
        }
    }

    fn instruction(&mut self, instruction: &'t Instruction<'a>) {
        if let Some(guard) = &instruction.guard {
            self.expect_predicate(&guard.predicate);
        }
        let form = opcodes::check(instruction, self.diagnostics);
        match instruction.mnemonic.text {
            "call" => return self.call(instruction),
            "bra" => {
                if let [target] = instruction.operands.as_slice() {
                    match target.as_name() {
                        Some(name) => self.label(&name),
                        None => self.diagnostics.error(target.span, "a branch goes to a label"),
                    }
                }
                return;
            }
            _ => {}
        }
        let types: Vec<ScalarType> = instruction.types().take(2).collect();
        for (at, operand) in instruction.operands.iter().enumerate() {
            let letter = form.and_then(|form: &Form| form.types.as_bytes().get(at)).copied().unwrap_or(b'.');
            let rule = Rule::new(letter, &types, instruction);
            self.operand(operand, rule);
        }
    }

    /// Looks up what an operand names and holds registers against the rule.
    fn operand(&mut self, operand: &Operand<'a>, rule: Rule) {
        match &operand.kind {
            OperandKind::Name(text) => {
                let name = Name { text, span: operand.span };
                if let Some(entry) = self.find(&name)
                    && let Symbol::Variable(variable, _) = entry.symbol
                    && variable.space == StateSpace::Reg
                    && variable.vector.is_none()
                {
                    self.fits(&name, variable.ty, rule);
                }
            }
            OperandKind::Member { base, member } => self.member(base, member),
            OperandKind::Constant(value) => {
                if let Err(error) = constant::evaluate(value) {
                    self.diagnostics.error(error.span, error.message);
                }
            }
            OperandKind::Offset { base, offset } => {
                self.find(base);
                self.integer(offset);
            }
            OperandKind::Element { base, index } => {
                self.find(base);
                self.operand(index, Rule::ANY);
            }
            OperandKind::Not(inner) => self.operand(inner, rule),
            OperandKind::Minus(inner) => self.operand(inner, rule),
            // The elements of a vector of a load have the type; elsewhere the whole has it.
            OperandKind::Vector(items) => {
                let inner = if rule.wider { rule } else { Rule::ANY };
                items.iter().for_each(|item| self.operand(item, inner));
            }
            OperandKind::Address(address) => self.address(address),
            OperandKind::Pair(first, second) => {
                self.operand(first, rule);
                self.operand(second, Rule::PREDICATE);
            }
            OperandKind::Sink => {}
            OperandKind::Arguments(items) => items.iter().for_each(|item| self.operand(item, Rule::ANY)),
        }
    }

    fn address(&mut self, address: &Address<'a>) {
        match &address.base {
            AddressBase::Name(name) => {
                if let Some(entry) = self.find(name)
                    && let Symbol::Variable(variable, _) = entry.symbol
                    && variable.space == StateSpace::Reg
                    && matches!(variable.ty.class(), TypeClass::Float | TypeClass::Pred)
                {
                    let message =
                        format!("`{}` is `.{}` and holds no address", name.text, variable.ty.word());
                    self.diagnostics.error(name.span, message);
                }
            }
            AddressBase::Member { base, member } => self.member(base, member),
            AddressBase::Absolute(value) => self.integer(value),
        }
        if let Some(offset) = &address.offset {
            self.integer(offset);
        }
        for coordinate in &address.coordinates {
            self.operand(coordinate, Rule::ANY);
        }
    }

    fn member(&mut self, base: &Name<'a>, member: &Name<'a>) {
        if let Some(special) = special_register(base.text) {
            if !special.vector || !matches!(member.text, "x" | "y" | "z" | "w") {
                let message = format!("`{}` has no component `.{}`", base.text, shorten(member.text));
                self.diagnostics.error(member.span, message);
            }
            return;
        }
        let component = matches!(member.text, "x" | "y" | "z" | "w" | "r" | "g" | "b" | "a");
        let selector = member.text.strip_prefix(['b', 'h']).is_some_and(|digits| {
            (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
        });
        if !component && !selector {
            let message = format!("`.{}` selects no part of a register", shorten(member.text));
            self.diagnostics.error(member.span, message);
        }
        self.find(base);
    }

    fn fits(&mut self, name: &Name<'a>, ty: ScalarType, rule: Rule) {
        let Some(wanted) = rule.class else { return };
        if (ty == ScalarType::Pred) != (wanted == TypeClass::Pred) {
            let message = if wanted == TypeClass::Pred {
                format!("`{}` is `.{}`, but a predicate is needed here", name.text, ty.word())
            } else {
                format!("`{}` is a predicate, but {} is needed here", name.text, rule.describe())
            };
            self.diagnostics.error(name.span, message);
            return;
        }
        let size_fits = if rule.wider { ty.bits() >= rule.bits } else { ty.bits() == rule.bits };
        let integer = |class| matches!(class, TypeClass::Signed | TypeClass::Unsigned);
        let class_fits =
            !(integer(ty.class()) && wanted == TypeClass::Float && rule.bits >= 32 && !rule.packed
                || ty.class() == TypeClass::Float && integer(wanted));
        if !size_fits || !class_fits {
            let message = format!(
                "register `{}` is `.{}`, but {} is needed here",
                name.text,
                ty.word(),
                rule.describe()
            );
            self.diagnostics.error(name.span, message);
        }
    }

    fn call(&mut self, instruction: &'t Instruction<'a>) {
        let Some(parts) = instruction.call_parts() else {
            let message = "a call is written `call (results), function, (arguments), prototype`";
            self.diagnostics.error(instruction.span, message);
            return;
        };
        for operand in parts.returns.iter().chain(parts.arguments) {
            self.operand(operand, Rule::ANY);
        }
        let target = self.find(&parts.target).map(|entry| entry.symbol);
        let signature = match target {
            Some(Symbol::Function(function)) => Some((&function.returns, &function.params)),
            Some(Symbol::Alias(name)) => match self.scopes.lookup(name).map(|entry| entry.symbol) {
                Some(Symbol::Function(function)) => Some((&function.returns, &function.params)),
                _ => None,
            },
            Some(Symbol::Variable(variable, _)) if variable.space == StateSpace::Reg => {
                match parts.prototype.map(|label| (label, self.find(&label).map(|entry| entry.symbol))) {
                    Some((_, Some(Symbol::Targets(Statement::CallPrototype(prototype))))) => {
                        Some((&prototype.returns, &prototype.params))
                    }
                    Some((_, Some(Symbol::Targets(Statement::CallTargets { .. })) | None)) => None,
                    Some((label, Some(_))) => {
                        let message = format!("`{}` is no call prototype and no list of targets", label.text);
                        self.diagnostics.error(label.span, message);
                        None
                    }
                    None => {
                        let message = "an indirect call needs a prototype or a list of targets";
                        self.diagnostics.error(instruction.span, message);
                        None
                    }
                }
            }
            Some(_) => {
                self.diagnostics
                    .error(parts.target.span, format!("`{}` cannot be called", parts.target.text));
                None
            }
            None => None,
        };
        if let Some((returns, params)) = signature {
            self.call_counts(&parts, returns, params);
        }
    }

    fn call_counts(&mut self, parts: &CallParts<'_, 'a>, returns: &[Variable<'_>], params: &[Variable<'_>]) {
        let callee = parts.target.text;
        if parts.returns.len() != returns.len() {
            let span = parts.returns.first().map_or(parts.target.span, |first| first.span);
            let message = format!(
                "wrong number of results: `{callee}` gives {}, the call takes {}",
                returns.len(),
                parts.returns.len()
            );
            self.diagnostics.error(span, message);
        }
        // An array without a size at the end may be left out.
        let open_end = params
            .last()
            .and_then(|p| p.declarators.first())
            .is_some_and(|d| matches!(d.dimensions.as_slice(), [None]));
        let given = parts.arguments.len();
        if given != params.len() && !(open_end && given + 1 == params.len()) {
            let span = match parts.arguments.get(params.len()) {
                Some(extra) => extra.span,
                None => parts.target.span,
            };
            let message = format!(
                "wrong number of arguments: `{callee}` takes {}, the call passes {given}",
                params.len()
            );
            self.diagnostics.error(span, message);
        }
    }

    fn expect_predicate(&mut self, name: &Name<'a>) {
        if let Some(entry) = self.find(name) {
            match entry.symbol {
                Symbol::Variable(variable, _) => self.fits(name, variable.ty, Rule::PREDICATE),
                _ => self.diagnostics.error(name.span, format!("`{}` is no predicate", name.text)),
            }
        }
    }

    /// Looks a name up; special registers are known but have no entry.
    fn find(&mut self, name: &Name<'a>) -> Option<Entry<'t, 'a>> {
        if self.names == Names::Skip {
            return None;
        }
        let found = self.scopes.lookup(name.text);
        if found.is_none() && special_register(name.text).is_none() {
            self.undeclared(name);
        }
        found
    }

    fn undeclared(&mut self, name: &Name<'a>) {
        let message = format!("`{}` is not declared", shorten(name.text));
        self.diagnostics.push(self.with_suggestion(Diagnostic::error(name.span, message), name.text));
    }

    fn with_suggestion(&self, diagnostic: Diagnostic, name: &str) -> Diagnostic {
        // Sorted, so that the same source always gets the same suggestion. A register's number is no slip of
        // the finger, so `%r7` suggests nothing.
        let mut names: Vec<&str> = self.scopes.visible().collect();
        names.sort_unstable();
        match closest(name, names) {
            Some(close) if name.len() > 3 => diagnostic.with_help(format!("did you mean `{close}`?")),
            _ => diagnostic,
        }
    }

    fn duplicate(&mut self, name: Name<'a>, first: Span) {
        if self.names == Names::Skip {
            return;
        }
        let message = format!("`{}` is declared twice", shorten(name.text));
        self.diagnostics
            .push(Diagnostic::error(name.span, message).with_note(first, "the first declaration"));
    }
}

/// What a register operand must be.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// None: anything.
    class: Option<TypeClass>,
    bits: u32,
    /// Wider registers fit too.
    wider: bool,
    /// Two halves in one register.
    packed: bool,
}

impl Rule {
    const ANY: Rule = Rule { class: None, bits: 0, wider: false, packed: false };
    const PREDICATE: Rule = Rule { class: Some(TypeClass::Pred), bits: 1, wider: false, packed: false };

    /// The rule of a letter of the instruction table.
    fn new(letter: u8, types: &[ScalarType], instruction: &Instruction<'_>) -> Rule {
        let of = |ty: Option<&ScalarType>, wider| match ty {
            Some(ty) => Rule {
                class: Some(ty.class()),
                bits: ty.bits(),
                wider,
                packed: matches!(ty, ScalarType::F16x2 | ScalarType::Bf16x2),
            },
            None => Rule::ANY,
        };
        let fixed = |bits| Rule { class: Some(TypeClass::Unsigned), bits, wider: false, packed: false };
        match letter {
            b't' => of(types.first(), false),
            b'u' => of(types.get(1), false),
            b'l' => of(types.first(), true),
            b'm' => of(types.get(1), true),
            b'w' => {
                let rule = of(types.first(), false);
                if instruction.has_modifier("wide") { Rule { bits: rule.bits * 2, ..rule } } else { rule }
            }
            b'i' => fixed(32),
            b'j' => fixed(64),
            b'p' => Rule::PREDICATE,
            _ => Rule::ANY,
        }
    }

    fn describe(&self) -> String {
        let kind = match self.class {
            Some(TypeClass::Float) => "a floating-point",
            Some(TypeClass::Signed | TypeClass::Unsigned) => "an integer",
            _ => "a",
        };
        let size = if self.wider { format!("at least {}", self.bits) } else { self.bits.to_string() };
        format!("{kind} register of {size} bits")
    }
}
