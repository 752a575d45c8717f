extern "C" __global__ void black_path(float* out, const float* in, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = in[i], a = 0.0f;
  for (int t = 0; t < steps; t++) {
    float z = __sinf(s * 12.9898f + t) * 43758.5453f;
    z = z - floorf(z);
    s *= __expf(0.001f + 0.02f * (z - 0.5f));
    a += s;
    if (s > 1.6f) break;
  }
  out[i] = logf(a) / sqrtf(s);
}
