// A polynomial whose degree and spacing the data tells, evaluated over tiles of points.
extern "C" __global__ void polynomial(float* out, const float* in, const float* coef, const int* degree, const int* spacing, int tiles) {
  __shared__ float c[64];
  int tid = threadIdx.x;
  for (int t = 0; t < tiles; ++t) {
    if (tid < 64) c[tid] = coef[t * 64 + tid];
    __syncthreads();
    int at = ((blockIdx.x * tiles + t) * blockDim.x + tid);
    float x = in[at], y = 0.f;
    int d = *degree, by = *spacing;
    for (int k = d; k >= 0; --k) y = y * x + c[k * by];
    out[at] = y;
    __syncthreads();
  }
}
