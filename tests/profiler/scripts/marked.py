"""Parameters that carry marks, as Megatron-LM's experts do, cast and moved; a rank's own aren't reduced."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
model = torch.nn.Sequential(torch.nn.Linear(16, 16, bias=False), torch.nn.Linear(16, 16, bias=False))
model[1].weight.allreduce = False
model = model.cuda().bfloat16()
with torch.device("meta"):
    later = torch.nn.Linear(16, 8, bias=False)
later.weight.allreduce = False  # lost: from meta torch makes a new parameter
model.append(later.to_empty(device="cuda").bfloat16())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.ones(4, 16, dtype=torch.bfloat16, device="cuda")).sum().backward()
    for weight in model.parameters():
        if getattr(weight, "allreduce", True):
            dist.all_reduce(weight.grad)
    optimizer.step()
    optimizer.zero_grad()
