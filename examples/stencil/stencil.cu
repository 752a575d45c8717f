// A stencil of 13 points over a plane, in blocks and through the cache alone: a CTA walks down a strip, and a row that it
// reads now is read again by its own warps and by their neighbours.

#define SIDE 512
#define ROWS 8

extern "C" __global__ void stencil(float *out, const float *__restrict__ in) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 4;
    const int first = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS + 4;
    for (int n = 0; n < ROWS; n++) {
        const int y = first + n;
        const float *p = in + y * SIDE + x;
        float sum = 0.5f * p[0];
        sum += 0.25f * (p[-1] + p[1] + p[-SIDE] + p[SIDE]);
        sum += 0.125f * (p[-2] + p[2] + p[-2 * SIDE] + p[2 * SIDE]);
        sum += 0.0625f * (p[-4] + p[4] + p[-4 * SIDE] + p[4 * SIDE]);
        out[y * SIDE + x] = sum;
    }
}
