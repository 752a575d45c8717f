extern "C" __global__ void nbody_f64(double* out, const double* pos, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double x = pos[i], y = pos[n + i], ax = 0, ay = 0;
  for (int j = 0; j < n; j++) {
    double dx = pos[j] - x, dy = pos[n + j] - y;
    double r2 = dx * dx + dy * dy + 0.01;
    double w = 1.0 / r2;
    ax += dx * w;
    ay += dy * w;
  }
  out[i] = ax;
  out[n + i] = ay;
}
