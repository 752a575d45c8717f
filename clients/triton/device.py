"""Arrays on the device for Triton without PyTorch: memory of the CUDA driver, and what a kernel's argument needs."""

import ctypes

import numpy as np
import triton

cuda = ctypes.CDLL("libcuda.so.1")


def must(code):
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(text.value.decode())


def start():
    """Makes the primary context of the first device this thread's, as Triton does too."""
    context = ctypes.c_void_p()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))


class Array:
    """What Triton takes for a tensor: it has a `dtype` and a `data_ptr()`."""

    def __init__(self, values):
        values = np.ascontiguousarray(values)
        self.dtype, self.shape, self.nbytes = values.dtype, values.shape, values.nbytes
        self.address = ctypes.c_uint64()
        must(cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(max(self.nbytes, 1))))
        must(cuda.cuMemcpyHtoD_v2(self.address, ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(self.nbytes)))

    def data_ptr(self):
        return self.address.value

    def numpy(self):
        values = np.empty(self.shape, self.dtype)
        must(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(values.ctypes.data), self.address, ctypes.c_size_t(self.nbytes)))
        return values

    def __del__(self):
        cuda.cuMemFree_v2(self.address)


def like(shape, dtype):
    return Array(np.zeros(shape, dtype))


start()
capability = triton.runtime.driver.active.get_current_target().arch
print(f"Triton {triton.__version__} for compute capability {capability / 10}")
