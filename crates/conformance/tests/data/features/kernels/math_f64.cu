extern "C" __global__ void math_f64(double* o, const double* a, const double* b){int i = blockIdx.x * blockDim.x + threadIdx.x;
 double x=a[i], y=b[i]; double r = sin(x)*cos(y)+exp(x*0.1)-log(fabs(y)+1.0);
 r += pow(fabs(x)+0.5, y*0.05) + sqrt(fabs(x)) + rsqrt(fabs(y)+0.1) + x/y + tanh(x*0.1) + fma(x,y,r) + floor(x)+ceil(y)+rint(x*y)+trunc(y) + fmod(x,y);
 o[i]=r; }
