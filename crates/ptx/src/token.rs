//! The tokens of PTX.

use crate::span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name: `add`, `%r1`, `$L__BB0_1`, `_`.
    Ident,
    /// A dot and a word, with its `::` parts: `.s32`, `.L2::128B`, `.2d`.
    DotWord,
    /// `42`, `0x2a`, `052`, `0b101010`, each also with `U`.
    Integer,
    /// A decimal number with a point or an exponent.
    Decimal,
    /// `0f3F800000`
    F32Bits,
    /// `0d3FF0000000000000`
    F64Bits,
    /// Starts like a number but is none.
    BadNumber,
    String,
    UnterminatedString,
    UnterminatedComment,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Comma,
    Semicolon,
    Colon,
    At,
    Equal,
    Question,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Bang,
    Tilde,
    And,
    Or,
    Caret,
    AndAnd,
    OrOr,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    EqualEqual,
    BangEqual,
    ShiftLeft,
    ShiftRight,
    /// Bytes that begin no token.
    Unknown,
    End,
}

impl TokenKind {
    /// How an error message names what it expected.
    pub fn describe(self) -> &'static str {
        use TokenKind::*;
        match self {
            Ident => "a name",
            DotWord => "a word with a dot",
            Integer => "an integer",
            Decimal | F32Bits | F64Bits | BadNumber => "a number",
            String | UnterminatedString => "a string",
            UnterminatedComment => "a comment",
            LeftParen => "`(`",
            RightParen => "`)`",
            LeftBrace => "`{`",
            RightBrace => "`}`",
            LeftBracket => "`[`",
            RightBracket => "`]`",
            Comma => "`,`",
            Semicolon => "`;`",
            Colon => "`:`",
            At => "`@`",
            Equal => "`=`",
            Question => "`?`",
            Plus => "`+`",
            Minus => "`-`",
            Star => "`*`",
            Slash => "`/`",
            Percent => "`%`",
            Bang => "`!`",
            Tilde => "`~`",
            And => "`&`",
            Or => "`|`",
            Caret => "`^`",
            AndAnd => "`&&`",
            OrOr => "`||`",
            Less => "`<`",
            Greater => "`>`",
            LessEqual => "`<=`",
            GreaterEqual => "`>=`",
            EqualEqual => "`==`",
            BangEqual => "`!=`",
            ShiftLeft => "`<<`",
            ShiftRight => "`>>`",
            Unknown => "an unknown character",
            End => "the end of the file",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// No other token stands before it on its line.
    pub first_on_line: bool,
    pub span: Span,
}
