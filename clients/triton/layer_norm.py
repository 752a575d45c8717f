"""The subject of Triton's fifth tutorial: layer normalisation, forward and backward, compared with NumPy.

    warploom exec -- python layer_norm.py

Gradients of weight and bias are summed over rows in groups: programs of a group take turns with a lock.
"""

import numpy as np
import triton
import triton.language as tl
from device import Array, like


@triton.jit
def forward(x, y, weight, bias, means, scales, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = row * columns
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x + start + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + start + at, mask=at < columns, other=0.0).to(tl.float32)
        away = tl.where(at < columns, value - mean, 0.0)
        squares += away * away
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + start + at, mask=inside, other=0.0).to(tl.float32)
        w, b = tl.load(weight + at, mask=inside), tl.load(bias + at, mask=inside)
        tl.store(y + start + at, (value - mean) * scale * w + b, mask=inside)


@triton.jit
def backward_rows(
    dx, dy, dw, db, x, weight, means, scales, locks, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    gradient = tl.load(dy + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.load(scales + row)
    normal = tl.where(inside, (value - tl.load(means + row)) * scale, 0.0)
    weighted = w * gradient
    along = tl.sum(normal * weighted, axis=0) / columns
    level = tl.sum(weighted, axis=0) / columns
    tl.store(dx + row * columns + at, (weighted - normal * along - level) * scale, mask=inside)

    group = row % GROUPS
    lock, used = locks + group, locks + GROUPS + group
    dw, db = dw + group * columns + at, db + group * columns + at
    part_w, part_b = (gradient * normal).to(w.dtype), gradient.to(w.dtype)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(used) == 0:
        tl.atomic_xchg(used, 1)
    else:
        part_w += tl.load(dw, mask=inside)
        part_b += tl.load(db, mask=inside)
    tl.store(dw, part_w, mask=inside)
    tl.store(db, part_b, mask=inside)
    # All threads have stored before another program goes on.
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def backward_sums(parts, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        total += tl.load(parts + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    tl.store(out + column, tl.sum(total, axis=0), mask=column < columns)


ROWS, COLUMNS, GROUPS, EPSILON = 61, 384, 8, 1e-5
BLOCK = triton.next_power_of_2(COLUMNS)
rng = np.random.default_rng(5)
x = (rng.standard_normal((ROWS, COLUMNS)) * 2 - 0.5).astype(np.float16)
dy = (rng.standard_normal((ROWS, COLUMNS)) * 0.1).astype(np.float16)
w, b = rng.random((2, COLUMNS)).astype(np.float16)

y, means, scales = like(x.shape, np.float16), like(ROWS, np.float32), like(ROWS, np.float32)
inputs, weight = Array(x), Array(w)
forward[(ROWS,)](inputs, y, weight, Array(b), means, scales, COLUMNS, EPSILON, BLOCK=128, num_warps=4)

x64, w64, dy64 = x.astype(np.float64), w.astype(np.float64), dy.astype(np.float64)
mean = x64.mean(axis=1, keepdims=True)
scale = 1 / np.sqrt(x64.var(axis=1, keepdims=True) + EPSILON)
normal = (x64 - mean) * scale
np.testing.assert_allclose(means.numpy(), mean[:, 0], rtol=1e-4, atol=1e-5)
np.testing.assert_allclose(scales.numpy(), scale[:, 0], rtol=1e-4)
np.testing.assert_allclose(y.numpy(), normal * w64 + b, rtol=2e-2, atol=4e-3)
print("layer norm forward: as NumPy")

dx, locks = like(x.shape, np.float16), like(2 * GROUPS, np.int32)
dw_parts, db_parts = like((GROUPS, COLUMNS), np.float32), like((GROUPS, COLUMNS), np.float32)
backward_rows[(ROWS,)](
    dx, Array(dy), dw_parts, db_parts, inputs, weight, means, scales, locks, COLUMNS, GROUPS=GROUPS, BLOCK=BLOCK, num_warps=4
)
dw, db = like(COLUMNS, np.float16), like(COLUMNS, np.float16)
for parts, out in ((dw_parts, dw), (db_parts, db)):
    backward_sums[(triton.cdiv(COLUMNS, 128),)](parts, out, GROUPS, COLUMNS, ROWS=8, COLUMNS=128)

weighted = w64 * dy64
along = (normal * weighted).mean(axis=1, keepdims=True)
wanted = (weighted - normal * along - weighted.mean(axis=1, keepdims=True)) * scale
np.testing.assert_allclose(dx.numpy(), wanted, rtol=2e-2, atol=2e-3)
np.testing.assert_allclose(dw.numpy(), (dy64 * normal).sum(axis=0), rtol=2e-2, atol=4e-3)
np.testing.assert_allclose(db.numpy(), dy64.sum(axis=0), rtol=2e-2, atol=4e-3)
print("layer norm backward: as NumPy")
