__device__ int lock_=0;
extern "C" __global__ void spin_lock(int* o){ for(int j=0;j<2;j++){ bool done=false; while(!done){ if(atomicCAS(&lock_,0,1)==0){ int v=((volatile int*)o)[0]; ((volatile int*)o)[0]=v+1; __threadfence(); atomicExch(&lock_,0); done=true; } } } }
