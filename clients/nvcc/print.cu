// printf, assert and memory of the heap in kernels. What kernels print is compared with print.txt.
#include "check.h"
#include <cassert>

__global__ void hello(double value) {
    printf("thread %d of block %d: %5.2f %x %s %c %llu%%\n", threadIdx.x, blockIdx.x, value * threadIdx.x,
           blockIdx.x + 255, threadIdx.x ? "more" : "first", 'a' + threadIdx.x, 1ull << 40);
}

__global__ void list(int n) {
    struct Node {
        Node* next;
        int value;
    };
    Node* head = nullptr;
    for (int i = 0; i < n; i++) {
        Node* node = static_cast<Node*>(malloc(sizeof(Node)));
        node->next = head, node->value = i, head = node;
    }
    int total = 0;
    while (head) {
        Node* next = head->next;
        total += head->value;
        free(head);
        head = next;
    }
    printf("total %d\n", total);
}

__global__ void fails(int value) { assert(value < 3); }

int main() {
    for (int block = 0; block < 2; block++) hello<<<1, 2>>>(block + 0.125);
    MUST(cudaDeviceSynchronize());
    std::printf("between\n");
    list<<<1, 1>>>(10);
    MUST(cudaDeviceSynchronize());
    fails<<<1, 1>>>(2);
    MUST(cudaDeviceSynchronize());
    std::fflush(stdout);
    fails<<<1, 1>>>(3);
    HOLDS(cudaDeviceSynchronize() == cudaErrorAssert);
    // A device that failed stays so, until it is reset.
    void* memory;
    HOLDS(cudaMalloc(&memory, 4) == cudaErrorAssert);
    std::printf("print: good\n");
}
