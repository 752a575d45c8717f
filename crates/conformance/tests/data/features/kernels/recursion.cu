__device__ __noinline__ int fib(int n){ return n<2?n:fib(n-1)+fib(n-2);}
__device__ __noinline__ int ack(int m,int n){ return m==0?n+1: n==0?ack(m-1,1):ack(m-1,ack(m,n-1)); }
extern "C" __global__ void recursion(int* o){int i = blockIdx.x * blockDim.x + threadIdx.x; o[i]=fib(i%13)+ack(i%3,i%4); }
