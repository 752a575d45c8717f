#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void half_mix(float* o, const __half* a, const __half* b){int i = blockIdx.x * blockDim.x + threadIdx.x;
 __half x=a[i], y=b[i]; __half r = __hfma(x,y,__hadd(x,y)); r = __hsub(r, __hmul(x,x)); r = __hdiv(r, __hadd(__habs(y), __float2half(1.f))); __half2 p=__halves2half2(x,y); p=__hfma2(p,p,__hneg2(p)); p=__hmax2(p,__float2half2_rn(-2.f)); r=__hadd(r,__hadd(p.x,p.y)); r = __hadd(r, hexp2(__hmul(x,__float2half(0.5f)))); if (__hlt(x,y)) r=__hneg(r);
 __nv_bfloat16 q=__float2bfloat16(__half2float(x)); q=__hfma(q,q,__float2bfloat16(0.5f)); o[i]=__half2float(r)+__bfloat162float(q)+__half2float(hsqrt(__habs(x)))+ (float)__half2int_rn(x) + __half2float(__int2half_rn(i)); }
