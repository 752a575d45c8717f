//! A bounded run of the fuzz targets on seeded mutations: no input may panic or hang.

use conformance::fuzz::{Mutator, image, ptx_text};
use driver::{CompileOptions, Source};
use std::path::Path;

fn corpus() -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    [
        "main/ptx/saxpy.ptx",
        "main/ptx/reduce_shuffle.ptx",
        "main/ptx/bfs_level.ptx",
        "sweep/ptx/const_divergent.ptx",
    ]
    .iter()
    .map(|name| std::fs::read(data.join(name)).expect("test data"))
    .collect()
}

#[test]
fn damaged_ptx() {
    let corpus = corpus();
    let mut mutator = Mutator::new(1);
    for n in 0..400 {
        let text = &corpus[n % corpus.len()];
        ptx_text(&mutator.mutate(text, &corpus[(n + 1) % corpus.len()]));
    }
}

#[test]
fn damaged_images() {
    let images: Vec<Vec<u8>> = corpus()
        .iter()
        .map(|text| {
            let source = Source::new("corpus.ptx", text.as_slice());
            let image =
                driver::compile(&source, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
            image.to_bytes().expect("encodable")
        })
        .collect();
    let mut mutator = Mutator::new(2);
    for n in 0..400 {
        let from = &images[n % images.len()];
        let mut bytes = from[..20].to_vec();
        bytes.extend(mutator.mutate(&from[20..], &images[(n + 1) % images.len()][20..]));
        image(&bytes);
    }
}
