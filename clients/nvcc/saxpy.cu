// A vector scaled and added, with the triple-bracket launch: device, managed and pinned memory, and what a kernel needs.
#include "check.h"
#include <vector>

__global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

template <typename T> __global__ void scale(T* values, int n, T by) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) values[i] *= by;
}

int main() {
    const int n = 100003;
    cudaDeviceProp properties;
    MUST(cudaGetDeviceProperties(&properties, 0));
    HOLDS(properties.warpSize == 32 && properties.multiProcessorCount > 0 && properties.major >= 8);
    HOLDS(properties.maxThreadsPerBlock == 1024 && properties.clusterLaunch >= 0);

    std::vector<float> x(n), y(n), result(n);
    for (int i = 0; i < n; i++) x[i] = float(i % 97), y[i] = float(i % 31);
    float *dx, *dy;
    MUST(cudaMalloc(&dx, n * sizeof(float)));
    MUST(cudaMalloc(&dy, n * sizeof(float)));
    MUST(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyDefault));
    saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, dx, dy);
    MUST(cudaGetLastError());
    MUST(cudaMemcpy(result.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) HOLDS(result[i] == 2.0f * x[i] + y[i]);

    // Memory that both sides use, and rows with a pitch.
    double* both;
    MUST(cudaMallocManaged(&both, 1000 * sizeof(double)));
    for (int i = 0; i < 1000; i++) both[i] = i;
    scale<<<4, 64>>>(both, 1000, 0.5);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < 1000; i++) HOLDS(both[i] == 0.5 * i);
    char *rows, back[5 * 7];
    size_t pitch;
    MUST(cudaMallocPitch(&rows, &pitch, 7, 5));
    HOLDS(pitch >= 7);
    MUST(cudaMemset2D(rows, pitch, 9, 7, 5));
    MUST(cudaMemcpy2D(back, 7, rows, pitch, 7, 5, cudaMemcpyDeviceToHost));
    for (char c : back) HOLDS(c == 9);

    // What a kernel needs, and how many blocks an SM takes.
    cudaFuncAttributes attributes;
    MUST(cudaFuncGetAttributes(&attributes, saxpy));
    HOLDS(attributes.numRegs > 0 && attributes.maxThreadsPerBlock == 1024 && attributes.sharedSizeBytes == 0);
    int blocks, best, grid;
    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy, 256, 0));
    MUST(cudaOccupancyMaxPotentialBlockSize(&grid, &best, saxpy));
    HOLDS(blocks >= 1 && best >= 32 && grid >= 1);
    cudaPointerAttributes where;
    MUST(cudaPointerGetAttributes(&where, dx));
    HOLDS(where.type == cudaMemoryTypeDevice && where.devicePointer == dx);
    MUST(cudaPointerGetAttributes(&where, both));
    HOLDS(where.type == cudaMemoryTypeManaged && where.hostPointer == both);

    MUST(cudaFree(dx));
    MUST(cudaFree(dy));
    MUST(cudaFree(both));
    MUST(cudaFree(rows));
    MUST(cudaDeviceReset());
    // After a reset everything is there again.
    MUST(cudaMallocManaged(&both, sizeof(double)));
    *both = 3;
    scale<<<1, 1>>>(both, 1, 2.0);
    MUST(cudaDeviceSynchronize());
    HOLDS(*both == 6);
    std::printf("saxpy: good\n");
}
