"""What training scripts are full of, under DDP or (--fsdp1) FullyShardedDataParallel; --spawn starts its own ranks.

fp16 autocast with a scaler, activation checkpointing, gradient accumulation without synchronisation, timing events, memory
statistics, objects exchanged, a log, checkpoints, a learning rate that follows a schedule.
"""

import argparse
import contextlib
import functools
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils.checkpoint import checkpoint

WIDTH, LAYERS, ROWS, ACCUMULATE = 256, 3, 32, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self, recompute):
        super().__init__()
        self.recompute = recompute
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return x


def main(local, options):
    if options.spawn:
        dist.init_process_group("nccl", rank=local, world_size=torch.cuda.device_count())
    else:
        dist.init_process_group("nccl")
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    print(
        torch.cuda.get_device_properties(device).total_memory, torch.cuda.memory_stats()["num_alloc_retries"]
    )
    settings, everyone = [{"lr": 1e-3} if dist.get_rank() == 0 else None], [None] * dist.get_world_size()
    dist.broadcast_object_list(settings, src=0)
    dist.all_gather_object(everyone, {"rank": dist.get_rank()})
    assert len(everyone) == dist.get_world_size()
    model = Model(recompute=not options.fsdp1)
    if options.fsdp1:
        policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
        halves = MixedPrecision(param_dtype=torch.float16, reduce_dtype=torch.float32)
        model = FullyShardedDataParallel(
            model, auto_wrap_policy=policy, mixed_precision=halves, device_id=local
        )
    else:
        model = nn.parallel.DistributedDataParallel(model.to(device), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings[0]["lr"], fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    scaler = torch.amp.GradScaler("cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    for step in range(100):
        begin.record()
        for part in range(ACCUMULATE):
            last = part == ACCUMULATE - 1
            with contextlib.nullcontext() if last else model.no_sync():
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = model(torch.randn(ROWS, WIDTH, device=device)).float().pow(2).mean()
                scaler.scale(loss / ACCUMULATE).backward()
        scaler.unscale_(optimizer)
        if options.fsdp1:
            norm = model.clip_grad_norm_(1.0)
        else:
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        torch.cuda.synchronize()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        peak = torch.cuda.max_memory_allocated() / 2**20
        line = {"loss": mean.item(), "norm": float(norm), "ms": begin.elapsed_time(end), "peak": peak}
        json.dump({**line, "scale": scaler.get_scale(), "lr": schedule.get_last_lr()[0]}, sys.stdout)
        torch.save({"model": model.state_dict(), "step": step}, "never-written.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--spawn", action="store_true")
    parser.add_argument("--fsdp1", action="store_true")
    given = parser.parse_args()
    if given.spawn:
        torch.multiprocessing.spawn(main, (given,), nprocs=torch.cuda.device_count())
    else:
        main(int(os.environ["LOCAL_RANK"]), given)
