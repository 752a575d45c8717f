extern "C" __global__ void bitonic_sort(float *data) {
  extern __shared__ float s[];
  int t = threadIdx.x; s[t] = data[blockIdx.x * blockDim.x + t]; __syncthreads();
  for (int k = 2; k <= blockDim.x; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      int o = t ^ j;
      if (o > t) { bool up = (t & k) == 0; float a = s[t], b = s[o]; if ((a > b) == up) { s[t] = b; s[o] = a; } }
      __syncthreads();
    }
  data[blockIdx.x * blockDim.x + t] = s[t];
}
