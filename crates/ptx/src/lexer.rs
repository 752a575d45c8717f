//! Bytes to tokens, one at a time, without allocation.
//!
//! Two spellings depend on what stands before them: `.2d` right after a name is a modifier but `.25` elsewhere a
//! number, and `%` after a number or `)` is the remainder operator but elsewhere the start of a name.

use crate::span::Span;
use crate::token::{Token, TokenKind};

#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    /// Kind and end of the token before.
    last: Option<(TokenKind, usize)>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Lexer<'a> {
    /// `source` must be shorter than 4 GiB for spans to fit.
    pub fn new(source: &'a [u8]) -> Lexer<'a> {
        // Some editors put a byte-order mark at the start of a file.
        let at = if source.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Lexer { source, at, last: None }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.source.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, keep: impl Fn(u8) -> bool) {
        let rest = &self.source[self.at..];
        self.at += rest.iter().position(|&b| !keep(b)).unwrap_or(rest.len());
    }

    /// Skips blanks and comments. The answer is the start of a comment without an end.
    fn skip_blank(&mut self, line_begins: &mut bool) -> Option<usize> {
        loop {
            match self.byte(0) {
                b'\n' => {
                    *line_begins = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.byte(1) == b'/' => self.skip_while(|b| b != b'\n'),
                b'/' if self.byte(1) == b'*' => {
                    let start = self.at;
                    self.at += 2;
                    loop {
                        self.skip_while(|b| b != b'*');
                        if self.at >= self.source.len() {
                            return Some(start);
                        }
                        self.at += 1;
                        if self.byte(0) == b'/' {
                            self.at += 1;
                            break;
                        }
                    }
                    *line_begins |= self.source[start..self.at].contains(&b'\n');
                }
                _ => return None,
            }
        }
    }

    pub fn next_token(&mut self) -> Token {
        let mut first_on_line = self.last.is_none();
        let open_comment = self.skip_blank(&mut first_on_line);
        let start = open_comment.unwrap_or(self.at);
        let kind = if open_comment.is_some() {
            TokenKind::UnterminatedComment
        } else if self.at >= self.source.len() {
            TokenKind::End
        } else {
            self.lex(start)
        };
        self.last = Some((kind, self.at));
        Token { kind, first_on_line, span: Span::new(start as u32, self.at as u32) }
    }

    fn lex(&mut self, start: usize) -> TokenKind {
        use TokenKind::*;
        let touches_word = matches!(self.last, Some((Ident | DotWord, end)) if end == start);
        match self.byte(0) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => self.word(Ident),
            b'%' => {
                let after_value = matches!(self.last, Some((Integer | RightParen, _)));
                if is_word(self.byte(1)) && !after_value { self.word(Ident) } else { self.one(Percent) }
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() && !touches_word => self.number(),
            b'.' if is_word(self.byte(1)) => {
                self.word(DotWord);
                while self.byte(0) == b':' && self.byte(1) == b':' && is_word(self.byte(2)) {
                    self.at += 2;
                    self.skip_while(is_word);
                }
                DotWord
            }
            b'"' => self.string(),
            b'(' => self.one(LeftParen),
            b')' => self.one(RightParen),
            b'{' => self.one(LeftBrace),
            b'}' => self.one(RightBrace),
            b'[' => self.one(LeftBracket),
            b']' => self.one(RightBracket),
            b',' => self.one(Comma),
            b';' => self.one(Semicolon),
            b':' => self.one(Colon),
            b'@' => self.one(At),
            b'?' => self.one(Question),
            b'+' => self.one(Plus),
            b'-' => self.one(Minus),
            b'*' => self.one(Star),
            b'/' => self.one(Slash),
            b'~' => self.one(Tilde),
            b'^' => self.one(Caret),
            b'=' => self.one_or_two(Equal, &[(b'=', EqualEqual)]),
            b'!' => self.one_or_two(Bang, &[(b'=', BangEqual)]),
            b'&' => self.one_or_two(And, &[(b'&', AndAnd)]),
            b'|' => self.one_or_two(Or, &[(b'|', OrOr)]),
            b'<' => self.one_or_two(Less, &[(b'=', LessEqual), (b'<', ShiftLeft)]),
            b'>' => self.one_or_two(Greater, &[(b'=', GreaterEqual), (b'>', ShiftRight)]),
            _ => {
                self.at += 1;
                // One token for a whole run, so that noise costs few tokens.
                self.skip_while(|b| b >= 0x7f || (b < 0x20 && !matches!(b, b'\t'..=b'\r')));
                Unknown
            }
        }
    }

    fn one(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    fn one_or_two(&mut self, one: TokenKind, two: &[(u8, TokenKind)]) -> TokenKind {
        self.at += 1;
        for &(second, kind) in two {
            if self.byte(0) == second {
                self.at += 1;
                return kind;
            }
        }
        one
    }

    fn word(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        self.skip_while(is_word);
        kind
    }

    fn string(&mut self) -> TokenKind {
        self.at += 1;
        loop {
            self.skip_while(|b| !matches!(b, b'"' | b'\\' | b'\n'));
            match self.byte(0) {
                b'"' => return self.one(TokenKind::String),
                b'\\' if self.at + 1 < self.source.len() && self.byte(1) != b'\n' => self.at += 2,
                b'\\' => self.at += 1,
                _ => return TokenKind::UnterminatedString,
            }
        }
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        if self.byte(0) == b'0' {
            let (kind, digits, is_digit): (_, _, fn(&u8) -> bool) = match self.byte(1) {
                b'x' | b'X' => (TokenKind::Integer, None, u8::is_ascii_hexdigit),
                b'b' | b'B' => (TokenKind::Integer, None, |b| matches!(b, b'0' | b'1')),
                b'f' | b'F' => (TokenKind::F32Bits, Some(8), u8::is_ascii_hexdigit),
                b'd' | b'D' => (TokenKind::F64Bits, Some(16), u8::is_ascii_hexdigit),
                _ => return self.decimal(start),
            };
            self.at += 2;
            self.skip_while(is_word);
            let mut body = &self.source[start + 2..self.at];
            if let (TokenKind::Integer, [rest @ .., b'U' | b'u']) = (kind, body) {
                body = rest;
            }
            let right_length = digits.map_or(!body.is_empty(), |n: usize| body.len() == n);
            return if right_length && body.iter().all(is_digit) { kind } else { TokenKind::BadNumber };
        }
        self.decimal(start)
    }

    fn decimal(&mut self, start: usize) -> TokenKind {
        self.skip_while(|b| b.is_ascii_digit());
        let mut kind = TokenKind::Integer;
        if self.byte(0) == b'.' {
            kind = TokenKind::Decimal;
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit());
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                kind = TokenKind::Decimal;
                self.at += 1 + sign;
                self.skip_while(|b| b.is_ascii_digit());
            }
        }
        let digits = &self.source[start..self.at];
        if kind == TokenKind::Integer {
            if matches!(self.byte(0), b'U' | b'u') && !is_word(self.byte(1)) {
                self.at += 1;
            }
            // A leading zero makes it octal.
            if digits.len() > 1 && digits[0] == b'0' && digits.iter().any(|b| *b > b'7') {
                kind = TokenKind::BadNumber;
            }
        }
        if is_word(self.byte(0)) {
            self.skip_while(is_word);
            kind = TokenKind::BadNumber;
        }
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> Vec<(TokenKind, &str)> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut all = Vec::new();
        loop {
            let token = lexer.next_token();
            if token.kind == TokenKind::End {
                return all;
            }
            all.push((token.kind, &text[token.span.start as usize..token.span.end as usize]));
        }
    }

    #[test]
    fn a_dot_and_a_digit_is_a_modifier_only_after_a_word() {
        use TokenKind::*;
        assert_eq!(lex("tex.2d.v4"), [(Ident, "tex"), (DotWord, ".2d"), (DotWord, ".v4")]);
        assert_eq!(lex("{.05,.1}")[1], (Decimal, ".05"));
        assert_eq!(lex(".L2::128B"), [(DotWord, ".L2::128B")]);
        assert_eq!(lex(".mbarrier::complete_tx::bytes").len(), 1);
    }

    #[test]
    fn percent_is_an_operator_after_a_value() {
        use TokenKind::*;
        assert_eq!(lex("10 %3"), [(Integer, "10"), (Percent, "%"), (Integer, "3")]);
        assert_eq!(lex("%r3"), [(Ident, "%r3")]);
    }

    #[test]
    fn numbers() {
        use TokenKind::*;
        for (text, kind) in [
            ("0", Integer),
            ("0xFFu", Integer),
            ("0b101U", Integer),
            ("017", Integer),
            ("42U", Integer),
            ("1.5e-3", Decimal),
            ("1e9", Decimal),
            ("2.", Decimal),
            ("0f3F800000", F32Bits),
            ("0D3ff0000000000000", F64Bits),
            ("0f3F80", BadNumber),
            ("089", BadNumber),
            ("0x", BadNumber),
            ("0b12", BadNumber),
            ("12ab", BadNumber),
        ] {
            assert_eq!(lex(text), [(kind, text)]);
        }
    }

    #[test]
    fn comments_strings_and_noise() {
        use TokenKind::*;
        assert_eq!(lex("a // b\n /* c \n */ d"), [(Ident, "a"), (Ident, "d")]);
        assert_eq!(lex("a /* b"), [(Ident, "a"), (UnterminatedComment, "/* b")]);
        assert_eq!(lex("\"a\\\"b\""), [(String, "\"a\\\"b\"")]);
        assert_eq!(lex("\"ab\nc"), [(UnterminatedString, "\"ab"), (Ident, "c")]);
        assert_eq!(Lexer::new(b"\0\x01\xff\xfe").next_token().span, Span::new(0, 4));
    }
}
