struct S{float a[5]; int n; double d; char c;};
__device__ __noinline__ S mk(float x,int n){S s; for(int j=0;j<5;j++) s.a[j]=x*j; s.n=n; s.d=x*0.25; s.c=(char)n; return s;}
__device__ __noinline__ float use(S s){ float r=0; for(int j=0;j<5;j++) r+=s.a[j]; return r+s.n+(float)s.d+s.c;}
extern "C" __global__ void struct_args(float* o,const float* a){int i = blockIdx.x * blockDim.x + threadIdx.x; S s=mk(a[i],i); s.a[2]+=1.f; o[i]=use(s); }
