// How often each byte value occurs: every CTA counts in shared memory, then adds its counts to the result.
extern "C" __global__ void histogram(unsigned *bins, const unsigned char *data, int n) {
  __shared__ unsigned of_cta[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) of_cta[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&of_cta[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], of_cta[i]);
}
