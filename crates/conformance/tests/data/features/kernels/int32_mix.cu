extern "C" __global__ void int32_mix(int* o, const int* a, const int* b){int i = blockIdx.x * blockDim.x + threadIdx.x;
 int x=a[i], y=b[i]; unsigned u=x, v=y; int r = x*y + (x>>(y&31)) + (u>>(v&31));
 if (y) r ^= x/y + x%y; r += u/(v|1) - u%(v|1) + x/7 + x%10 + u/1000; r += __mulhi(x,y) ^ __umulhi(u,v); r += __popc(x)+__clz(y)+__ffs(x); r ^= __brev(u); r += __byte_perm(x,y,0x3715); r += __sad(x,y,u) + __usad(u,v,3); r ^= __funnelshift_l(x,y,x&63) + __funnelshift_rc(x,y,y&63); r += __dp4a(x,y,r) + __vadd4(u,v) + __vabsdiffu4(u,v) + __vmaxs2(u,v) + __vcmpgtu4(u,v);
 o[i]=r; }
