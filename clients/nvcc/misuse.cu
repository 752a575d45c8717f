// Calls that are wrong, and the codes that an H200 answers them with.
#include "check.h"

__global__ void nothing() {}
__global__ void needs(int* to) { *to = 1; }
__global__ void wide() {
    extern __shared__ int room[];
    room[threadIdx.x] = threadIdx.x;
}

static int host_variable;

#define ANSWERS(call, expected)                                                                                 \
    do {                                                                                                        \
        cudaError_t code = (call), wanted = (expected);                                                         \
        if (code != wanted) {                                                                                   \
            std::fprintf(stderr, "%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(code), \
                         cudaGetErrorName(wanted));                                                             \
            wrong++;                                                                                            \
        }                                                                                                       \
        (void)cudaGetLastError();                                                                               \
    } while (0)

int main() {
    int wrong = 0;
    int count, *device = nullptr, host[4];
    void* memory = nullptr;
    MUST(cudaGetDeviceCount(&count));
    MUST(cudaMalloc(&device, sizeof(host)));

    // Devices.
    ANSWERS(cudaSetDevice(count), cudaErrorInvalidDevice);
    ANSWERS(cudaSetDevice(-1), cudaErrorInvalidDevice);
    ANSWERS(cudaGetDevice(nullptr), cudaErrorInvalidValue);
    ANSWERS(cudaDeviceGetAttribute(&host[0], cudaDeviceAttr(9999), 0), cudaErrorInvalidValue);
    ANSWERS(cudaDeviceGetAttribute(&host[0], cudaDevAttrWarpSize, count), cudaErrorInvalidDevice);
    cudaDeviceProp properties;
    ANSWERS(cudaGetDeviceProperties(&properties, count), cudaErrorInvalidDevice);

    // Memory.
    ANSWERS(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
    ANSWERS(cudaMalloc(&memory, size_t(1) << 50), cudaErrorMemoryAllocation);
    ANSWERS(cudaFree(nullptr), cudaSuccess);
    ANSWERS(cudaFree(&host_variable), cudaErrorInvalidValue);
    ANSWERS(cudaFree(device + 1), cudaErrorInvalidValue);
    ANSWERS(cudaFreeHost(&host_variable), cudaErrorInvalidValue);
    ANSWERS(cudaHostUnregister(&host_variable), cudaErrorHostMemoryNotRegistered);
    ANSWERS(cudaMallocManaged(&memory, 16, 0), cudaErrorInvalidValue);
    ANSWERS(cudaMallocManaged(&memory, 0, cudaMemAttachGlobal), cudaSuccess);

    // Copies.
    ANSWERS(cudaMemcpy(device, host, 4, cudaMemcpyKind(9)), cudaErrorInvalidMemcpyDirection);
    ANSWERS(cudaMemcpy(device, host, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    ANSWERS(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    ANSWERS(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice), cudaSuccess);
    ANSWERS(cudaMemcpy2D(device, 2, host, 8, 4, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    ANSWERS(cudaMemset(device, 0, 1 << 20), cudaErrorInvalidValue);
    ANSWERS(cudaMemcpyToSymbol(&host_variable, host, 4), cudaErrorInvalidSymbol);
    ANSWERS(cudaGetSymbolAddress(&memory, &host_variable), cudaErrorInvalidSymbol);

    // Kernels.
    ANSWERS((nothing<<<0, 32>>>(), cudaGetLastError()), cudaErrorInvalidValue);
    ANSWERS((nothing<<<1, 2048>>>(), cudaGetLastError()), cudaErrorInvalidValue);
    ANSWERS((nothing<<<dim3(1, 70000), 32>>>(), cudaGetLastError()), cudaErrorInvalidValue);
    ANSWERS((nothing<<<1, dim3(1, 1, 65)>>>(), cudaGetLastError()), cudaErrorInvalidValue);
    ANSWERS((wide<<<1, 32, 100000>>>(), cudaGetLastError()), cudaErrorInvalidValue);
    ANSWERS(cudaLaunchKernel(&host_variable, 1, 1, nullptr), cudaErrorInvalidResourceHandle);
    cudaFuncAttributes attributes;
    ANSWERS(cudaFuncGetAttributes(&attributes, (void*)&host_variable), cudaErrorInvalidResourceHandle);
    ANSWERS(cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20), cudaErrorInvalidValue);
    ANSWERS(cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000), cudaSuccess);
    ANSWERS((wide<<<1, 32, 100000>>>(), cudaDeviceSynchronize()), cudaSuccess);

    // Streams and events.
    cudaEvent_t never, also;
    float ms;
    MUST(cudaEventCreate(&never));
    MUST(cudaEventCreate(&also));
    ANSWERS(cudaEventElapsedTime(&ms, never, also), cudaErrorInvalidResourceHandle);
    ANSWERS(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
    cudaStream_t stream;
    ANSWERS(cudaStreamCreateWithFlags(&stream, 77), cudaErrorInvalidValue);

    // The last error stays until it is asked for, and peeking leaves it.
    (void)cudaFree(&host_variable);
    HOLDS(cudaPeekAtLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
    HOLDS(cudaGetLastError() == cudaSuccess);

    // A kernel that faults: every later call says so.
    needs<<<1, 1>>>(reinterpret_cast<int*>(16));
    ANSWERS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    ANSWERS(cudaMalloc(&memory, 16), cudaErrorIllegalAddress);
    ANSWERS((nothing<<<1, 1>>>(), cudaGetLastError()), cudaErrorIllegalAddress);
    if (wrong) return 1;
    std::printf("misuse: good\n");
}
