//! The syntax tree of a PTX module. Names borrow from the source; every node has its span.
//!
//! Instructions stay generic here: a mnemonic, its modifiers and its operands. Which of them exist is the
//! business of [`crate::opcodes`], which names are declared that of [`crate::resolve`].

use crate::span::Span;
pub use crate::types::{ScalarType, SharedWindow, StateSpace};

/// A word of the source. For words with a dot the text is without it and the span with it.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    pub text: &'a str,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    pub directives: Vec<Directive<'a>>,
}

#[derive(Clone, Debug)]
pub struct Directive<'a> {
    pub span: Span,
    pub kind: DirectiveKind<'a>,
}

/// What stands at the outermost level of a module.
#[derive(Clone, Debug)]
pub enum DirectiveKind<'a> {
    Version { major: u32, minor: u32 },
    Target(Vec<Name<'a>>),
    AddressSize(u32),
    File(FileDirective<'a>),
    Loc(Loc<'a>),
    Section(Section<'a>),
    Pragma(Vec<StringLiteral<'a>>),
    Alias { alias: Name<'a>, aliasee: Name<'a> },
    Variable(Variable<'a>),
    Function(Box<Function<'a>>),
}

impl<'a> Module<'a> {
    pub fn version(&self) -> Option<(u32, u32)> {
        self.directives.iter().find_map(|d| match d.kind {
            DirectiveKind::Version { major, minor } => Some((major, minor)),
            _ => None,
        })
    }

    pub fn address_size(&self) -> Option<u32> {
        self.directives.iter().find_map(|d| match d.kind {
            DirectiveKind::AddressSize(bits) => Some(bits),
            _ => None,
        })
    }

    pub fn targets(&self) -> impl Iterator<Item = &Name<'a>> {
        self.directives
            .iter()
            .filter_map(|d| match &d.kind {
                DirectiveKind::Target(names) => Some(names),
                _ => None,
            })
            .flatten()
    }

    pub fn functions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.directives.iter().filter_map(|d| match &d.kind {
            DirectiveKind::Function(function) => Some(&**function),
            _ => None,
        })
    }

    pub fn variables(&self) -> impl Iterator<Item = &Variable<'a>> {
        self.directives.iter().filter_map(|d| match &d.kind {
            DirectiveKind::Variable(variable) => Some(variable),
            _ => None,
        })
    }
}

/// The text between the quotes, escapes untouched.
#[derive(Clone, Copy, Debug)]
pub struct StringLiteral<'a> {
    pub text: &'a str,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct FileDirective<'a> {
    pub index: u32,
    pub name: StringLiteral<'a>,
    pub timestamp_and_size: Option<(u64, u64)>,
}

/// A place in a source file: `.loc file line column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

#[derive(Clone, Debug)]
pub struct Loc<'a> {
    pub span: Span,
    pub place: SourcePlace,
    pub inlined: Option<Inlined<'a>>,
}

/// `function_name label+offset, inlined_at file line column`
#[derive(Clone, Debug)]
pub struct Inlined<'a> {
    /// A label of the section `.debug_str`, or the section's own name (then with its dot).
    pub function: Name<'a>,
    pub offset: i64,
    pub at: SourcePlace,
}

#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Without the leading dot.
    pub name: Name<'a>,
    pub items: Vec<SectionItem<'a>>,
}

#[derive(Clone, Debug)]
pub enum SectionItem<'a> {
    Label(Name<'a>),
    Data { ty: ScalarType, values: Vec<Expr<'a>>, span: Span },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    Extern,
    Visible,
    Weak,
    Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    Entry,
    Func,
}

#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// From the linkage to the end of the header.
    pub span: Span,
    pub linkage: Option<Linkage>,
    pub kind: FunctionKind,
    pub attributes: Vec<Attribute<'a>>,
    pub name: Name<'a>,
    /// Return parameters; each variable has one declarator.
    pub returns: Vec<Variable<'a>>,
    pub params: Vec<Variable<'a>>,
    pub directives: Vec<FunctionDirective<'a>>,
    /// None for a prototype.
    pub body: Option<Block<'a>>,
}

#[derive(Clone, Debug)]
pub struct FunctionDirective<'a> {
    pub span: Span,
    pub kind: FunctionDirectiveKind<'a>,
}

#[derive(Clone, Debug)]
pub enum FunctionDirectiveKind<'a> {
    MaxNReg(u32),
    /// One to three extents.
    MaxNTid(Vec<u32>),
    ReqNTid(Vec<u32>),
    ReqNCtaPerCluster(Vec<u32>),
    MinNCtaPerSm(u32),
    MaxNCtaPerSm(u32),
    MaxClusterRank(u32),
    ExplicitCluster,
    BlocksAreClusters,
    NoReturn,
    AbiPreserve(u32),
    AbiPreserveControl(u32),
    Pragma(Vec<StringLiteral<'a>>),
}

/// One entry of `.attribute(...)`: `.managed`, `.unified(a, b)`.
#[derive(Clone, Debug)]
pub struct Attribute<'a> {
    pub name: Name<'a>,
    pub arguments: Vec<Expr<'a>>,
}

/// A declaration: variables, registers or one parameter.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    pub span: Span,
    pub linkage: Option<Linkage>,
    pub space: StateSpace,
    pub align: Option<u32>,
    pub attributes: Vec<Attribute<'a>>,
    /// Elements of a vector type: 2, 4 or 8.
    pub vector: Option<u8>,
    pub ty: ScalarType,
    /// What a kernel parameter points to.
    pub ptr: Option<PointerAttribute>,
    pub declarators: Vec<Declarator<'a>>,
}

/// `.ptr .space .align n`
#[derive(Clone, Copy, Debug)]
pub struct PointerAttribute {
    pub space: Option<StateSpace>,
    pub align: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Declarator<'a> {
    pub span: Span,
    pub name: Name<'a>,
    /// `%r<10>` declares `%r0` to `%r9`.
    pub range: Option<u32>,
    /// Array extents, outermost first; None for `[]`.
    pub dimensions: Vec<Option<Expr<'a>>>,
    pub initializer: Option<Initializer<'a>>,
}

#[derive(Clone, Debug)]
pub enum Initializer<'a> {
    Value(Expr<'a>),
    List {
        items: Vec<Initializer<'a>>,
        span: Span,
    },
    /// A field of an opaque type: `filter_mode = linear`.
    Field {
        name: Name<'a>,
        value: Expr<'a>,
    },
}

#[derive(Clone, Debug)]
pub struct Block<'a> {
    pub span: Span,
    pub statements: Vec<Statement<'a>>,
}

#[derive(Clone, Debug)]
pub enum Statement<'a> {
    Label(Name<'a>),
    Instruction(Instruction<'a>),
    Variable(Variable<'a>),
    Block(Block<'a>),
    Loc(Loc<'a>),
    Pragma {
        strings: Vec<StringLiteral<'a>>,
        span: Span,
    },
    /// `label: .branchtargets L1, L2;` The targets may be ranges: `N<5>`.
    BranchTargets {
        label: Name<'a>,
        targets: Vec<TargetRange<'a>>,
        span: Span,
    },
    /// `label: .calltargets f, g;`
    CallTargets {
        label: Name<'a>,
        targets: Vec<Name<'a>>,
        span: Span,
    },
    CallPrototype(CallPrototype<'a>),
}

#[derive(Clone, Copy, Debug)]
pub struct TargetRange<'a> {
    pub name: Name<'a>,
    pub count: Option<u32>,
}

/// `label: .callprototype (returns) _ (params) directives;`
#[derive(Clone, Debug)]
pub struct CallPrototype<'a> {
    pub span: Span,
    pub label: Name<'a>,
    pub returns: Vec<Variable<'a>>,
    pub params: Vec<Variable<'a>>,
    pub directives: Vec<FunctionDirective<'a>>,
}

/// `@%p` or `@!%p`
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    pub span: Span,
    pub negated: bool,
    pub predicate: Name<'a>,
}

#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    /// From the guard to the semicolon.
    pub span: Span,
    pub guard: Option<Guard<'a>>,
    pub mnemonic: Name<'a>,
    /// In source order, without their dots.
    pub modifiers: Vec<Name<'a>>,
    pub operands: Vec<Operand<'a>>,
}

/// The parts of a `call`.
#[derive(Clone, Copy, Debug)]
pub struct CallParts<'i, 'a> {
    pub returns: &'i [Operand<'a>],
    /// A function's name or a register.
    pub target: Name<'a>,
    pub arguments: &'i [Operand<'a>],
    /// For an indirect call: the label of its targets or of its prototype.
    pub prototype: Option<Name<'a>>,
}

impl<'a> Instruction<'a> {
    pub fn has_modifier(&self, word: &str) -> bool {
        self.modifiers.iter().any(|m| m.text == word)
    }

    /// The modifiers that are types, in order.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> {
        self.modifiers.iter().filter_map(|m| ScalarType::from_word(m.text))
    }

    /// Mnemonic and modifiers as one span.
    pub fn opcode_span(&self) -> Span {
        self.modifiers.last().map_or(self.mnemonic.span, |last| self.mnemonic.span.to(last.span))
    }

    /// Takes a `call` apart; None when it is no call or its operands have another shape.
    pub fn call_parts(&self) -> Option<CallParts<'_, 'a>> {
        if self.mnemonic.text != "call" {
            return None;
        }
        let mut rest = self.operands.as_slice();
        let returns = take_arguments(&mut rest);
        let (target, after) = rest.split_first()?;
        let target = target.as_name()?;
        rest = after;
        let arguments = take_arguments(&mut rest);
        let prototype = match rest {
            [] => None,
            [last] => Some(last.as_name()?),
            _ => return None,
        };
        Some(CallParts { returns, target, arguments, prototype })
    }
}

/// The list in parentheses at the front, if one is there.
fn take_arguments<'i, 'a>(rest: &mut &'i [Operand<'a>]) -> &'i [Operand<'a>] {
    match *rest {
        [Operand { kind: OperandKind::Arguments(items), .. }, after @ ..] => {
            *rest = after;
            items
        }
        _ => &[],
    }
}

#[derive(Clone, Debug)]
pub struct Operand<'a> {
    pub span: Span,
    pub kind: OperandKind<'a>,
}

#[derive(Clone, Debug)]
pub enum OperandKind<'a> {
    /// A register, special register, variable, label or function.
    Name(&'a str),
    /// `%tid.x`, `%v.y`, `%r1.b0`, `%r1.h10`
    Member {
        base: Name<'a>,
        member: Name<'a>,
    },
    /// A constant.
    Constant(Expr<'a>),
    /// The address of a variable with an offset: `table+8`.
    Offset {
        base: Name<'a>,
        offset: Expr<'a>,
    },
    /// `table[index]`, where the index is a constant, a register, or a register and a constant.
    Element {
        base: Name<'a>,
        index: Box<Operand<'a>>,
    },
    /// `!%p`
    Not(Box<Operand<'a>>),
    /// `-%r` (video instructions)
    Minus(Box<Operand<'a>>),
    /// `{a, b, c, d}`
    Vector(Vec<Operand<'a>>),
    Address(Box<Address<'a>>),
    /// `%p|%q`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `_`
    Sink,
    /// `(a, b)` of a call.
    Arguments(Vec<Operand<'a>>),
}

impl<'a> Operand<'a> {
    pub fn as_name(&self) -> Option<Name<'a>> {
        match self.kind {
            OperandKind::Name(text) => Some(Name { text, span: self.span }),
            _ => None,
        }
    }
}

/// `[base + offset, coordinates].unified`
#[derive(Clone, Debug)]
pub struct Address<'a> {
    pub base: AddressBase<'a>,
    pub offset: Option<Expr<'a>>,
    /// What follows the first comma: sampler and coordinates of a texture or tensor.
    pub coordinates: Vec<Operand<'a>>,
    pub unified: bool,
}

#[derive(Clone, Debug)]
pub enum AddressBase<'a> {
    /// A register or a variable.
    Name(Name<'a>),
    Member {
        base: Name<'a>,
        member: Name<'a>,
    },
    Absolute(Expr<'a>),
}

/// A constant expression. Symbols appear in initialisers and sections only.
#[derive(Clone, Debug)]
pub struct Expr<'a> {
    pub span: Span,
    pub kind: ExprKind<'a>,
}

#[derive(Clone, Debug)]
pub enum ExprKind<'a> {
    Integer {
        value: u64,
        unsigned: bool,
    },
    /// `0f3F800000`
    F32(u32),
    /// Bits of a double, from `0d...` or from decimal digits.
    F64(u64),
    WarpSize,
    /// The address of a variable or function. Names of sections keep their dot.
    Symbol(&'a str),
    /// `generic(symbol)`
    Generic(Box<Expr<'a>>),
    /// `0xff00(value)`: the bits of the value under the mask, moved to the bottom.
    Mask {
        mask: u64,
        value: Box<Expr<'a>>,
    },
    /// `(.s64)` or `(.u64)`
    Cast {
        unsigned: bool,
        value: Box<Expr<'a>>,
    },
    Unary {
        op: UnaryOp,
        value: Box<Expr<'a>>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr<'a>>,
        right: Box<Expr<'a>>,
    },
    /// condition, then, else
    Conditional(Box<[Expr<'a>; 3]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    Not,
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    ShiftLeft,
    ShiftRight,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Xor,
    Or,
    LogicalAnd,
    LogicalOr,
}

impl BinaryOp {
    /// Higher binds tighter, as in C.
    pub fn precedence(self) -> u8 {
        use BinaryOp::*;
        match self {
            Mul | Div | Rem => 10,
            Add | Sub => 9,
            ShiftLeft | ShiftRight => 8,
            Less | Greater | LessEqual | GreaterEqual => 7,
            Equal | NotEqual => 6,
            And => 5,
            Xor => 4,
            Or => 3,
            LogicalAnd => 2,
            LogicalOr => 1,
        }
    }

    pub fn symbol(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Mul => "*",
            Div => "/",
            Rem => "%",
            Add => "+",
            Sub => "-",
            ShiftLeft => "<<",
            ShiftRight => ">>",
            Less => "<",
            Greater => ">",
            LessEqual => "<=",
            GreaterEqual => ">=",
            Equal => "==",
            NotEqual => "!=",
            And => "&",
            Xor => "^",
            Or => "|",
            LogicalAnd => "&&",
            LogicalOr => "||",
        }
    }
}
