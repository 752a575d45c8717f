// A field of sources whose parameters are read through pointers: the stores between may alias them for all the compiler knows.
extern "C" __global__ void sources(float* field, const float* strength, const float* scale, const float* offset, int tiles) {
  __shared__ float s[128];
  int tid = threadIdx.x;
  for (int t = 0; t < tiles; ++t) {
    int base = (blockIdx.x * tiles + t) * 1024;
    s[tid] = strength[(blockIdx.x * tiles + t) * 128 + tid];
    __syncthreads();
    for (int k = 0; k < 8; ++k) {
      float v = s[(tid + k * 5) & 127];
      field[base + k * 128 + tid] = v * *scale + *offset;
    }
    __syncthreads();
  }
}
