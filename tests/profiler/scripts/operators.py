"""Operators whose bytes are known by hand: N numbers each, unless said otherwise."""

import torch
import torch.nn.functional as F
from torch import nn

N, ROWS, COLUMNS, TOUCHED = 4096, 64, 1000, 16

model = nn.Linear(8, 8, bias=False).cuda()
adamw = torch.optim.AdamW(model.parameters(), fused=True)
x, y = torch.randn(N, device="cuda"), torch.randn(N, device="cuda")
table = torch.zeros(ROWS, COLUMNS, device="cuda")
rows = torch.arange(TOUCHED, device="cuda")
some = torch.randn(TOUCHED, COLUMNS, device="cuda")
labels = torch.zeros(ROWS, dtype=torch.int64, device="cuda")
for _ in range(2):
    torch.square(x)
    torch.mul(x, x)
    torch.add(x, y, out=y)
    x.add_(y)
    x.copy_(y)
    x.zero_()
    torch.zeros_like(x)
    x.bfloat16()
    x.view(64, 64).t().contiguous()
    torch.add(x.view(64, 64), y[:64].expand(64, 64))
    table[rows] = some
    table.index_add_(0, rows, some)
    table.index_select(0, rows)
    table.masked_fill_(table > 0, 0.0)
    logits = torch.randn(ROWS, COLUMNS, device="cuda", requires_grad=True)
    F.cross_entropy(logits, labels).backward()
    grouped = torch._grouped_mm(
        torch.randn(256, 64, device="cuda", dtype=torch.bfloat16),
        torch.randn(4, 64, 32, device="cuda", dtype=torch.bfloat16),
        offs=torch.tensor([64, 128, 192, 256], dtype=torch.int32, device="cuda"),
    )
    torch._foreach_add_([x, y], [y, x])
    model(torch.randn(4, 8, device="cuda")).sum().backward()
    adamw.step()
