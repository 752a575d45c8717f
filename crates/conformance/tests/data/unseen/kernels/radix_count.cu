extern "C" __global__ void radix_count(unsigned* counts, const unsigned* keys, int n, int shift) {
  __shared__ unsigned bins[16 * 8];
  if (threadIdx.x < 128) bins[threadIdx.x] = 0;
  __syncthreads();
  unsigned* mine = bins + 16 * (threadIdx.x / 32);
  int per = n / gridDim.x, base = blockIdx.x * per;
  for (int i = threadIdx.x; i < per; i += blockDim.x)
    atomicAdd(&mine[keys[base + i] >> shift & 15], 1u);
  __syncthreads();
  if (threadIdx.x < 16) {
    unsigned s = 0;
    for (int w = 0; w < 8; w++) s += bins[16 * w + threadIdx.x];
    counts[threadIdx.x * gridDim.x + blockIdx.x] = s;
  }
}
