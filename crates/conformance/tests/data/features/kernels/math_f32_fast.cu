extern "C" __global__ void math_f32_fast(float* o, const float* a, const float* b){int i = blockIdx.x * blockDim.x + threadIdx.x;
 float x=a[i], y=b[i]; float r = __sinf(x)*__cosf(y)+__expf(x*0.1f)-__logf(fabsf(y)+1.f);
 r += __powf(fabsf(x)+0.5f, y*0.05f) + __fdividef(x,y) + __frsqrt_rn(fabsf(x)+1.f) + __fsqrt_rz(fabsf(y)) + __fdiv_ru(x,y) + __frcp_rd(y) + __fmaf_rz(x,y,1.f) + __fadd_ru(x,y)*__fmul_rd(x,y);
 o[i]=r; }
