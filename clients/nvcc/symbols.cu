// Variables of the device: constant, global and managed ones, written and read by the host.
#include "check.h"

struct Filter {
    float taps[5];
    int shift;
};

__constant__ Filter filter;
__constant__ int answer = 42;
__device__ unsigned counter;
__device__ int table[64];
__managed__ int both = 5;

__global__ void convolve(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float total = 0;
    for (int k = 0; k < 5; k++) {
        int from = i + k - filter.shift;
        if (from >= 0 && from < n) total += filter.taps[k] * in[from];
    }
    out[i] = total;
    atomicAdd(&counter, 1u);
    if (i < 64) table[i] = i * answer;
    if (i == 0) both += 1;
}

int main() {
    const int n = 1000;
    Filter mine = {{1, 2, 4, 2, 1}, 2};
    MUST(cudaMemcpyToSymbol(filter, &mine, sizeof(mine)));
    unsigned zero = 0;
    MUST(cudaMemcpyToSymbol(counter, &zero, sizeof(zero), 0, cudaMemcpyHostToDevice));
    HOLDS(both == 5);
    both = 8;

    float *in, *out;
    MUST(cudaMallocManaged(&in, n * sizeof(float)));
    MUST(cudaMallocManaged(&out, n * sizeof(float)));
    for (int i = 0; i < n; i++) in[i] = float(i % 13);
    convolve<<<(n + 127) / 128, 128>>>(in, out, n);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) {
        float expected = 0;
        for (int k = 0; k < 5; k++)
            if (i + k - 2 >= 0 && i + k - 2 < n) expected += mine.taps[k] * in[i + k - 2];
        HOLDS(out[i] == expected);
    }
    HOLDS(both == 9);

    unsigned counted;
    int read[64], one;
    MUST(cudaMemcpyFromSymbol(&counted, counter, sizeof(counted)));
    HOLDS(counted == unsigned(n));
    MUST(cudaMemcpyFromSymbol(read, table, sizeof(read)));
    for (int i = 0; i < 64; i++) HOLDS(read[i] == 42 * i);
    MUST(cudaMemcpyFromSymbol(&one, table, sizeof(one), 63 * sizeof(int)));
    HOLDS(one == 42 * 63);

    size_t size;
    void* address;
    MUST(cudaGetSymbolSize(&size, table));
    MUST(cudaGetSymbolAddress(&address, table));
    HOLDS(size == sizeof(read) && address != nullptr);
    MUST(cudaMemset(address, 0, size));
    MUST(cudaMemcpyFromSymbol(read, table, sizeof(read)));
    HOLDS(read[63] == 0);
    // Past the end of a variable.
    HOLDS(cudaMemcpyFromSymbol(read, table, sizeof(read), 4) == cudaErrorInvalidValue);
    HOLDS(cudaGetLastError() == cudaErrorInvalidValue);
    std::printf("symbols: good\n");
}
