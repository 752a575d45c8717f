extern "C" __global__ void gemv_row(float* y, const float* a, const float* x, int rows, int cols) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float s = 0.0f;
  for (int c = lane; c < cols; c += 32)
    s += a[row * cols + c] * x[c];
  for (int d = 16; d > 0; d /= 2)
    s += __shfl_down_sync(0xffffffff, s, d);
  if (lane == 0) y[row] = s;
}
