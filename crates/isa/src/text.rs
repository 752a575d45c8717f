//! Assembler and disassembler: `@!P0 FFMA.RZ.FTZ R1, -R2.reuse, c[0x0][0x210], |R3| ;`
//!
//! Operands stand in the row's order. What a word cannot say otherwise is written: predicate destinations always, E always.

use crate::field::Field;
use crate::inst::{Inst, Operand, Src};
use crate::reg::{BReg, Pred, PredUse, Reg, Special, UReg};
use crate::table::{Op, Role, TABLE};
use std::fmt::{self, Display, Formatter};

impl Display for Src {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}{}", if self.neg { "-" } else { "" }, if self.abs { "|" } else { "" })?;
        match self.operand {
            Operand::None => write!(f, "RZ")?,
            Operand::Reg(r) => write!(f, "{r}")?,
            Operand::UReg(r) => write!(f, "{r}")?,
            Operand::Imm(bits) => write!(f, "{bits:#x}")?,
            Operand::Const { bank, offset } => write!(f, "c[{bank:#x}][{offset:#x}]")?,
        }
        write!(f, "{}{}", if self.abs { "|" } else { "" }, if self.reuse { ".reuse" } else { "" })
    }
}

/// Numbers that are written as operands, not as suffixes.
fn is_operand_field(field: Field) -> bool {
    field.info().names.is_empty()
}

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        if self.guard != PredUse::TRUE {
            write!(f, "@{} ", self.guard)?;
        }
        let row = self.op.row();
        f.write_str(row.mnemonic)?;
        for &field in row.fields {
            if let Some(&name) = field.info().names.get(self.field(field) as usize)
                && !name.is_empty()
            {
                write!(f, ".{name}")?;
            }
        }
        for (n, &role) in row.roles.iter().enumerate() {
            f.write_str(if n == 0 { " " } else { ", " })?;
            self.write_role(f, role)?;
        }
        Ok(())
    }
}

impl Inst {
    fn write_role(&self, f: &mut Formatter, role: Role) -> fmt::Result {
        use Role::*;
        match role {
            D | D2 | DW | DT | DTo | DM => write!(f, "{}", self.dst),
            U | U2 => write!(f, "{}", UReg(self.dst.0)),
            Pd0 => write!(f, "{}", self.pd[0]),
            Pd1 => write!(f, "{}", self.pd[1]),
            Ps0 => write!(f, "{}", self.ps[0]),
            Ps1 => write!(f, "{}", self.ps[1]),
            Ps2 => write!(f, "{}", self.ps[2]),
            Addr | CAddr => {
                if role == CAddr {
                    write!(f, "c[{:#x}]", self.field(Field::Bank))?;
                }
                write!(f, "[{}{}", self.src[0], if self.field(Field::E64) != 0 { ".64" } else { "" })?;
                if let Some(u) = self.address_ureg() {
                    write!(f, "+{u}")?;
                }
                match self.offset() {
                    0 => {}
                    o if o < 0 => write!(f, "-{:#x}", o.unsigned_abs())?,
                    o => write!(f, "+{o:#x}")?,
                }
                write!(f, "]")
            }
            Target => write!(f, "{:#x}", self.target().unwrap_or(0)),
            Num(Field::Sr) => match Special::from_bits(self.field(Field::Sr)) {
                Some(s) => write!(f, "{}", s.name()),
                None => write!(f, "SR_{}", self.field(Field::Sr)),
            },
            Num(Field::Bar4) => write!(f, "{}", BReg(self.field(Field::Bar4) as u8)),
            Num(field) => write!(f, "{:#x}", self.field(field)),
            _ => write!(f, "{}", self.source(role).unwrap_or_default()),
        }
    }
}

/// Why a line is no instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Byte in the line.
    pub at: usize,
    pub message: String,
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "at column {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Parses one instruction; a trailing `;` is allowed.
pub fn parse(line: &str) -> Result<Inst, ParseError> {
    Parser { text: line, at: 0 }.instruction()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError { at: self.at, message: message.into() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), ParseError> {
        if self.eat(token) { Ok(()) } else { self.fail(format!("expected `{token}`")) }
    }

    /// Letters, digits, `_` and `.`.
    fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<u32, ParseError> {
        self.skip_space();
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        let parsed = match word.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => word.parse(),
        };
        parsed.or_else(|_| {
            self.at = start;
            self.fail("expected a number")
        })
    }

    fn indexed(&mut self, prefix: &str, zero: &str, zero_value: u8, count: usize) -> Result<u8, ParseError> {
        self.skip_space();
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        if !zero.is_empty() && word == zero {
            return Ok(zero_value);
        }
        match word.strip_prefix(prefix).and_then(|n| n.parse::<usize>().ok()) {
            Some(n) if n < count => Ok(n as u8),
            _ => {
                self.at = start;
                self.fail(format!(
                    "expected {prefix}0 to {prefix}{}{}{zero}",
                    count - 1,
                    if zero.is_empty() { "" } else { " or " }
                ))
            }
        }
    }

    fn reg(&mut self) -> Result<Reg, ParseError> {
        self.indexed("R", "RZ", 255, Reg::COUNT).map(Reg)
    }

    fn ureg(&mut self) -> Result<UReg, ParseError> {
        self.indexed("UR", "URZ", UReg::URZ.0, UReg::COUNT).map(UReg)
    }

    fn pred(&mut self) -> Result<Pred, ParseError> {
        self.indexed("P", "PT", 7, Pred::COUNT).map(Pred)
    }

    fn pred_use(&mut self) -> Result<PredUse, ParseError> {
        let neg = self.eat("!");
        Ok(PredUse { pred: self.pred()?, neg })
    }

    fn src(&mut self) -> Result<Src, ParseError> {
        let neg = self.eat("-");
        let abs = self.eat("|");
        self.skip_space();
        let operand = match self.rest().as_bytes().first() {
            Some(b'R') => Operand::Reg(self.reg()?),
            Some(b'U') => Operand::UReg(self.ureg()?),
            Some(b'c') => {
                self.expect("c[")?;
                let bank = self.number()?;
                self.expect("][")?;
                let offset = self.number()?;
                self.expect("]")?;
                match (u8::try_from(bank), u16::try_from(offset)) {
                    (Ok(bank), Ok(offset)) if bank < 32 => Operand::Const { bank, offset },
                    _ => return self.fail("no such constant"),
                }
            }
            _ => Operand::Imm(self.number()?),
        };
        if abs {
            self.expect("|")?;
        }
        let reuse = self.eat(".reuse");
        Ok(Src { operand, neg, abs, reuse })
    }

    fn instruction(mut self) -> Result<Inst, ParseError> {
        let guard = if self.eat("@") { self.pred_use()? } else { PredUse::TRUE };
        let mut inst = self.mnemonic()?;
        inst.guard = guard;
        for (n, &role) in inst.op.row().roles.iter().enumerate() {
            if n > 0 {
                self.expect(",")?;
            }
            self.operand(&mut inst, role)?;
        }
        self.eat(";");
        self.skip_space();
        if !self.rest().is_empty() {
            return self.fail("expected the end of the instruction");
        }
        let inst = inst.canonical();
        match inst.encode() {
            Ok(_) => Ok(inst),
            Err(e) => self.fail(e.to_string()),
        }
    }

    /// The longest mnemonic of the table that the word starts with, then suffixes, each to the first field that knows it.
    fn mnemonic(&mut self) -> Result<Inst, ParseError> {
        self.skip_space();
        let start = self.at;
        let word = self.word();
        let fits = |m: &str| word == m || word.strip_prefix(m).is_some_and(|r| r.starts_with('.'));
        let Some(row) = TABLE.iter().filter(|r| fits(r.mnemonic)).max_by_key(|r| r.mnemonic.len()) else {
            self.at = start;
            return self.fail(format!("unknown instruction `{word}`"));
        };
        let mut inst = Inst::new(row.op);
        let mut rest = word[row.mnemonic.len()..].trim_start_matches('.');
        for &field in row.fields.iter().filter(|&&f| !is_operand_field(f)) {
            let names = field.info().names;
            let longest = (0..names.len())
                .filter(|&v| !names[v].is_empty())
                .filter(|&v| {
                    rest == names[v] || rest.strip_prefix(names[v]).is_some_and(|r| r.starts_with('.'))
                })
                .max_by_key(|&v| names[v].len());
            match longest {
                Some(v) => {
                    inst.set_field(field, v as u32);
                    rest = rest[names[v].len()..].trim_start_matches('.');
                }
                None if names.first() == Some(&"") => {}
                None => {
                    self.at = start;
                    return self.fail(format!("`{}` needs one of {}", row.mnemonic, names.join(", ")));
                }
            }
        }
        if !rest.is_empty() {
            self.at = start;
            return self.fail(format!("`{}` takes no `.{rest}` here", row.mnemonic));
        }
        Ok(inst)
    }

    fn operand(&mut self, inst: &mut Inst, role: Role) -> Result<(), ParseError> {
        use Role::*;
        match role {
            D | D2 | DW | DT | DTo | DM => inst.dst = self.reg()?,
            U | U2 => inst.dst = Reg(self.ureg()?.0),
            Pd0 => inst.pd[0] = self.pred()?,
            Pd1 => inst.pd[1] = self.pred()?,
            Ps0 => inst.ps[0] = self.pred_use()?,
            Ps1 => inst.ps[1] = self.pred_use()?,
            Ps2 => inst.ps[2] = self.pred_use()?,
            A | A2 | AFrom => inst.src[0] = self.src()?,
            B | B2 => inst.src[1] = self.src()?,
            C | C2 | CW | CT => inst.src[2] = self.src()?,
            E | E2 | ET => inst.e = self.reg()?,
            Target => {
                let pc = self.number()?;
                inst.set_target(pc);
            }
            Addr | CAddr => self.address(inst, role)?,
            Num(Field::Sr) => {
                let start = self.at;
                let word = self.word();
                match Special::ALL.iter().position(|s| s.name() == word) {
                    Some(n) => inst.set_field(Field::Sr, n as u32),
                    None => {
                        self.at = start;
                        return self.fail(format!("unknown special register `{word}`"));
                    }
                }
            }
            Num(Field::Bar4) => {
                let b = self.indexed("B", "", 0, BReg::COUNT)?;
                inst.set_field(Field::Bar4, u32::from(b));
            }
            Num(field) => {
                let value = self.number()?;
                if value >> field.info().bits != 0 {
                    return self.fail(format!(
                        "{value:#x} is too large: {} has {} bits",
                        field.info().name,
                        field.info().bits
                    ));
                }
                inst.set_field(field, value);
            }
        }
        Ok(())
    }

    fn address(&mut self, inst: &mut Inst, role: Role) -> Result<(), ParseError> {
        if role == Role::CAddr {
            self.expect("c[")?;
            let bank = self.number()?;
            if bank >> Field::Bank.info().bits != 0 {
                return self.fail("no such bank");
            }
            inst.set_field(Field::Bank, bank);
            self.expect("]")?;
        }
        self.expect("[")?;
        inst.src[0] = self.src()?;
        self.eat(".64");
        self.skip_space();
        if self.rest().starts_with("+UR") {
            self.at += 1;
            let u = self.ureg()?;
            if u == UReg::URZ {
                return self.fail("URZ adds nothing: leave it out");
            }
            inst.set_field(Field::Ur, u32::from(u.0) + 1);
        }
        let offset = if self.eat("+") {
            self.number()?
        } else if self.eat("-") {
            self.number()?.wrapping_neg()
        } else {
            0
        };
        inst.src[1] = Src::imm(offset);
        self.expect("]")
    }
}

/// A whole program, a line an instruction with its place.
pub fn listing(code: &[Inst]) -> String {
    code.iter().enumerate().map(|(pc, inst)| format!("/*{pc:04x}*/ {inst} ;\n")).collect()
}

/// Every operation's name, for messages.
pub fn mnemonics() -> impl Iterator<Item = (Op, &'static str)> {
    TABLE.iter().map(|r| (r.op, r.mnemonic))
}
