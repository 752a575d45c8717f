//! What `docs/preemption.md` says of remapping holds on the small machine, too.

use conformance::preemption;
use driver::Config;
use driver::streams::Mode;
use std::path::Path;

#[test]
fn local_memory_is_copied_once_or_each_time() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let config = Config::preset("tiny").expect("a preset");
    let row = |kilobytes, mode| {
        preemption::row(&examples, &config, kilobytes, mode, 2).unwrap_or_else(|e| panic!("{e}"))
    };
    for kilobytes in [0, 1, 16] {
        let local = f64::from(kilobytes) * 1024.0 * 8.0;
        let remap = row(kilobytes, Mode::Remap);
        assert_eq!(remap.costs.map(|c| c.local_bytes), [local, 0.0, 0.0, 0.0], "{kilobytes} KB");
        let copy = row(kilobytes, Mode::Copy);
        assert_eq!(copy.costs.map(|c| c.local_bytes), [local; 4], "{kilobytes} KB");
        assert!(remap.costs.iter().chain(&copy.costs).all(|c| c.ctas > 0 && c.state_bytes > 0.0));
        if kilobytes == 16 {
            assert!(
                remap.costs[1].cycles < copy.costs[1].cycles && remap.costs[3].cycles < copy.costs[3].cycles
            );
            assert!(remap.costs[1].cycles < remap.costs[0].cycles);
        }
    }
}
