// Cooperative groups: tiles of a warp, and a grid whose blocks wait for each other.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <vector>

namespace cg = cooperative_groups;

// Sums a vector in one launch: each block its part, then the first block all parts.
__global__ void total(const int* values, int n, int* parts, int* result) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    __shared__ int warps[32];
    int sum = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += values[i];
    sum = cg::reduce(tile, sum, cg::plus<int>());
    if (tile.thread_rank() == 0) warps[tile.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        int all = 0;
        for (int w = 0; w < (int)tile.meta_group_size(); w++) all += warps[w];
        parts[blockIdx.x] = all;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        int all = 0;
        for (unsigned b = 0; b < gridDim.x; b++) all += parts[b];
        *result = all;
    }
}

// Rounds of a relaxation in place of as many launches.
__global__ void smooth(float* a, float* b, int n, int rounds) {
    cg::grid_group grid = cg::this_grid();
    for (int round = 0; round < rounds; round++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            b[i] = 0.25f * (a[max(i - 1, 0)] + 2 * a[i] + a[min(i + 1, n - 1)]);
        grid.sync();
        float* swap = a;
        a = b, b = swap;
    }
}

int main() {
    const int n = 50000;
    int can = 0;
    MUST(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, 0));
    HOLDS(can == 1);
    int *values, *parts, *result;
    MUST(cudaMallocManaged(&values, n * sizeof(int)));
    MUST(cudaMallocManaged(&parts, 64 * sizeof(int)));
    MUST(cudaMallocManaged(&result, sizeof(int)));
    long long expected = 0;
    for (int i = 0; i < n; i++) values[i] = i % 1000 - 300, expected += values[i];
    int count = n;
    void* arguments[] = {&values, &count, &parts, &result};
    MUST(cudaLaunchCooperativeKernel((void*)total, 64, 128, arguments, 0, 0));
    MUST(cudaDeviceSynchronize());
    HOLDS(*result == expected);

    const int m = 3000, rounds = 5;
    float *a, *b;
    MUST(cudaMallocManaged(&a, m * sizeof(float)));
    MUST(cudaMallocManaged(&b, m * sizeof(float)));
    std::vector<float> x(m), y(m);
    for (int i = 0; i < m; i++) a[i] = x[i] = float(i % 17 * (i % 5));
    int length = m, times = rounds;
    void* more[] = {&a, &b, &length, &times};
    MUST(cudaLaunchCooperativeKernel((void*)smooth, 12, 256, more, 0, 0));
    MUST(cudaDeviceSynchronize());
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < m; i++) y[i] = 0.25f * (x[i ? i - 1 : 0] + 2 * x[i] + x[i < m - 1 ? i + 1 : i]);
        x.swap(y);
    }
    for (int i = 0; i < m; i++) HOLDS(b[i] == x[i]);

    // More blocks than there is room for at once.
    HOLDS(cudaLaunchCooperativeKernel((void*)total, 1 << 20, 128, arguments, 0, 0) ==
          cudaErrorCooperativeLaunchTooLarge);
    HOLDS(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
    std::printf("grid: good\n");
}
