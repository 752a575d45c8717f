"""The subject of Triton's first tutorial: two vectors added, compared with NumPy.

    warploom exec -- python vector_add.py
"""

import numpy as np
import triton
import triton.language as tl
from device import Array, like


@triton.jit
def add(left, right, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(left + at, mask=inside) + tl.load(right + at, mask=inside), mask=inside)


rng = np.random.default_rng(3)
for dtype in (np.float32, np.float16, np.int32):
    for count in (1, 1000, 98432):
        a, b = (100 * rng.random((2, count))).astype(dtype)
        out = like(count, dtype)
        add[(triton.cdiv(count, 1024),)](Array(a), Array(b), out, count, BLOCK=1024)
        np.testing.assert_array_equal(out.numpy(), a + b)
print("vector add: as NumPy")
