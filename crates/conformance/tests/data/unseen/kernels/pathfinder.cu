extern "C" __global__ void pathfinder(int* out, const int* wall, int cols, int rows) {
  __shared__ int prev[256], next[256];
  int tx = threadIdx.x, x = blockIdx.x * 216 + tx - 20;
  int xx = min(max(x, 0), cols - 1);
  prev[tx] = wall[xx];
  __syncthreads();
  for (int r = 1; r < rows; r++) {
    if (tx >= r && tx < 256 - r) {
      int m = min(prev[tx], min(prev[max(tx - 1, 0)], prev[min(tx + 1, 255)]));
      next[tx] = m + wall[r * cols + xx];
    }
    __syncthreads();
    if (tx >= r && tx < 256 - r) prev[tx] = next[tx];
    __syncthreads();
  }
  if (tx >= 20 && tx < 236 && x < cols) out[x] = prev[tx];
}
