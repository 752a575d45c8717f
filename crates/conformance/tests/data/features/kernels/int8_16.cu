extern "C" __global__ void int8_16(short* o8, unsigned char* ob, const unsigned char* a, const short* b){int i = blockIdx.x * blockDim.x + threadIdx.x;
 signed char c=(signed char)a[i]; unsigned char d=a[i]; short s=b[i]; unsigned short t=b[i];
 short r = c*s + d - t/(d+1) + (s>>(d&7)) + (short)(t>>(d&15)); if (c<s) r^=0x5a5a; r += max((int)c,(int)s); o8[i]=r; ob[i]=(unsigned char)(d*3+(c>>1)+ (s%((c&7)+1))); }
