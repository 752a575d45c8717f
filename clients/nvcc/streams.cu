// Streams, events, callbacks of the host, and a graph captured from a stream.
#include "check.h"
#include <atomic>
#include <thread>
#include <vector>

__global__ void add(int* to, int by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += by;
}

__global__ void sum(const int* a, const int* b, int* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

static std::atomic<int> calls{0};

int main() {
    const int n = 1 << 14, bytes = n * sizeof(int), grid = n / 128;
    cudaStream_t first, second;
    MUST(cudaStreamCreate(&first));
    int least, greatest;
    MUST(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    MUST(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, greatest));
    cudaEvent_t start, middle, end;
    MUST(cudaEventCreate(&start));
    MUST(cudaEventCreateWithFlags(&middle, cudaEventDisableTiming));
    MUST(cudaEventCreate(&end));

    int *a, *b, *c, *host;
    MUST(cudaMalloc(&a, bytes));
    MUST(cudaMalloc(&b, bytes));
    MUST(cudaMallocAsync(&c, bytes, first));
    MUST(cudaMallocHost(&host, bytes));
    for (int i = 0; i < n; i++) host[i] = i;

    MUST(cudaEventRecord(start, first));
    MUST(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, first));
    MUST(cudaMemsetAsync(b, 0, bytes, second));
    add<<<grid, 128, 0, second>>>(b, 7, n);
    MUST(cudaEventRecord(middle, second));
    add<<<grid, 128, 0, first>>>(a, 1, n);
    // The sum waits for both streams.
    MUST(cudaStreamWaitEvent(first, middle, 0));
    sum<<<grid, 128, 0, first>>>(a, b, c, n);
    MUST(cudaMemcpyAsync(host, c, bytes, cudaMemcpyDeviceToHost, first));
    MUST(cudaLaunchHostFunc(first, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &calls));
    MUST(cudaEventRecord(end, first));
    MUST(cudaEventSynchronize(end));
    for (int i = 0; i < n; i++) HOLDS(host[i] == i + 8);
    HOLDS(calls == 1);
    float ms;
    MUST(cudaEventElapsedTime(&ms, start, end));
    HOLDS(ms > 0);
    MUST(cudaStreamQuery(first));

    // A graph: captured once, launched several times.
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaMemset(a, 0, bytes));
    // The second stream does not wait for the default one.
    MUST(cudaDeviceSynchronize());
    MUST(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    add<<<grid, 128, 0, first>>>(a, 2, n);
    add<<<grid, 128, 0, first>>>(a, 3, n);
    MUST(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, first));
    MUST(cudaStreamEndCapture(first, &graph));
    size_t nodes = 0;
    MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
    HOLDS(nodes == 3);
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int k = 0; k < 4; k++) MUST(cudaGraphLaunch(exec, second));
    MUST(cudaStreamSynchronize(second));
    for (int i = 0; i < n; i++) HOLDS(host[i] == 20);

    // A graph built by hand.
    cudaGraph_t built;
    cudaGraphNode_t fill, kernel;
    MUST(cudaGraphCreate(&built, 0));
    cudaMemsetParams filling{};
    filling.dst = a, filling.elementSize = 4, filling.value = 5, filling.width = n, filling.height = 1;
    MUST(cudaGraphAddMemsetNode(&fill, built, nullptr, 0, &filling));
    int by = 6, count = n;
    void* arguments[] = {&a, &by, &count};
    cudaKernelNodeParams node{};
    node.func = (void*)add, node.gridDim = grid, node.blockDim = 128, node.kernelParams = arguments;
    MUST(cudaGraphAddKernelNode(&kernel, built, &fill, 1, &node));
    cudaGraphExec_t second_exec;
    MUST(cudaGraphInstantiate(&second_exec, built, 0));
    MUST(cudaGraphLaunch(second_exec, first));
    MUST(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, first));
    MUST(cudaStreamSynchronize(first));
    for (int i = 0; i < n; i++) HOLDS(host[i] == 11);

    // Threads of the host, each with a stream of its own.
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            cudaStream_t mine;
            int *values, back = 0;
            MUST(cudaStreamCreate(&mine));
            MUST(cudaMallocAsync(&values, bytes, mine));
            MUST(cudaMemsetAsync(values, 0, bytes, mine));
            for (int k = 0; k < 10; k++) add<<<grid, 128, 0, mine>>>(values, t, n);
            MUST(cudaMemcpyAsync(&back, values + n - 1, sizeof(int), cudaMemcpyDeviceToHost, mine));
            MUST(cudaStreamSynchronize(mine));
            if (back == 10 * t) ++good;
            MUST(cudaFreeAsync(values, mine));
            MUST(cudaStreamDestroy(mine));
        });
    for (auto& thread : threads) thread.join();
    HOLDS(good == 4);

    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphExecDestroy(second_exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaGraphDestroy(built));
    MUST(cudaFreeHost(host));
    MUST(cudaEventDestroy(start));
    MUST(cudaEventDestroy(middle));
    MUST(cudaEventDestroy(end));
    MUST(cudaStreamDestroy(first));
    MUST(cudaStreamDestroy(second));
    std::printf("streams: good\n");
}
