typedef float (*fp)(float,float);
__device__ __noinline__ float fa(float x,float y){return x+y;}
__device__ __noinline__ float fb(float x,float y){return x*y;}
__device__ __noinline__ float fc(float x,float y){return x-y*2.f;}
__device__ fp table[3]={fa,fb,fc};
extern "C" __global__ void function_pointer(float* o,const float* a){int i = blockIdx.x * blockDim.x + threadIdx.x; float r=a[i]; for(int j=0;j<4;j++) r=table[(i+j)%3](r,a[(i+j)&1023]); o[i]=r; }
