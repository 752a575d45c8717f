//! The reference page, made from the table; `docs/isa.md` is this text.

use crate::field::Field;
use crate::reg::Special;
use crate::table::{Latency, Role, TABLE};
use std::fmt::Write;

fn role_name(role: Role) -> String {
    match role {
        Role::Num(f) => f.info().name.to_string(),
        Role::Addr => "[A+UR+imm]".into(),
        Role::CAddr => "c[Bank][A+imm]".into(),
        other => format!("{other:?}"),
    }
}

/// The page in Markdown.
pub fn page() -> String {
    let mut out = String::from(
        "# The instruction set\n\n\
         Made from the table in `crates/isa/src/table.rs`; a test keeps this page equal to it (`BLESS=1 cargo test -p isa` \
         rewrites it).\n\n\
         Operands: `D` destination, `Pd` predicate destination, `A` `B` `C` `E` sources (of A, B, C one may be an immediate, a \
         constant `c[bank][offset]` or a uniform register), `Ps` predicate source, `U` uniform destination. A `2` is a \
         register pair; `W`, `T`, `To`, `From`, `M` are as wide as the field of that name says.\n\n\
         ## Instructions\n\n\
         | code | mnemonic | operands | fields | unit | latency | what it does |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in TABLE {
        let roles: Vec<String> = row.roles.iter().map(|&r| role_name(r)).collect();
        let fields: Vec<&str> = row.fields.iter().map(|f| f.info().name).collect();
        let latency = match row.latency {
            Latency::Fixed => "fixed",
            Latency::Variable => "variable",
        };
        let _ = writeln!(
            out,
            "| {:#04x} | `{}` | {} | {} | {:?} | {latency} | {} |",
            row.op as u8,
            row.mnemonic,
            roles.join(", "),
            fields.join(", "),
            row.unit,
            row.doc.replace('|', "\\|")
        );
    }
    out.push_str(
        "\n## Modifier fields\n\n| field | bits | spelling | meaning |\n| --- | --- | --- | --- |\n",
    );
    for field in Field::ALL {
        let info = field.info();
        let names: Vec<String> = info
            .names
            .iter()
            .map(|n| if n.is_empty() { "(default)".into() } else { format!("`.{n}`") })
            .collect();
        let names = if names.is_empty() { "a number".into() } else { names.join(" ") };
        let _ = writeln!(out, "| {} | {} | {names} | {} |", info.name, info.bits, info.doc);
    }
    out.push_str("\n## Special registers\n\n| number | name | meaning |\n| --- | --- | --- |\n");
    for (n, s) in Special::ALL.iter().enumerate() {
        let _ = writeln!(out, "| {n} | `{}` | {} |", s.name(), s.doc());
    }
    out
}
