typedef unsigned (*op)(unsigned, unsigned);
__device__ unsigned f0(unsigned a, unsigned b) { return a + b; }
__device__ unsigned f1(unsigned a, unsigned b) { return a * b + 7; }
__device__ unsigned f2(unsigned a, unsigned b) { return (a << (b & 7)) | (b >> 3); }
__device__ unsigned f3(unsigned a, unsigned b) { return a > b ? a - b : b % (a | 1); }
__device__ op table[4] = {f0, f1, f2, f3};
__constant__ unsigned weights[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ const unsigned *pointer = weights + 2;
struct Big { unsigned a[5]; unsigned char b; double c; };
extern "C" __global__ void dispatch_tables(unsigned *out, const unsigned *in, int n, Big big) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = in[i], y = i * 2654435761u;
  for (int k = 0; k < 6; ++k) {
    x = table[(x ^ y) & 3](x, y);
    switch (x % 11) {
    case 0: y += 5; break;
    case 1: y ^= 0x55; // falls through
    case 2: y *= 3; break;
    case 3: y -= x; break;
    case 4: y = ~y; break;
    case 5: y = y >> 3 | y << 29; break;
    case 6: y += weights[y & 7]; break;
    case 7: y ^= pointer[x & 3]; break;
    case 8: y += big.a[x % 5]; break;
    case 9: y -= big.b; break;
    default: y += (unsigned)(big.c * (x & 15));
    }
  }
  out[i] = x ^ y;
}
