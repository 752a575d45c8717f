//! The table is consistent, and word and text forms carry every instruction through unchanged.

use isa::field::Field;
use isa::inst::{Inst, Operand, Src};
use isa::reg::{Pred, PredUse, Reg, Special, UReg};
use isa::table::{Op, Role, TABLE, Unit};
use proptest::prelude::*;

#[test]
fn rows_fit_the_word_and_are_unambiguous() {
    for (n, row) in TABLE.iter().enumerate() {
        assert_eq!(row.op as usize, n);
        let bits: u32 = row.fields.iter().map(|f| f.info().bits).sum();
        assert!(bits <= isa::encode::MODS_BITS, "{} has {bits} bits of fields", row.mnemonic);
        assert_eq!(TABLE.iter().filter(|r| r.mnemonic == row.mnemonic).count(), 1, "{} twice", row.mnemonic);
        for role in row.roles {
            if let Role::Num(f) = role {
                assert!(row.fields.contains(f), "{} writes {f:?} but does not have it", row.mnemonic);
            }
        }
        assert!(!row.doc.is_empty());
    }
    assert!(Special::ALL.len() <= 1 << Field::Sr.info().bits);
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/isa.md");
    let page = isa::reference::page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).expect("docs/isa.md is writable");
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == page,
        "docs/isa.md is old: run BLESS=1 cargo test -p isa"
    );
}

/// A random instruction of the row: any field values, operands in the places the row has.
fn instruction() -> impl Strategy<Value = Inst> {
    (0..TABLE.len(), prop::collection::vec(any::<u32>(), 24)).prop_map(|(n, r)| {
        let row = &TABLE[n];
        let uniform = row.unit == Unit::Uniform && row.op != Op::R2ur;
        let mut inst = Inst::new(row.op);
        let mut next = {
            let mut k = 0;
            move || {
                k += 1;
                r[k % r.len()].rotate_left(k as u32)
            }
        };
        for &field in row.fields {
            let info = field.info();
            let count = match field {
                Field::Sr => Special::ALL.len() as u32,
                Field::Ur => UReg::COUNT as u32,
                _ if info.names.is_empty() => 1 << info.bits,
                _ => info.names.len() as u32,
            };
            inst.set_field(field, next() % count);
        }
        inst.guard = PredUse { pred: Pred(next() as u8 & 7), neg: next() & 1 == 1 };
        let wide_slot = next() % 3;
        for &role in row.roles {
            let width = inst.width(role).max(1).next_power_of_two();
            let reg = if next() % 8 == 0 { Reg::RZ } else { Reg((next() % (248 / width) * width) as u8) };
            let ureg = UReg((next() % 31 * 2) as u8);
            let mut src = |slot: u32, wide_ok: bool| {
                let operand = match next() % 4 {
                    _ if slot != wide_slot || !wide_ok => {
                        if uniform {
                            Operand::UReg(ureg)
                        } else {
                            Operand::Reg(reg)
                        }
                    }
                    0 if width < 2 || row.unit == Unit::Fp64 => Operand::Imm(next()),
                    1 => Operand::Const { bank: (next() % 5) as u8, offset: next() as u16 },
                    2 => Operand::UReg(ureg),
                    _ => {
                        if uniform {
                            Operand::UReg(ureg)
                        } else {
                            Operand::Reg(reg)
                        }
                    }
                };
                Src { operand, neg: next() & 1 == 1, abs: next() & 2 == 2, reuse: next() & 4 == 4 }
            };
            match role {
                Role::D | Role::D2 | Role::DW | Role::DT | Role::DTo | Role::DM => inst.dst = reg,
                Role::U | Role::U2 => inst.dst = Reg(ureg.0),
                Role::Pd0 => inst.pd[0] = Pred(next() as u8 & 7),
                Role::Pd1 => inst.pd[1] = Pred(next() as u8 & 7),
                Role::Ps0 => inst.ps[0] = PredUse { pred: Pred(next() as u8 & 7), neg: next() & 1 == 1 },
                Role::Ps1 => inst.ps[1] = PredUse { pred: Pred(next() as u8 & 7), neg: next() & 1 == 1 },
                Role::Ps2 => inst.ps[2] = PredUse { pred: Pred(next() as u8 & 7), neg: next() & 1 == 1 },
                // An address leaves the wide slot to its offset.
                Role::Addr | Role::CAddr => {
                    inst.src[0] = if uniform {
                        Src { operand: Operand::UReg(ureg), ..Src::NONE }
                    } else {
                        Src::reg(reg)
                    };
                    inst.src[1] = Src::imm(next() & 0xff_ffff);
                }
                Role::A | Role::A2 | Role::AFrom => inst.src[0] = src(0, !row.roles.contains(&Role::Target)),
                Role::B | Role::B2 => inst.src[1] = src(1, true),
                Role::C | Role::C2 => inst.src[2] = src(2, !row.roles.contains(&Role::Addr)),
                Role::CW | Role::CT => inst.src[2] = Src::reg(reg),
                Role::E | Role::E2 | Role::ET => inst.e = reg,
                Role::Target => inst.set_target(next()),
                Role::Num(_) => {}
            }
        }
        inst.canonical()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn words_carry_instructions(inst in instruction()) {
        let word = inst.encode().expect("encodes");
        prop_assert_eq!(Inst::decode(word).expect("decodes"), inst);
    }

    #[test]
    fn text_carries_instructions(inst in instruction()) {
        let text = inst.to_string();
        let back = isa::text::parse(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        prop_assert_eq!(back, inst, "{}", text);
    }

    #[test]
    fn any_word_is_decoded_or_refused(low in any::<u64>(), high in any::<u64>()) {
        let word = u128::from(high) << 64 | u128::from(low);
        if let Ok(inst) = Inst::decode(word) {
            let again = inst.encode().expect("what decoded encodes");
            prop_assert_eq!(Inst::decode(again).expect("decodes"), inst);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[@!]?P?[0-7]? ?[A-Z0-9.]{0,12} ?[-|RUPZc\\[\\]0-9x, .+;]{0,40}") {
        let _ = isa::text::parse(&text);
    }
}

#[test]
fn errors_say_where() {
    let error = |line: &str| isa::text::parse(line).expect_err(line).to_string();
    assert_eq!(error("FROB R1, R2"), "at column 1: unknown instruction `FROB`");
    assert_eq!(error("FADD R1, R2"), "at column 12: expected `,`");
    assert_eq!(error("FADD.XX R1, R2, R3"), "at column 1: `FADD` takes no `.XX` here");
    assert_eq!(error("MOV R300, R2"), "at column 5: expected R0 to R254 or RZ");
    assert_eq!(
        error("IADD3 R1, PT, 0x1, 0x2, RZ, PT"),
        "at column 31: two sources are constants, immediates or uniform registers"
    );
    assert_eq!(error("LDG.64.E R1, [R2.64]"), "at column 21: R1 cannot start a register group of this size");
}
