#include <cuda_fp16.h>
extern "C" __global__ void half_atomics(float* o,float* s2,const float* a){int i = blockIdx.x * blockDim.x + threadIdx.x; atomicAdd(o+(i&7), (float)(int)(a[i]*8.f)); __shared__ float s[8]; if(threadIdx.x<8) s[threadIdx.x]=0.f; __syncthreads(); atomicAdd(s+(i&7),(float)(int)(a[i]*4.f)); __syncthreads(); if(threadIdx.x<8) atomicAdd(s2+threadIdx.x,s[threadIdx.x]); }
