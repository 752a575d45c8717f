// A long kernel with local memory, and a short one that cannot wait.
#include <cstdint>

template <int WORDS> __device__ uint32_t work(uint32_t i, uint32_t rounds) {
    __shared__ uint32_t shared[256];
    uint32_t a[WORDS];
    #pragma unroll 1
    for (int n = 0; n < WORDS; n++) a[n] = i * 31 + n;
    shared[threadIdx.x] = i;
    __syncthreads();
    uint32_t sum = 0;
    #pragma unroll 1
    for (uint32_t n = 0; n < rounds; n++) {
        uint32_t from = (i + n * 17) % WORDS, to = (i * 5 + n) % WORDS;
        a[to] = a[to] * 3 + a[from] + shared[(threadIdx.x + n) % blockDim.x];
        sum = sum * 5 + a[to];
    }
    return sum;
}

extern "C" __global__ void local1(uint32_t *out, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work<8>(i, rounds);
}
extern "C" __global__ void local16(uint32_t *out, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work<128>(i, rounds);
}
extern "C" __global__ void local64(uint32_t *out, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = work<512>(i, rounds);
}
extern "C" __global__ void local0(uint32_t *out, uint32_t rounds) {
    __shared__ uint32_t shared[256];
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, sum = i;
    shared[threadIdx.x] = i;
    __syncthreads();
    #pragma unroll 1
    for (uint32_t n = 0; n < rounds; n++) sum = sum * 1664525u + shared[(threadIdx.x + n) % blockDim.x];
    out[i] = sum;
}
extern "C" __global__ void urgent(uint32_t *out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = 7 * blockIdx.x + threadIdx.x;
}
