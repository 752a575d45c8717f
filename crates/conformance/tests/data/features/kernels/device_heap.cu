struct Node { Node *next; int value; };
extern "C" __global__ void device_heap(int *out, const int *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Node *head = nullptr;
  int len = 1 + (in[i % n] & 7);
  for (int k = 0; k < len; ++k) { Node *m = (Node *)malloc(sizeof(Node)); m->next = head; m->value = in[(i + k) % n] * k; head = m; }
  int sum = 0;
  while (head) { Node *next = head->next; sum = sum * 3 + head->value; free(head); head = next; }
  int *block = new int[len * 4];
  for (int k = 0; k < len * 4; ++k) block[k] = k * i;
  for (int k = 0; k < len * 4; k += 3) sum ^= block[k];
  delete[] block;
  out[i] = sum;
}
