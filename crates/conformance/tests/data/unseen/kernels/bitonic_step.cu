extern "C" __global__ void bitonic_step(unsigned* keys, int j, int k) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, o = i ^ j;
  if (o > i) {
    unsigned a = keys[i], b = keys[o];
    bool up = (i & k) == 0;
    if ((a > b) == up) {
      keys[i] = b;
      keys[o] = a;
    }
  }
}
