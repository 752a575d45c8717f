extern "C" __global__ void needleman(int* score, const int* sub, int penalty) {
  __shared__ int t[65][65];
  int i = threadIdx.x;
  const int* s = sub + blockIdx.x * 64;
  t[0][i + 1] = -penalty * (i + 1);
  t[i + 1][0] = -penalty * (i + 1);
  if (i == 0) t[0][0] = 0;
  int own = s[i];
  __syncthreads();
  for (int d = 0; d < 127; d++) {
    int x = d - i;
    if (x >= 0 && x < 64) {
      int match = (own ^ x * 2654435761u) & 7;
      int best = t[i][x] + match - 3;
      best = max(best, t[i + 1][x] - penalty);
      t[i + 1][x + 1] = max(best, t[i][x + 1] - penalty);
    }
    __syncthreads();
  }
  score[blockIdx.x * 64 + i] = t[i + 1][64];
}
