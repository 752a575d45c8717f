extern "C" __global__ void compact(unsigned* sums, unsigned* count, const unsigned* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  unsigned v = i < n ? in[i] : 0;
  bool keep = v % 3 == 0;
  unsigned m = __ballot_sync(~0u, keep);
  unsigned base = 0;
  if (lane == 0) base = atomicAdd(&count[blockIdx.x % 32], __popc(m));
  base = __shfl_sync(~0u, base, 0);
  if (keep && base < 0x7fffffff) atomicAdd(&sums[(v >> 4) % 4096], v);
}
