// A picture sampled through a rotation, tile by tile: neighbouring warps of a CTA read the same cache lines, other CTAs
// read others. Each layer's coordinates depend on the sample before it, so the program has a phase for each layer.

#define SIDE 512
#define LAYERS 4

__device__ __forceinline__ float2 mix(float2 a, float2 b, float t) {
    return make_float2(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y));
}

__device__ __forceinline__ float2 bilinear(const float2 *__restrict__ layer, float u, float v) {
    const float fu = floorf(u), fv = floorf(v);
    const int x = (int)fu & (SIDE - 2), y = (int)fv & (SIDE - 2);
    const float2 *p = layer + y * SIDE + x;
    const float2 a = p[0], b = p[1], c = p[SIDE], d = p[SIDE + 1];
    const float s = u - fu, t = v - fv;
    return mix(mix(a, b, s), mix(c, d, s), t);
}

extern "C" __global__ void sampling(float *picture, const float2 *__restrict__ layers, int width, float cosine,
                                    float sine) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = cosine * (float)x - sine * (float)y + 200.0f;
    float v = sine * (float)x + cosine * (float)y + 20.0f;
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < LAYERS; n++) {
        const float2 s = bilinear(layers + n * SIDE * SIDE, u, v);
        sum += s.x * s.y;
        // What was found moves the next sample a little.
        u += 1.5f * s.x;
        v += 1.5f * s.y;
    }
    picture[y * width + x] = sum;
}
