//! `libcudart.so.12`: the entry points of the CUDA runtime of version 12. What they do stands in `cudart`.

use cudart::types::*;

cudart::export_both!();
cudart::export_12!();
cudart::export_others!();
