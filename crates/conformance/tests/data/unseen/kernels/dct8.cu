__constant__ float C[64] = {.35f,.35f,.35f,.35f,.35f,.35f,.35f,.35f,.49f,.41f,.27f,.09f,-.09f,-.27f,-.41f,-.49f,.46f,.19f,-.19f,-.46f,-.46f,-.19f,.19f,.46f,.41f,-.09f,-.49f,-.27f,.27f,.49f,.09f,-.41f,.35f,-.35f,-.35f,.35f,.35f,-.35f,-.35f,.35f,.27f,-.49f,.09f,.41f,-.41f,-.09f,.49f,-.27f,.19f,-.46f,.46f,-.19f,-.19f,.46f,-.46f,.19f,.09f,-.27f,.41f,-.49f,.49f,-.41f,.27f,-.09f};
extern "C" __global__ void dct8(float* out, const float* in, int w) {
  __shared__ float a[32][33], b[32][33];
  int x = threadIdx.x, y = threadIdx.y, gx = blockIdx.x * 32 + x, gy = blockIdx.y * 32;
  for (int r = y; r < 32; r += 8) a[r][x] = in[(gy + r) * w + gx];
  __syncthreads();
  int bx = x & ~7;
  for (int r = y; r < 32; r += 8) {
    float s = 0.0f;
    for (int k = 0; k < 8; k++) s += C[(x & 7) * 8 + k] * a[r][bx + k];
    b[r][x] = s;
  }
  __syncthreads();
  for (int r = y; r < 32; r += 8) {
    float s = 0.0f;
    for (int k = 0; k < 8; k++) s += C[(r & 7) * 8 + k] * b[(r & ~7) + k][x];
    out[(gy + r) * w + gx] = s;
  }
}
