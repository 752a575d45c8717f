extern "C" __global__ void contraction_loop(float *out, const float *in, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = in[i], b = in[(i + 1) % n], c = in[(i + 2) % n], d = in[(i + 3) % n];
  float p = a * b + c * d, q = a * b - c * d, r = (a - b) * (c + d) + a * a, e = 0;
  for (int k = 0; k < rounds; ++k) {
    float t = p * q + r; q = r * 0.3f - p * b; r = t - a * c * 0.125f; p = (t * d - q * 0.5f) * 0.25f + e * 0.1f; e += t * t - r * q;
    if (e > 100.0f) e = e * 0.01f - c; if (fabsf(p) > 10) p *= 0.01f; if (fabsf(r) > 10) r *= 0.03f;
    int m = (int)(t * 3.0f) % 5; p += m * 0.1f;
  }
  out[i * 4] = p; out[i * 4 + 1] = q; out[i * 4 + 2] = r; out[i * 4 + 3] = e;
}
