// A picture sampled through a rotation, tile by tile: neighbouring warps of a CTA read the same cache lines, other CTAs
// read others. Each layer's coordinates depend on the sample before it, so the program has a phase for each layer.

#define SIDE 512
#define LAYERS 4

__device__ __forceinline__ float bilinear(const float *__restrict__ layer, float u, float v) {
    const float fu = floorf(u), fv = floorf(v);
    const int x = (int)fu & (SIDE - 2), y = (int)fv & (SIDE - 2);
    const float *p = layer + y * SIDE + x;
    const float a = p[0], b = p[1], c = p[SIDE], d = p[SIDE + 1];
    const float s = u - fu, t = v - fv;
    const float top = a + s * (b - a), bottom = c + s * (d - c);
    return top + t * (bottom - top);
}

extern "C" __global__ void sampling(float *picture, const float *__restrict__ layers, int width, float cosine,
                                    float sine) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = cosine * (float)x - sine * (float)y + 200.0f;
    float v = sine * (float)x + cosine * (float)y + 20.0f;
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < LAYERS; n++) {
        const float s = bilinear(layers + n * SIDE * SIDE, u, v);
        sum += s;
        // What was found moves the next sample a little.
        u += 1.5f * s;
        v += 1.5f - s;
    }
    picture[y * width + x] = sum;
}
