// Gravity between n bodies, every pair, with positions staged through shared memory; then one step of leapfrog.
// A body is x, y, z and mass; n is a multiple of the CTA size.
extern "C" __global__ void accelerate(float4 *acceleration, const float4 *body, int n) {
  extern __shared__ float4 tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = body[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < n; first += blockDim.x) {
    tile[threadIdx.x] = body[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < blockDim.x; ++j) {
      float4 other = tile[j];
      float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-4f);
      float pull = other.w * inverse * inverse * inverse;
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
    __syncthreads();
  }
  acceleration[i] = make_float4(ax, ay, az, 0.0f);
}

extern "C" __global__ void advance(float4 *body, float4 *velocity, const float4 *acceleration, float step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 b = body[i], v = velocity[i], a = acceleration[i];
  v.x += step * a.x;
  v.y += step * a.y;
  v.z += step * a.z;
  b.x += step * v.x;
  b.y += step * v.y;
  b.z += step * v.z;
  body[i] = b;
  velocity[i] = v;
}
