"""tinygrad as it comes, on whichever libcuda.so.1 the loader finds: a few tensor programs against NumPy, with and without its JIT.

    pip install tinygrad==0.14.0 numpy
    DEV=CUDA LD_LIBRARY_PATH=FOLDER python main.py
"""

import numpy as np
from tinygrad import Device, Tensor, TinyJit, nn

assert Device.DEFAULT == "CUDA", "set DEV=CUDA"
rng = np.random.default_rng(1)


def check(name, ours, wanted, tolerance=1e-4):
    np.testing.assert_allclose(ours, wanted, rtol=tolerance, atol=tolerance, err_msg=name)
    print(f"{name}: as NumPy")


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


a, b = rng.standard_normal((96, 80), dtype=np.float32), rng.standard_normal((80, 64), dtype=np.float32)
check("matmul", (Tensor(a) @ Tensor(b)).numpy(), a @ b)
check("softmax", Tensor(a).softmax(axis=1).numpy(), softmax(a))
check("reductions", Tensor(a).sum(axis=0).numpy(), a.sum(axis=0), 1e-3)
check("scan", Tensor(a).cumsum(axis=1).numpy(), np.cumsum(a, axis=1), 1e-3)

image, kernel = rng.standard_normal((1, 3, 12, 12), dtype=np.float32), rng.standard_normal((4, 3, 3, 3), dtype=np.float32)
windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 3), axis=(1, 2))
wanted = np.einsum("cyxij,ocij->oyx", windows, kernel)[None]
check("convolution", Tensor(image).conv2d(Tensor(kernel)).numpy(), wanted, 1e-3)

x = Tensor(a)
(x * x).mean().backward()
check("gradient", x.grad.numpy(), 2 * a / a.size, 1e-5)


@TinyJit
def step(v):
    return ((v * 2 + 1).relu().sum(axis=0) / 3).realize()


for n in range(5):
    v = rng.standard_normal((32, 16), dtype=np.float32)
    check(f"JIT, call {n}", step(Tensor(v).realize()).numpy(), np.maximum(2 * v + 1, 0).sum(axis=0) / 3, 1e-3)

# Training: a small network learns a line, its gradients by tinygrad.
Tensor.manual_seed(1)
xs = rng.standard_normal((64, 1), dtype=np.float32)
layer = nn.Linear(1, 1)
for _ in range(60):
    for parameter in (layer.weight, layer.bias):
        parameter.grad = None
    ((layer(Tensor(xs)) - Tensor(3 * xs + 1)) ** 2).mean().backward()
    for parameter in (layer.weight, layer.bias):
        parameter.assign(parameter - 0.1 * parameter.grad).realize()
check("training", [layer.weight.item(), layer.bias.item()], [3, 1], 5e-2)
print("tinygrad: all as it should be")
