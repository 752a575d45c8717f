extern "C" __global__ void lookback_scan(unsigned* out, unsigned* state, const unsigned* in) {
  __shared__ unsigned warp_sum[8], before;
  int b = blockIdx.x, t = threadIdx.x, lane = t % 32;
  unsigned v = in[b * 256 + t] & 255, s = v;
  for (int d = 1; d < 32; d *= 2) {
    unsigned o = __shfl_up_sync(~0u, s, d);
    if (lane >= d) s += o;
  }
  if (lane == 31) warp_sum[t / 32] = s;
  __syncthreads();
  unsigned add = 0;
  for (int w = 0; w < t / 32; w++) add += warp_sum[w];
  s += add;
  if (t == 255) {
    unsigned p = 0;
    if (b > 0) {
      unsigned got;
      do { got = atomicAdd(&state[b - 1], 0u); } while (got == 0);
      p = got - 1;
    }
    atomicExch(&state[b], p + s + 1);
    before = p;
  }
  __syncthreads();
  out[b * 256 + t] = s + before;
}
