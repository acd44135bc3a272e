"""CUDA graphs and hand-written kernels: a whole step captured and replayed, as PyTorch's manual has it."""

import torch
import triton
import triton.language as tl
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

BATCH, HEADS, LENGTH, WIDTH = 2, 4, 256, 64


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH, bias=False)
        self.mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, LENGTH, LENGTH, device="cuda")

    def forward(self, x):
        q, k, v = self.into(x).view(BATCH, LENGTH, 3, HEADS, WIDTH).permute(2, 0, 3, 1, 4)
        return flex_attention(q, k, v, block_mask=self.mask)


model = Model().cuda().bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(BATCH, LENGTH, HEADS * WIDTH, device="cuda", dtype=torch.bfloat16)


def step():
    optimizer.zero_grad(set_to_none=True)
    model(x).float().mean().backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for _ in range(4):
    batch = torch.randn_like(x)
    scale_kernel[(triton.cdiv(batch.numel(), 1024),)](batch, x, batch.numel(), BLOCK=1024)
    graph.replay()
