extern "C" __global__ void insertion_local(unsigned* out, const unsigned* in, int n) {
  unsigned v[24];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int used = 0;
  for (int k = 0; k < 24; k++) {
    unsigned x = in[k * n + i];
    int p = used++;
    while (p > 0 && v[p - 1] > x) {
      v[p] = v[p - 1];
      p--;
    }
    v[p] = x;
  }
  out[i] = v[12];
}
