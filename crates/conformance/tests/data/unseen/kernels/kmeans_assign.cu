extern "C" __global__ void kmeans_assign(int* label, const float* points, const float* centers, int n) {
  __shared__ float c[16 * 8];
  for (int i = threadIdx.x; i < 128; i += blockDim.x) c[i] = centers[i];
  __syncthreads();
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= n) return;
  float x[8];
  for (int d = 0; d < 8; d++) x[d] = points[d * n + p];
  float best = 1e30f;
  int which = 0;
  for (int k = 0; k < 16; k++) {
    float s = 0.0f;
    for (int d = 0; d < 8; d++) {
      float t = x[d] - c[8 * k + d];
      s += t * t;
    }
    if (s < best) {
      best = s;
      which = k;
    }
  }
  label[p] = which;
}
