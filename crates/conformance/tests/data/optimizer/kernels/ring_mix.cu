// A delay line: each output mixes eight echoes out of a ring whose length only the data tells.
extern "C" __global__ void ring_mix(float* out, const float* in, const unsigned* length, const unsigned* delay, int steps) {
  extern __shared__ float ring[];
  unsigned len = *length, tid = threadIdx.x;
  for (unsigned i = tid; i < len; i += blockDim.x) ring[i] = 0.f;
  __syncthreads();
  for (int t = 0; t < steps; ++t) {
    unsigned now = t * blockDim.x + tid;
    float x = in[blockIdx.x * steps * blockDim.x + now];
    ring[now % len] = x;
    __syncthreads();
    float y = x;
    for (int k = 0; k < 8; ++k) y += 0.125f * ring[(now + len - delay[k] % len) % len];
    __syncthreads();
    out[blockIdx.x * steps * blockDim.x + now] = y;
  }
}
