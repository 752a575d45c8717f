extern "C" __global__ void collatz(int* steps, unsigned first) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long v = first + i;
  int n = 0;
  while (v != 1) {
    v = v & 1 ? 3 * v + 1 : v >> 1;
    n++;
  }
  steps[i] = n;
}
