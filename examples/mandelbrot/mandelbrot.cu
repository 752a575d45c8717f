// Iterations until z*z + c leaves the circle of radius 2, one pixel a thread.
extern "C" __global__ void mandelbrot(int *iterations, int width, int height, int limit) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float scale = 2.5f / height;
  float re = (x - 0.72f * width) * scale, im = (y - 0.5f * height) * scale;
  float zr = 0.0f, zi = 0.0f;
  int n = 0;
  while (n < limit && zr * zr + zi * zi < 4.0f) {
    float t = zr * zr - zi * zi + re;
    zi = 2.0f * zr * zi + im;
    zr = t;
    ++n;
  }
  iterations[y * width + x] = n;
}
