extern "C" __global__ void math_f32(float* o, const float* a, const float* b){int i = blockIdx.x * blockDim.x + threadIdx.x;
 float x=a[i], y=b[i]; float r = sinf(x)*cosf(y)+expf(x*0.1f)-logf(fabsf(y)+1.f);
 r += powf(fabsf(x)+0.5f, y*0.05f) + sqrtf(fabsf(x)) + rsqrtf(fabsf(y)+0.1f) + x/y + tanhf(x) + atan2f(x,y) + cbrtf(y) + erff(x*0.02f);
 o[i]=r; }
