// Forces between particles of several materials: nearly all are of the common one, a few take a longer formula.
extern "C" __global__ void materials(float* force, const float2* pos, const int* kind, int n) {
  __shared__ float2 s[128];
  __shared__ int m[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float2 p = pos[i];
  float f = 0.f;
  for (int t = 0; t < n; t += 128) {
    s[threadIdx.x] = pos[t + threadIdx.x];
    m[threadIdx.x] = kind[t + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 128; ++j) {
      float dx = s[j].x - p.x, dy = s[j].y - p.y, r2 = dx * dx + dy * dy + 0.01f;
      if (m[j] == 7) {
        float r = sqrtf(r2), a = 1.f / r, b = a * a * a;
        f += b * b - 2.f * b + sqrtf(a) / (1.f + r);
      } else if (m[j] == 11) {
        f -= r2 > 1.f ? 0.f : (1.f - r2) / (1.f + r2 * r2);
      } else {
        f += r2 * (0.25f - r2);
      }
    }
    __syncthreads();
  }
  force[i] = f;
}
