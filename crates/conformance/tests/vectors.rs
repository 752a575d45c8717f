//! Every instruction form that was measured on an H200, through the whole way: PTX, compiler, engine.

use conformance::vectors::{Outcome, parse, run_all};
use std::io::Read;
use std::path::Path;

fn unpack(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../arith/tests/data").join(name);
    let packed = std::fs::read(&path).expect("test data");
    let mut out = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(&packed[..])
        .expect("a zstd frame")
        .read_to_end(&mut out)
        .expect("zstd data");
    out
}

#[test]
fn all_forms_are_exact() {
    let forms = parse(&unpack("forms.json.zst")).expect("forms");
    let expected = unpack("forms.bin.zst");
    assert_eq!(forms.len(), 1049);
    let outcomes = run_all(&forms, &expected).expect("a device");
    let failures: Vec<String> = forms
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| **outcome != Outcome::Exact)
        .map(|(form, outcome)| format!("{}\n    {outcome:?}", form.text))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), forms.len(), failures.join("\n"));
}
