extern __shared__ int sh[];
extern "C" __global__ void dyn_shared(int* o,const int* a,int n){ int* x=sh; float* y=(float*)(sh+blockDim.x); int t=threadIdx.x; x[t]=a[blockIdx.x*blockDim.x+t]; y[t]=x[t]*0.5f; __syncthreads(); int r=0; for(int j=0;j<n;j++) r+=x[(t*j+1)%blockDim.x]+(int)y[(t+j)%blockDim.x]; o[blockIdx.x*blockDim.x+t]=r; }
