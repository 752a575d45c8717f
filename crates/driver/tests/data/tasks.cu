// Kernels for the tests of streams, suspended CTAs, child tasks and queues. Built with
// nvcc -rdc=true -arch=sm_90 -ptx tasks.cu
#include <cstdint>

extern "C" __device__ void __warploom_wait_children();
extern "C" __device__ int __warploom_queue_push(void *queue, const void *entry);

// Integer arithmetic, long enough to be interrupted.
extern "C" __global__ void spin(uint32_t *out, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    for (uint32_t n = 0; n < rounds; n++) x = x * 1664525u + 1013904223u;
    out[i] = x;
}

// Shared memory and barriers.
extern "C" __global__ void tree(uint32_t *out, const uint32_t *in, uint32_t rounds) {
    __shared__ uint32_t s[256];
    uint32_t t = threadIdx.x, sum = 0;
    for (uint32_t n = 0; n < rounds; n++) {
        s[t] = in[blockIdx.x * blockDim.x + t] + n;
        __syncthreads();
        for (uint32_t d = blockDim.x / 2; d > 0; d /= 2) {
            if (t < d) s[t] += s[t + d] * 3;
            __syncthreads();
        }
        sum += s[0];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + t] = sum + t;
}

// Divergent loops of different lengths, with exits in between.
extern "C" __global__ void collatz(uint32_t *out, uint32_t first) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, x = first + i * 7 + 1, n = 0;
    if (i % 13 == 5) { out[i] = 0; return; }
    while (x != 1 && n < 300) {
        if (x % 2) x = 3 * x + 1; else x /= 2;
        n++;
    }
    out[i] = n * 1000 + (x & 255);
}

// Local memory with addresses that are not known before.
template <int WORDS> __device__ uint32_t local_work(uint32_t i, uint32_t rounds) {
    uint32_t a[WORDS];
    #pragma unroll 1
    for (int n = 0; n < WORDS; n++) a[n] = i * 31 + n;
    #pragma unroll 1
    for (uint32_t n = 0; n < rounds; n++) {
        uint32_t from = (i + n * 17) % WORDS, to = (i * 5 + n) % WORDS;
        a[to] = a[to] * 3 + a[from] + n;
    }
    uint32_t sum = 0;
    #pragma unroll 1
    for (int n = 0; n < WORDS; n++) sum = sum * 5 + a[n];
    return sum;
}
extern "C" __global__ void local8(uint32_t *out, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = local_work<8>(i, rounds);
}
extern "C" __global__ void local128(uint32_t *out, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = local_work<128>(i, rounds);
}
extern "C" __global__ void local512(uint32_t *out, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = local_work<512>(i, rounds);
}

// Atomics whose sum does not depend on the order.
extern "C" __global__ void histogram(uint32_t *bins, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, x = i * 2654435761u;
    __shared__ uint32_t s[32];
    if (threadIdx.x < 32) s[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t n = 0; n < rounds; n++) {
        x = x * 1664525u + 1013904223u;
        atomicAdd(&s[x >> 27], 1u);
        if (x & 64) atomicAdd(&bins[32 + (x >> 28)], atomicAdd(&bins[63], 0u) * 0u + 1u);
    }
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

// The CTAs of a grid wait for each other: all must have been somewhere at some time.
extern "C" __global__ void meet(volatile uint32_t *out, uint32_t *count) {
    if (threadIdx.x == 0) {
        atomicAdd(count, 1u);
        while (*(volatile uint32_t *)count < gridDim.x) {}
        out[blockIdx.x] = 1;
    }
}

// --- child tasks
extern "C" __global__ void child(uint32_t *out, uint32_t add) {
    atomicAdd(&out[threadIdx.x], add + blockIdx.x);
}
extern "C" __global__ void parent(uint32_t *out) {
    if (threadIdx.x == 0) {
        child<<<dim3(3, 1, 1), dim3(32, 1, 1), 64>>>(out, 10);
        child<<<1, 32, 0, cudaStreamFireAndForget>>>(out, 100);
        child<<<1, 32, 0, cudaStreamTailLaunch>>>(out, 1000);
    }
}
extern "C" __global__ void slow(uint32_t *out, uint32_t add) {
    uint32_t x = threadIdx.x;
    #pragma unroll 1
    for (uint32_t n = 0; n < 3000; n++) x = x * 1664525u + 1013904223u;
    atomicAdd(&out[threadIdx.x], add + blockIdx.x + (x == 7));
}
extern "C" __global__ void waiting(uint32_t *out, uint32_t *sums) {
    __shared__ uint32_t s;
    if (threadIdx.x == 0) {
        slow<<<2, 32>>>(out, 5);
        slow<<<1, 32>>>(out, 7);
        __warploom_wait_children();
        s = *(volatile uint32_t *)&out[3];
    }
    __syncthreads();
    sums[threadIdx.x] = s + threadIdx.x;
}
extern "C" __global__ void nest(uint32_t *out, uint32_t depth) {
    uint32_t mine = depth * 3 + 1;
    if (depth > 0 && threadIdx.x == 0) {
        nest<<<1, 32>>>(out, depth - 1);
        __warploom_wait_children();
        mine += *(volatile uint32_t *)&out[depth - 1];
    }
    if (threadIdx.x == 0) out[depth] = mine;
}
extern "C" __global__ void endless(uint32_t *out) {
    if (threadIdx.x == 0) {
        atomicAdd(out, 1u);
        endless<<<1, 32>>>(out);
    }
}
extern "C" __global__ void many(uint32_t *out, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) child<<<1, 32>>>(out, 1);
}

// --- queues: an entry n adds n to a sum, and appends n / 2 unless it is 0.
struct Queue { uint32_t magic, entry_bytes; uint64_t capacity; const uint32_t *entries; };
extern "C" __global__ void halve(Queue *queue, uint32_t *sum) {
    uint32_t n = queue->entries[blockIdx.x % queue->capacity];
    if (threadIdx.x == 0) {
        atomicAdd(sum, n);
        uint32_t half = n / 2;
        if (half) __warploom_queue_push(queue, &half);
    }
}
extern "C" __global__ void flood(Queue *queue, uint32_t *sum) {
    uint32_t n = queue->entries[blockIdx.x % queue->capacity];
    if (threadIdx.x < 2) { atomicAdd(sum, 1u); __warploom_queue_push(queue, &n); }
}
extern "C" __global__ void produce(Queue *queue, uint32_t n) {
    uint32_t x = n + blockIdx.x;
    if (threadIdx.x == 0) __warploom_queue_push(queue, &x);
}

// Straight code: loads of all kinds, a way that every third warp goes, stores of all kinds. For 512 threads.
extern "C" __global__ void straight(uint32_t *out, const uint32_t *in, uint32_t rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t a = in[i], b = in[2047 - i], c = in[(i * 37) & 2047];
    if ((i >> 5) % 3 == 1) {
        #pragma unroll
        for (uint32_t n = 0; n < 24; n++) a = (a ^ c >> 3) * 1664525u + n;
        out[512 + i] = a;
        out[1536 + i] = a * b;
    }
    out[i] = a + b * rounds + c;
    if (i & 1) out[1024 + ((i * 5) & 511)] = a ^ c;
}
