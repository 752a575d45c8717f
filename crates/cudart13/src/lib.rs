//! `libcudart.so.13`: the entry points of the CUDA runtime of version 13. What they do stands in `cudart`.

use cudart::types::*;

cudart::export_both!();
cudart::export_13!();
cudart::export_others!();
