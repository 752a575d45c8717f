__constant__ float coef[16]={1.f,0.5f,-0.25f,0.125f,2.f,3.f,-4.f,5.5f,0.1f,0.2f,0.3f,0.4f,0.5f,0.6f,0.7f,0.8f};
__device__ int bias[4]={10,20,30,40};
__device__ float* ptr;
extern "C" __global__ void const_table(float* o,const float* a){int i = blockIdx.x * blockDim.x + threadIdx.x; float r=0,x=a[i],p=1; for(int j=0;j<16;j++){ r+=coef[(j+i)&15]*p; p*=x; } bias[i&3]; o[i]=r+bias[i&3]; }
