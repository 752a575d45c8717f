//! A tree back to PTX text, in one normal form: numbers in decimal or as exact bits, one statement a line.

use crate::ast::*;
use std::fmt::{self, Display, Formatter, Write};

/// The module as PTX that parses to the same tree.
pub fn print(module: &Module<'_>) -> String {
    let mut out = String::new();
    for directive in &module.directives {
        let _ = print_directive(&mut out, &directive.kind);
    }
    out
}

fn print_directive(out: &mut String, kind: &DirectiveKind<'_>) -> fmt::Result {
    match kind {
        DirectiveKind::Version { major, minor } => writeln!(out, ".version {major}.{minor}"),
        DirectiveKind::Target(names) => writeln!(out, ".target {}", Commas(names)),
        DirectiveKind::AddressSize(bits) => writeln!(out, ".address_size {bits}"),
        DirectiveKind::File(file) => {
            write!(out, ".file {} \"{}\"", file.index, file.name.text)?;
            if let Some((timestamp, size)) = file.timestamp_and_size {
                write!(out, ", {timestamp}, {size}")?;
            }
            writeln!(out)
        }
        DirectiveKind::Loc(loc) => writeln!(out, "{loc}"),
        DirectiveKind::Section(section) => print_section(out, section),
        DirectiveKind::Pragma(strings) => writeln!(out, ".pragma {};", Commas(strings)),
        DirectiveKind::Alias { alias, aliasee } => writeln!(out, ".alias {alias}, {aliasee};"),
        DirectiveKind::Variable(variable) => writeln!(out, "{variable};"),
        DirectiveKind::Function(function) => print_function(out, function),
    }
}

fn print_section(out: &mut String, section: &Section<'_>) -> fmt::Result {
    writeln!(out, ".section .{}\n{{", section.name)?;
    for item in &section.items {
        match item {
            SectionItem::Label(name) => writeln!(out, "{name}:")?,
            SectionItem::Data { ty, values, .. } => writeln!(out, "\t.{} {}", ty.word(), Commas(values))?,
        }
    }
    writeln!(out, "}}")
}

fn print_function(out: &mut String, function: &Function<'_>) -> fmt::Result {
    if let Some(linkage) = function.linkage {
        write!(out, "{linkage} ")?;
    }
    out.push_str(match function.kind {
        FunctionKind::Entry => ".entry ",
        FunctionKind::Func => ".func ",
    });
    if !function.attributes.is_empty() {
        write!(out, ".attribute({}) ", Commas(&function.attributes))?;
    }
    if !function.returns.is_empty() {
        write!(out, "({}) ", Commas(&function.returns))?;
    }
    write!(out, "{}({})", function.name, Commas(&function.params))?;
    for directive in &function.directives {
        write!(out, "\n{directive}")?;
    }
    match &function.body {
        None => writeln!(out, ";"),
        Some(body) => {
            writeln!(out)?;
            print_block(out, body, 0)
        }
    }
}

fn print_block(out: &mut String, block: &Block<'_>, depth: usize) -> fmt::Result {
    let indent = "\t".repeat(depth);
    writeln!(out, "{indent}{{")?;
    for statement in &block.statements {
        match statement {
            Statement::Label(name) => writeln!(out, "{name}:")?,
            Statement::Block(inner) => print_block(out, inner, depth + 1)?,
            Statement::Instruction(instruction) => writeln!(out, "{indent}\t{instruction}")?,
            Statement::Variable(variable) => writeln!(out, "{indent}\t{variable};")?,
            Statement::Loc(loc) => writeln!(out, "{indent}\t{loc}")?,
            Statement::Pragma { strings, .. } => writeln!(out, "{indent}\t.pragma {};", Commas(strings))?,
            Statement::BranchTargets { label, targets, .. } => {
                writeln!(out, "{label}: .branchtargets {};", Commas(targets))?;
            }
            Statement::CallTargets { label, targets, .. } => {
                writeln!(out, "{label}: .calltargets {};", Commas(targets))?;
            }
            Statement::CallPrototype(prototype) => {
                write!(out, "{}: .callprototype ", prototype.label)?;
                if !prototype.returns.is_empty() {
                    write!(out, "({}) ", Commas(&prototype.returns))?;
                }
                write!(out, "_ ({})", Commas(&prototype.params))?;
                for directive in &prototype.directives {
                    write!(out, " {directive}")?;
                }
                writeln!(out, ";")?;
            }
        }
    }
    writeln!(out, "{indent}}}")
}

/// Items with commas between.
struct Commas<'t, T>(&'t [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl Display for StringLiteral<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.text)
    }
}

impl Display for Linkage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Linkage::Extern => ".extern",
            Linkage::Visible => ".visible",
            Linkage::Weak => ".weak",
            Linkage::Common => ".common",
        })
    }
}

impl Display for StateSpace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.word())?;
        match self {
            StateSpace::Const(Some(bank)) => write!(f, "[{bank}]"),
            _ => Ok(()),
        }
    }
}

impl Display for SourcePlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.file, self.line, self.column)
    }
}

impl Display for Loc<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".loc {}", self.place)?;
        if let Some(inlined) = &self.inlined {
            write!(f, ", function_name {}", inlined.function)?;
            if inlined.offset != 0 {
                write!(f, "+{}", inlined.offset as u64)?;
            }
            write!(f, ", inlined_at {}", inlined.at)?;
        }
        Ok(())
    }
}

impl Display for FunctionDirective<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use FunctionDirectiveKind::*;
        match &self.kind {
            MaxNReg(n) => write!(f, ".maxnreg {n}"),
            MaxNTid(extents) => write!(f, ".maxntid {}", Commas(extents)),
            ReqNTid(extents) => write!(f, ".reqntid {}", Commas(extents)),
            ReqNCtaPerCluster(extents) => write!(f, ".reqnctapercluster {}", Commas(extents)),
            MinNCtaPerSm(n) => write!(f, ".minnctapersm {n}"),
            MaxNCtaPerSm(n) => write!(f, ".maxnctapersm {n}"),
            MaxClusterRank(n) => write!(f, ".maxclusterrank {n}"),
            ExplicitCluster => f.write_str(".explicitcluster"),
            BlocksAreClusters => f.write_str(".blocksareclusters"),
            NoReturn => f.write_str(".noreturn"),
            AbiPreserve(n) => write!(f, ".abi_preserve {n}"),
            AbiPreserveControl(n) => write!(f, ".abi_preserve_control {n}"),
            Pragma(strings) => write!(f, ".pragma {};", Commas(strings)),
        }
    }
}

impl Display for Attribute<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name)?;
        if !self.arguments.is_empty() {
            write!(f, "({})", Commas(&self.arguments))?;
        }
        Ok(())
    }
}

impl Display for Variable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(linkage) = self.linkage {
            write!(f, "{linkage} ")?;
        }
        self.space.fmt(f)?;
        if !self.attributes.is_empty() {
            write!(f, " .attribute({})", Commas(&self.attributes))?;
        }
        if let Some(align) = self.align {
            write!(f, " .align {align}")?;
        }
        if let Some(vector) = self.vector {
            write!(f, " .v{vector}")?;
        }
        write!(f, " .{}", self.ty.word())?;
        if let Some(ptr) = self.ptr {
            f.write_str(" .ptr")?;
            if let Some(space) = ptr.space {
                write!(f, " {space}")?;
            }
            if let Some(align) = ptr.align {
                write!(f, " .align {align}")?;
            }
        }
        write!(f, " {}", Commas(&self.declarators))
    }
}

impl Display for Declarator<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if let Some(range) = self.range {
            write!(f, "<{range}>")?;
        }
        for dimension in &self.dimensions {
            match dimension {
                Some(extent) => write!(f, "[{extent}]")?,
                None => f.write_str("[]")?,
            }
        }
        if let Some(initializer) = &self.initializer {
            write!(f, " = {initializer}")?;
        }
        Ok(())
    }
}

impl Display for Initializer<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Initializer::Value(value) => value.fmt(f),
            Initializer::List { items, .. } => write!(f, "{{{}}}", Commas(items)),
            Initializer::Field { name, value } => write!(f, "{name} = {value}"),
        }
    }
}

impl Display for TargetRange<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        match self.count {
            Some(count) => write!(f, "<{count}>"),
            None => Ok(()),
        }
    }
}

impl Display for Instruction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.predicate)?;
        }
        self.mnemonic.fmt(f)?;
        for modifier in &self.modifiers {
            write!(f, ".{modifier}")?;
        }
        if !self.operands.is_empty() {
            write!(f, " {}", Commas(&self.operands))?;
        }
        f.write_char(';')
    }
}

/// An offset with a sign that the parser takes back apart the same way.
struct Offset<'t, 'a>(&'t Expr<'a>);

impl Display for Offset<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            ExprKind::Unary { op: UnaryOp::Minus, value } => write!(f, "-{}", Tight(value, u8::MAX)),
            _ => write!(f, "+{}", Tight(self.0, BinaryOp::Add.precedence())),
        }
    }
}

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            OperandKind::Name(name) => f.write_str(name),
            OperandKind::Member { base, member } => write!(f, "{base}.{member}"),
            OperandKind::Constant(value) => value.fmt(f),
            OperandKind::Offset { base, offset } => write!(f, "{base}{}", Offset(offset)),
            OperandKind::Element { base, index } => write!(f, "{base}[{index}]"),
            OperandKind::Not(inner) => write!(f, "!{inner}"),
            OperandKind::Minus(inner) => write!(f, "-{inner}"),
            OperandKind::Vector(items) => write!(f, "{{{}}}", Commas(items)),
            OperandKind::Address(address) => address.fmt(f),
            OperandKind::Pair(first, second) => write!(f, "{first}|{second}"),
            OperandKind::Sink => f.write_char('_'),
            OperandKind::Arguments(items) => write!(f, "({})", Commas(items)),
        }
    }
}

impl Display for Address<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        match &self.base {
            AddressBase::Name(name) => name.fmt(f)?,
            AddressBase::Member { base, member } => write!(f, "{base}.{member}")?,
            AddressBase::Absolute(value) => value.fmt(f)?,
        }
        if let Some(offset) = &self.offset {
            Offset(offset).fmt(f)?;
        }
        for coordinate in &self.coordinates {
            write!(f, ", {coordinate}")?;
        }
        f.write_str(if self.unified { "].unified" } else { "]" })
    }
}

/// An expression in parentheses when it binds no tighter than the number says.
struct Tight<'t, 'a>(&'t Expr<'a>, u8);

impl Display for Tight<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let loose = match &self.0.kind {
            ExprKind::Binary { op, .. } => op.precedence() <= self.1,
            ExprKind::Conditional(_) => true,
            ExprKind::Unary { .. } | ExprKind::Cast { .. } => self.1 == u8::MAX,
            _ => false,
        };
        if loose { write!(f, "({})", self.0) } else { self.0.fmt(f) }
    }
}

impl Display for Expr<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Integer { value, unsigned } => {
                // Values past the signed range are unsigned without being told.
                write!(f, "{value}{}", if *unsigned && *value <= i64::MAX as u64 { "U" } else { "" })
            }
            ExprKind::F32(bits) => write!(f, "0f{bits:08X}"),
            ExprKind::F64(bits) => write!(f, "0d{bits:016X}"),
            ExprKind::WarpSize => f.write_str("WARP_SZ"),
            ExprKind::Symbol(name) => f.write_str(name),
            ExprKind::Generic(inner) => write!(f, "generic({inner})"),
            ExprKind::Mask { mask, value } => write!(f, "{mask:#x}({value})"),
            ExprKind::Cast { unsigned, value } => {
                write!(f, "({}){}", if *unsigned { ".u64" } else { ".s64" }, Tight(value, 100))
            }
            ExprKind::Unary { op, value } => {
                let symbol = match op {
                    UnaryOp::Plus => '+',
                    UnaryOp::Minus => '-',
                    UnaryOp::Not => '!',
                    UnaryOp::Complement => '~',
                };
                write!(f, "{symbol}{}", Tight(value, 100))
            }
            ExprKind::Binary { op, left, right } => {
                let binds = op.precedence();
                write!(f, "{} {} {}", Tight(left, binds - 1), op.symbol(), Tight(right, binds))
            }
            ExprKind::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                write!(f, "{} ? {then} : {otherwise}", Tight(condition, 0))
            }
        }
    }
}
