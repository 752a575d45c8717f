extern "C" __global__ void queue_work(unsigned* out, unsigned* ticket, const unsigned* size, unsigned n) {
  __shared__ unsigned item;
  for (;;) {
    if (threadIdx.x == 0) item = atomicAdd(ticket, 1u);
    __syncthreads();
    unsigned t = item;
    __syncthreads();
    if (t >= n) return;
    unsigned v = t * 128 + threadIdx.x, rounds = size[t];
    for (unsigned r = 0; r < rounds; r++) v = v * 1664525u + 1013904223u ^ v >> 9;
    out[t * 128 + threadIdx.x] = v;
  }
}
