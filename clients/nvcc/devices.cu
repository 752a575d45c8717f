// Several devices: each has its own memory and variables; copies and kernels reach those of others.
#include "check.h"

__device__ int word = 1;

__global__ void bump(int* at) {
    *at += 1;
    word += 10;
}

int main() {
    int count, can, read;
    MUST(cudaGetDeviceCount(&count));
    HOLDS(count == 2);
    int* memory[2];
    for (int d = 0; d < 2; d++) {
        MUST(cudaSetDevice(d));
        MUST(cudaMalloc(&memory[d], sizeof(int)));
        MUST(cudaMemset(memory[d], 0, sizeof(int)));
        for (int k = 0; k <= d; k++) bump<<<1, 1>>>(memory[d]);
    }
    for (int d = 0; d < 2; d++) {
        MUST(cudaSetDevice(d));
        MUST(cudaMemcpy(&read, memory[d], sizeof(int), cudaMemcpyDeviceToHost));
        HOLDS(read == d + 1);
        MUST(cudaMemcpyFromSymbol(&read, word, sizeof(int)));
        HOLDS(read == 11 + 10 * d);
        MUST(cudaGetDevice(&read));
        HOLDS(read == d);
    }
    MUST(cudaSetDevice(0));
    MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
    HOLDS(can == 1);
    MUST(cudaDeviceEnablePeerAccess(1, 0));
    HOLDS(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    bump<<<1, 1>>>(memory[1]);
    MUST(cudaMemcpyPeer(memory[0], 0, memory[1], 1, sizeof(int)));
    MUST(cudaMemcpy(&read, memory[0], sizeof(int), cudaMemcpyDefault));
    HOLDS(read == 3);
    std::printf("devices: good\n");
}
