//! Every per-lane instruction form that was measured on an H200, through this crate's functions, bit for bit.

mod common;
mod ptx;

use common::{COUNT, forms, operand, result, unpack};

/// Runs all forms of a set and lists those that differ, each with its first difference.
fn check(json: &[u8], data: &[u8]) {
    let (json, data) = (unpack(json), unpack(data));
    let mut wrong = Vec::new();
    let mut checked = 0;
    for form in forms(&json).iter().filter(|form| !form.text.contains(".sync")) {
        checked += 1;
        let mut misses = 0;
        let mut first = String::new();
        for i in 0..COUNT {
            let mut x = [0; 3];
            for (k, kind) in form.operands.iter().enumerate() {
                x[k] = operand(kind, form.seed + k as u64, i);
            }
            let want = result(&data, form, i);
            let got =
                ptx::evaluate(&form.text, x).map(|v| v & (u64::MAX >> (64 - common::width(&form.result))));
            if got != Some(want) {
                if misses == 0 {
                    first = format!("{:x?} gave {:x?}, H200 {want:x}", &x[..form.operands.len()], got);
                }
                misses += 1;
            }
        }
        if misses > 0 {
            wrong.push(format!("{} {misses} wrong: {first}", form.text));
        }
    }
    assert!(checked > 0);
    assert!(wrong.is_empty(), "{} of {checked} forms differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn measured_forms_are_exact() {
    check(include_bytes!("data/forms.json.zst"), include_bytes!("data/forms.bin.zst"));
}

/// Forms beyond the first set: rarer conversions, NaN payloads, results at the edge of the denormals, video modifiers.
#[test]
fn more_measured_forms_are_exact() {
    check(include_bytes!("data/more.json.zst"), include_bytes!("data/more.bin.zst"));
}
