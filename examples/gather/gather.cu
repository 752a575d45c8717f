// Features of points in the plane from a hash grid: coarse levels are small and shared by all, fine levels are spread over
// their tables by a hash, and every point reads four corners of its cell in each level.

#define LEVELS 6
#define ENTRIES 16384

__device__ __forceinline__ unsigned place(unsigned x, unsigned y, unsigned side) {
    return side * side <= ENTRIES ? y * side + x : (x ^ y * 2654435761u) & (ENTRIES - 1);
}

extern "C" __global__ void gather(float *features, const float *__restrict__ grid, int width) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const float px = ((float)x + 0.5f) / (float)width, py = ((float)y + 0.5f) / (float)width;
    float sum = 0.0f;
    unsigned cells = 16;
#pragma unroll
    for (int n = 0; n < LEVELS; n++, cells *= 2) {
        const float u = px * (float)cells, v = py * (float)cells;
        const unsigned i = (unsigned)u, j = (unsigned)v, side = cells + 1;
        const float s = u - (float)i, t = v - (float)j;
        const float *level = grid + n * ENTRIES;
        const float a = level[place(i, j, side)], b = level[place(i + 1, j, side)];
        const float c = level[place(i, j + 1, side)], d = level[place(i + 1, j + 1, side)];
        const float top = a + s * (b - a), bottom = c + s * (d - c);
        sum += top + t * (bottom - top);
    }
    features[y * width + x] = sum;
}
