extern "C" __global__ void binary_search(int* where, const unsigned* sorted, const unsigned* keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned key = keys[i];
  int lo = 0, hi = n;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (sorted[mid] + mid * 1024u < key) lo = mid + 1; else hi = mid;
  }
  where[i] = lo;
}
