extern "C" __global__ void dp4a_gemm(int* c, const int* a, const int* b, int n, int kw) {
  __shared__ int as[32][33], bs[32][33];
  int tx = threadIdx.x, ty = threadIdx.y;
  int acc[4] = {0, 0, 0, 0};
  for (int k = 0; k < kw; k += 32) {
    for (int r = 0; r < 4; r++) {
      as[ty + 8 * r][tx] = a[(blockIdx.y * 32 + ty + 8 * r) * kw + k + tx];
      bs[ty + 8 * r][tx] = b[(blockIdx.x * 32 + ty + 8 * r) * kw + k + tx];
    }
    __syncthreads();
    for (int i = 0; i < 32; i++) {
      int v = bs[tx][i];
      for (int r = 0; r < 4; r++) acc[r] = __dp4a(as[ty + 8 * r][i], v, acc[r]);
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; r++) c[(blockIdx.y * 32 + ty + 8 * r) * n + blockIdx.x * 32 + tx] = acc[r];
}
