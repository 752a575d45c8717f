extern "C" __global__ void sobel(unsigned char* out, const unsigned char* in, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  int p[9];
  for (int j = 0; j < 3; j++)
    for (int i = 0; i < 3; i++)
      p[3 * j + i] = in[(y + j - 1) * w + x + i - 1];
  int gx = p[2] + 2 * p[5] + p[8] - p[0] - 2 * p[3] - p[6];
  int gy = p[6] + 2 * p[7] + p[8] - p[0] - 2 * p[1] - p[2];
  int m = (int)sqrtf((float)(gx * gx + gy * gy));
  out[y * w + x] = m > 255 ? 255 : m;
}
