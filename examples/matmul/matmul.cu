// C = A*B for square matrices whose side is a multiple of 32. A CTA of 32 x 8 threads makes a tile of 32 x 32; each
// thread keeps four elements of a column in registers, so that a loaded element of B is used four times.
constexpr int TILE = 32, ROWS = 8, EACH = TILE / ROWS;

extern "C" __global__ void matmul(float *c, const float *a, const float *b, int n) {
  __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * TILE, column = blockIdx.x * TILE + x;
  float sum[EACH] = {};
  for (int k = 0; k < n; k += TILE) {
    for (int j = 0; j < EACH; ++j) {
      tile_a[y + j * ROWS][x] = a[(row + y + j * ROWS) * n + k + x];
      tile_b[y + j * ROWS][x] = b[(k + y + j * ROWS) * n + column];
    }
    __syncthreads();
    for (int i = 0; i < TILE; ++i) {
      float from_b = tile_b[i][x];
      for (int j = 0; j < EACH; ++j) sum[j] += tile_a[y + j * ROWS][i] * from_b;
    }
    __syncthreads();
  }
  for (int j = 0; j < EACH; ++j) c[(row + y + j * ROWS) * n + column] = sum[j];
}
