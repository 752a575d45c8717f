__device__ int lck=0;
extern "C" __global__ void spin_lock_warp(int* o){ while(atomicCAS(&lck,0,1)!=0); int v=((volatile int*)o)[0]; ((volatile int*)o)[0]=v+threadIdx.x; __threadfence(); atomicExch(&lck,0); }
