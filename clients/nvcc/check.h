// What the programs here share: a call that must succeed, and a result that must hold.
#pragma once
#include <cstdio>
#include <cstdlib>

#define MUST(call)                                                                                        \
    do {                                                                                                  \
        cudaError_t code = (call);                                                                        \
        if (code != cudaSuccess) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(code)); \
            std::exit(1);                                                                                 \
        }                                                                                                 \
    } while (0)

#define HOLDS(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);  \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)
