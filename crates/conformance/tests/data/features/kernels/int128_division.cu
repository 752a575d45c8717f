extern "C" __global__ void int128_division(unsigned long long *out, const unsigned long long *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long a = in[i], b = in[(i * 3 + 1) % n] >> (i & 31);
  long long sa = a, sb = b | 1;
  unsigned __int128 p = (unsigned __int128)a * b + a;
  __int128 q = (__int128)p / (sb | 0x100000001ll);
  unsigned long long r[10] = {(unsigned long long)p, (unsigned long long)(p >> 64), (unsigned long long)q, a / (b | 1), a % (b | 1),
    (unsigned long long)(sa / sb), (unsigned long long)(sa % sb), __brevll(a) + __popcll(b) * __clzll(b | 1) + __ffsll(a),
    __umul64hi(a, b) ^ (unsigned long long)__mul64hi(sa, sb), (a << (b & 63)) ^ (unsigned long long)(sa >> (a & 63))};
  short s1 = a, s2 = b | 1; signed char c1 = a >> 8, c2 = b >> 5 | 1; unsigned char u1 = a, u2 = b | 1;
  r[9] += s1 / s2 + s1 % s2 * 3 + c1 / c2 * 5 + c1 % c2 * 7 + u1 / u2 * 11 + u1 % u2 * 13;
  for (int k = 0; k < 10; ++k) out[i * 10 + k] = r[k];
}
