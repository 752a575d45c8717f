__device__ __noinline__ int sum4(const int* p){ return p[0]+p[1]*2+p[2]*3+p[3]*4; }
__device__ int gv[8]={1,2,3,4,5,6,7,8};
extern "C" __global__ void generic_ptr(int* o,const int* a){int i = blockIdx.x * blockDim.x + threadIdx.x; __shared__ int s[128]; int l[4]; for(int j=0;j<4;j++) l[j]=a[(i+j)&511]; s[threadIdx.x]=a[i&511]; __syncthreads(); const int* p= (i%3==0)? l : (i%3==1)? s+(threadIdx.x&120) : gv+(i&3); o[i]=sum4(p)+sum4(l)*5; }
