#include <cuda_fp16.h>
extern "C" __global__ void hgemm(__half2* c, const __half* a, const __half2* b, int n) {
  __shared__ __half as[16][16];
  __shared__ __half2 bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  __half2 s = __float2half2_rn(0.0f);
  for (int k = 0; k < n; k += 16) {
    as[ty][tx] = a[row * n + k + tx];
    bs[ty][tx] = b[(k + ty) * (n / 2) + col];
    __syncthreads();
    for (int i = 0; i < 16; i++) s = __hfma2(__half2half2(as[ty][i]), bs[i][tx], s);
    __syncthreads();
  }
  c[row * (n / 2) + col] = s;
}
