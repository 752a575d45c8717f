extern "C" __global__ void matvec_columns(float* y, const float* a, const float* x, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0.0f;
  for (int c = 0; c < n; c++) s += a[row * n + c] * x[c];
  y[row] = s;
}
