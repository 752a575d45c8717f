extern "C" __global__ void crc32_table(unsigned* out, const unsigned* in, const unsigned* table, int words) {
  __shared__ unsigned t[256];
  t[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  unsigned c = ~0u;
  for (int w = 0; w < words; w++) {
    unsigned v = in[w * n + i];
    for (int b = 0; b < 4; b++) {
      c = t[(c ^ v) & 255] ^ c >> 8;
      v >>= 8;
    }
  }
  out[i] = ~c;
}
