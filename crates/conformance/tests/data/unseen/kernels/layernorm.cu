extern "C" __global__ void layernorm(float* out, const float* in, const float* gain, const float* bias, int rows) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  float v[8], s = 0.0f, q = 0.0f;
  for (int i = 0; i < 8; i++) {
    v[i] = in[row * 256 + i * 32 + threadIdx.x];
    s += v[i];
    q += v[i] * v[i];
  }
  for (int d = 16; d > 0; d /= 2) {
    s += __shfl_xor_sync(~0u, s, d);
    q += __shfl_xor_sync(~0u, q, d);
  }
  float mean = s / 256.0f, r = rsqrtf(q / 256.0f - mean * mean + 1e-5f);
  for (int i = 0; i < 8; i++) {
    int c = i * 32 + threadIdx.x;
    out[row * 256 + c] = (v[i] - mean) * r * gain[c] + bias[c];
  }
}
