extern "C" __global__ void lu_block(float* a) {
  __shared__ float m[32][33];
  int x = threadIdx.x, y = threadIdx.y;
  float* own = a + blockIdx.x * 1024;
  for (int r = y; r < 32; r += 8) m[r][x] = own[r * 32 + x] + (r == x ? 32.0f : 0.0f);
  __syncthreads();
  for (int k = 0; k < 31; k++) {
    if (y == 0 && x > k) m[x][k] /= m[k][k];
    __syncthreads();
    for (int r = k + 1 + y; r < 32; r += 8)
      if (x > k) m[r][x] -= m[r][k] * m[k][x];
    __syncthreads();
  }
  for (int r = y; r < 32; r += 8) own[r * 32 + x] = m[r][x];
}
