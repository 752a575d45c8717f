// The sum of n numbers in two launches: each CTA sums its part through shuffles and shared memory, then one CTA sums
// the partial results. No atomics, so the order of additions, and with it the last bit, is always the same.
__device__ float sum_of_cta(float value) {
  __shared__ float of_warp[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? of_warp[lane] : 0.0f;
  if (warp == 0)
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  return value;
}

extern "C" __global__ void sum_parts(float *parts, const float *data, int n) {
  float value = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += data[i];
  value = sum_of_cta(value);
  if (threadIdx.x == 0) parts[blockIdx.x] = value;
}

extern "C" __global__ void sum_all(float *total, const float *parts, int n) {
  float value = sum_of_cta(threadIdx.x < n ? parts[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) *total = value;
}
