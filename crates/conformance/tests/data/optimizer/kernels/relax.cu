// Sweeps of relaxation over a tile; cells with a wall, few of them, are worked out the long way.
extern "C" __global__ void relax(float* out, const float* in, const int* wall, int sweeps) {
  __shared__ float a[2][16][66];
  int x = threadIdx.x, y = threadIdx.y, g = (blockIdx.x * 16 + y) * 64 + x, p = 0;
  for (int r = y; r < 16; r += 4) {
    a[0][r][x + 1] = a[1][r][x + 1] = in[(blockIdx.x * 16 + r) * 64 + x];
    if (x == 0) a[0][r][0] = a[1][r][0] = a[0][r][65] = a[1][r][65] = 0.f;
  }
  int w = wall[g];
  __syncthreads();
  for (int t = 0; t < sweeps; ++t) {
    for (int r = y; r < 16; r += 4) {
      float l = a[p][r][x], c = a[p][r][x + 1], h = a[p][r][x + 2];
      float u = r > 0 ? a[p][r - 1][x + 1] : c, d = r < 15 ? a[p][r + 1][x + 1] : c;
      float n = 0.25f * (l + h + u + d);
      if (w == t) n = sqrtf(fabsf(n * c)) / (1.f + n * n) + cosf(c);
      a[1 - p][r][x + 1] = n;
    }
    p = 1 - p;
    __syncthreads();
  }
  for (int r = y; r < 16; r += 4) out[(blockIdx.x * 16 + r) * 64 + x] = a[p][r][x + 1];
}
