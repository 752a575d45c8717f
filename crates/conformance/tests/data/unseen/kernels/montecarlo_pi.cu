extern "C" __global__ void montecarlo_pi(unsigned* hits, int rounds) {
  unsigned s = (blockIdx.x * blockDim.x + threadIdx.x) * 747796405u + 2891336453u, in = 0;
  for (int r = 0; r < rounds; r++) {
    s ^= s << 13; s ^= s >> 17; s ^= s << 5;
    float x = (s >> 8) * (1.0f / 16777216.0f);
    s ^= s << 13; s ^= s >> 17; s ^= s << 5;
    float y = (s >> 8) * (1.0f / 16777216.0f);
    if (x * x + y * y <= 1.0f) in++;
  }
  in = __reduce_add_sync(~0u, in);
  if (threadIdx.x % 32 == 0) atomicAdd(&hits[blockIdx.x % 64], in);
}
