extern "C" __global__ void int64_mix(long long* o, const long long* a, const long long* b){int i = blockIdx.x * blockDim.x + threadIdx.x;
 long long x=a[i], y=b[i]; unsigned long long u=x, v=y; long long r = x*y + (x>>(y&63)) + (long long)(u>>(v&63)) + (x<<(u&31));
 if (y) r ^= x/y + x%y; if (v) r += u/v - u%v; r += __mul64hi(x,y) ^ __umul64hi(u,v); r += min(x,y) - max(u,v); r ^= __popcll(x) + __clzll(y) + __ffsll(x^y); r += __brevll(u); r -= llabs(x-y);
 o[i]=r; }
