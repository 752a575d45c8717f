extern "C" __global__ void convert_edges(long long *out, const unsigned *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float f = __uint_as_float(in[i]); double d = __hiloint2double(in[(i + 1) % n], in[i]);
  long long r[14] = {__float2int_rn(f), __float2int_rd(f), __float2uint_ru(f), __float2ll_rz(f), (long long)__float2ull_rn(f), __double2int_rn(d), __double2ll_ru(d),
    (long long)__double2ull_rd(d), __float_as_int(__double2float_ru(d)), __double_as_longlong((double)f), __float_as_int(__ll2float_rd((long long)in[i] << 21)),
    __double_as_longlong(__ull2double_ru(~0ull - in[i])), (signed char)f, (unsigned short)d};
  for (int k = 0; k < 14; ++k) out[i * 14 + k] = r[k];
}
