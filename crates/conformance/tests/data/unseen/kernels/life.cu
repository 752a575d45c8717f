extern "C" __global__ void life(unsigned char* out, const unsigned char* in, int w) {
  __shared__ unsigned char t[18][34];
  int x0 = blockIdx.x * 32, y0 = blockIdx.y * 16;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < 18 * 34; i += 512) {
    int y = (y0 + i / 34 - 1 + w) % w, x = (x0 + i % 34 - 1 + w) % w;
    t[i / 34][i % 34] = in[y * w + x] & 1;
  }
  __syncthreads();
  int x = threadIdx.x + 1, y = threadIdx.y + 1;
  int n = t[y - 1][x - 1] + t[y - 1][x] + t[y - 1][x + 1] + t[y][x - 1] + t[y][x + 1] + t[y + 1][x - 1] + t[y + 1][x] + t[y + 1][x + 1];
  out[(y0 + threadIdx.y) * w + x0 + threadIdx.x] = n == 3 || (n == 2 && t[y][x]);
}
