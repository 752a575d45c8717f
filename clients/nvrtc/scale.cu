// A kernel as CUDA C++, without a program around it: `warploom run scale.cu` compiles it with NVRTC, and scale.toml says how it runs.
extern "C" __global__ void scale(float* values, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= by;
}
