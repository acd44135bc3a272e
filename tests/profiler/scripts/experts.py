"""One layer of experts, spread over all ranks: counts, an all-to-all out, the experts, an all-to-all back."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

TOKENS, HIDDEN, FFN, EXPERTS, TOP = 512, 256, 512, 16, 2

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
world, own = dist.get_world_size(), EXPERTS // dist.get_world_size()


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sent, received):
        ctx.sizes = sent, received
        out = x.new_empty(sum(received), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), received, sent)
        return out

    @staticmethod
    def backward(ctx, grad):
        sent, received = ctx.sizes
        out = grad.new_empty(sum(sent), grad.shape[1])
        dist.all_to_all_single(out, grad.contiguous(), sent, received)
        return out, None, None


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.up = nn.Linear(HIDDEN, FFN, bias=False)
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(TOP)
        flat = chosen.flatten()
        order = flat.argsort()
        counts = torch.bincount(flat, minlength=EXPERTS).view(world, own).sum(1)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts)
        sent, received = counts.tolist(), arriving.tolist()
        mine = Exchange.apply(x.repeat_interleave(TOP, 0)[order], sent, received)
        mine = self.down(F.gelu(self.up(mine)))
        back = Exchange.apply(mine, received, sent)
        y = torch.zeros_like(back).index_put((order,), back)
        return (y.view(-1, TOP, HIDDEN) * weights.unsqueeze(-1)).sum(1)


model = Experts().cuda().bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(TOKENS, HIDDEN, device="cuda", dtype=torch.bfloat16)
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
