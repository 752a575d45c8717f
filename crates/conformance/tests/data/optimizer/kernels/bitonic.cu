// Sorts 512 keys a CTA: half of the branches go each way, and there is little for a profile to find.
extern "C" __global__ void bitonic(int* out, const int* in) {
  __shared__ int s[512];
  int i = threadIdx.x, g = blockIdx.x * 512;
  s[i] = in[g + i];
  s[i + 256] = in[g + i + 256];
#pragma unroll 1
  for (int k = 2; k <= 512; k <<= 1)
#pragma unroll 1
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int lo = 2 * i - (i & (j - 1)), hi = lo + j;
      int a = s[lo], b = s[hi];
      if ((a > b) == ((lo & k) == 0)) { s[lo] = b; s[hi] = a; }
    }
  __syncthreads();
  out[g + i] = s[i];
  out[g + i + 256] = s[i + 256];
}
