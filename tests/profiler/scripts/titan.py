"""Llama 3 or Mixtral as torchtitan trains them: DDP, FSDP2 or 1, tensor, sequence, pipeline, expert parallel."""

import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch._inductor import config  # noqa: F401 - torch._inductor.config
from torch.distributed._symmetric_memory import enable_symm_mem_for_group
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper, checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import BackwardPrefetch, MixedPrecision, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

parser = argparse.ArgumentParser()
sizes = dict(layers=2, hidden=512, heads=8, kv_heads=4, ffn=1024, vocab=2048, seq=256, batch=1)
counts = dict(microbatches=1, dp=1, tp=1, pp=1, chunks=1, experts=0, top_k=2, ep=1, checkpoint_every=1)
for name, value in {**sizes, **counts}.items():
    parser.add_argument(f"--{name}", type=int, default=value)
switches = "no-reshard loss-parallel checkpoint selective ddp bf16 fused hf-norm compile async-tp fsdp1 prefetch-late repeat whole-graphs"
for name in f"{switches} prefetch-forward fused-qkv unpadded to-the-end".split():
    parser.add_argument(f"--{name}", action="store_true")
parser.add_argument("--rotary", default="complex", choices=["complex", "chunked", "sliced"])
parser.add_argument("--schedule", default="1F1B", help="of torch.distributed.pipelining")
options = parser.parse_args()
head_dim = options.hidden // options.heads


class WrittenNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return wide.to(x.dtype) * self.weight


Norm = WrittenNorm if options.hf_norm else nn.RMSNorm


def rotate(x, table):
    if options.rotary == "complex":
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * table).flatten(-2).type_as(x)
    cos, sin = table
    if options.rotary == "chunked":
        first, second = x.chunk(2, -1)
    else:
        first, second = x[..., : head_dim // 2], x[..., head_dim // 2 :]
    return x * cos + torch.cat((-second, first), -1) * sin


class Gathered(torch.autograd.Function):
    """Rows by their numbers, which are spread over the columns first, as flash-attn's bert_padding does it."""

    @staticmethod
    def forward(ctx, rows, numbers):
        ctx.save_for_backward(numbers)
        ctx.rows = rows.shape[0]
        return torch.gather(rows, 0, numbers[:, None].expand(-1, rows.shape[1]))

    @staticmethod
    def backward(ctx, grad):
        (numbers,) = ctx.saved_tensors
        made = torch.zeros(ctx.rows, grad.shape[1], device=grad.device, dtype=grad.dtype)
        return made.scatter_(0, numbers[:, None].expand(-1, grad.shape[1]), grad), None


class PutBack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, numbers, count):
        ctx.save_for_backward(numbers)
        made = torch.zeros(count, rows.shape[1], device=rows.device, dtype=rows.dtype)
        made[numbers] = rows
        return made

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.saved_tensors[0]], None, None


def unpadded(x, mask):
    lengths = mask.sum(-1, dtype=torch.int32)
    numbers = torch.nonzero(mask.flatten(), as_tuple=False).flatten()
    lengths.max().item()
    F.pad(torch.cumsum(lengths, 0, dtype=torch.int32), (1, 0))
    return Gathered.apply(x.flatten(0, 1).flatten(1), numbers).view(x.shape), numbers


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        if options.fused_qkv:
            self.wide = [options.heads * head_dim, *(2 * [options.kv_heads * head_dim])]
            self.wqkv = nn.Linear(options.hidden, sum(self.wide), bias=False)
            self.wo = nn.Linear(options.heads * head_dim, options.hidden, bias=False)
            return
        self.wq = nn.Linear(options.hidden, options.heads * head_dim, bias=False)
        self.wk = nn.Linear(options.hidden, options.kv_heads * head_dim, bias=False)
        self.wv = nn.Linear(options.hidden, options.kv_heads * head_dim, bias=False)
        self.wo = nn.Linear(options.heads * head_dim, options.hidden, bias=False)

    def forward(self, x, table):
        if options.fused_qkv:
            made = self.wqkv(x).split(self.wide, -1)
        else:
            made = (w(x) for w in (self.wq, self.wk, self.wv))
        q, k, v = (each.unflatten(-1, (-1, head_dim)) for each in made)
        q, k, v = (t.transpose(1, 2) for t in (rotate(q, table), rotate(k, table), v))
        if options.repeat:
            k, v = (t.repeat_interleave(options.heads // options.kv_heads, dim=1) for t in (k, v))
        if options.unpadded:
            mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
            q, k, (v, numbers) = (unpadded(t.transpose(1, 2), mask) for t in (q, k, v))
            q, k, v = q[0].transpose(1, 2), k[0].transpose(1, 2), v.transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=not options.repeat)
        y = y.transpose(1, 2).flatten(-2)
        if options.unpadded:
            y = PutBack.apply(y.flatten(0, 1), numbers, numbers.shape[0]).view(y.shape)
        return self.wo(y)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(options.hidden, options.ffn, bias=False)
        self.w2 = nn.Linear(options.ffn, options.hidden, bias=False)
        self.w3 = nn.Linear(options.hidden, options.ffn, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sent, received):
        ctx.sizes = sent, received
        out = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(out, rows, received, sent, group=mesh["ep"].get_group())
        return out

    @staticmethod
    def backward(ctx, grad):
        sent, received = ctx.sizes
        return Exchange.forward(ctx, grad, received, sent), None, None


class Experts(nn.Module):
    def __init__(self, number):
        super().__init__()
        wide, back = (number, options.hidden, options.ffn), (number, options.ffn, options.hidden)
        self.w1, self.w3 = nn.Parameter(torch.empty(wide)), nn.Parameter(torch.empty(wide))
        self.w2 = nn.Parameter(torch.empty(back))

    def forward(self, rows, counts):
        ends = counts.cumsum(0, dtype=torch.int32)
        inner = F.silu(torch._grouped_mm(rows, self.w1, offs=ends))
        inner = inner * torch._grouped_mm(rows, self.w3, offs=ends)
        return torch._grouped_mm(inner, self.w2, offs=ends)


class MixtureOfExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(options.hidden, options.experts, bias=False)
        self.experts = Experts(options.experts // options.ep)

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights, chosen = self.gate(tokens).float().softmax(-1).topk(options.top_k)
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=options.experts)
        source = order // options.top_k
        rows = tokens[source]
        if options.ep > 1:
            arriving = torch.empty_like(counts)
            dist.all_to_all_single(arriving, counts, group=mesh["ep"].get_group())
            sent = counts.view(options.ep, -1).sum(1).tolist()
            received = arriving.view(options.ep, -1).sum(1).tolist()
            rows = Exchange.apply(rows, sent, received)
            own = options.experts // options.ep
            expert = torch.arange(own, device=x.device).repeat(options.ep)
            by_expert = expert.repeat_interleave(arriving, output_size=sum(received)).argsort(stable=True)
            out = self.experts(rows[by_expert], arriving.view(options.ep, -1).sum(0))
            out = Exchange.apply(out[by_expert.argsort()], received, sent)
        else:
            out = self.experts(rows, counts)
        out = out * weights.flatten()[order].to(out.dtype).unsqueeze(-1)
        return torch.zeros_like(tokens).index_add(0, source, out).view_as(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.ffn_norm = Norm(options.hidden), Norm(options.hidden)
        self.attention = Attention()
        self.feed_forward = MixtureOfExperts() if options.experts else FeedForward()

    def forward(self, x, table):
        x = x + self.attention(self.attention_norm(x), table)
        return x + self.feed_forward(self.ffn_norm(x))


class Transformer(nn.Module):
    def __init__(self, layers, first=True, last=True):
        super().__init__()
        self.tok_embeddings = nn.Embedding(options.vocab, options.hidden) if first else None
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm = Norm(options.hidden) if last else None
        self.output = nn.Linear(options.hidden, options.vocab, bias=False) if last else None
        powers = 5e5 ** -(torch.arange(0, head_dim, 2) / head_dim)
        angles = torch.outer(torch.arange(options.seq), powers)
        if options.rotary == "complex":
            self.register_buffer(
                "table", torch.polar(torch.ones_like(angles), angles)[:, None], persistent=False
            )
        else:
            both = torch.cat((angles, angles), -1)
            self.register_buffer("cos", both.cos().bfloat16()[:, None], persistent=False)
            self.register_buffer("sin", both.sin().bfloat16()[:, None], persistent=False)

    def forward(self, x):
        table = self.table if options.rotary == "complex" else (self.cos, self.sin)
        if self.tok_embeddings is not None:
            x = self.tok_embeddings(x)
        for layer in self.layers:
            x = layer(x, table)
        return x if self.output is None else self.output(self.norm(x))


def tensor_parallel(model, mesh):
    plan = {
        "attention_norm": SequenceParallel(),
        "ffn_norm": SequenceParallel(),
        "attention": PrepareModuleInput(
            input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None)
        ),
        "attention.wq": ColwiseParallel(),
        "attention.wk": ColwiseParallel(),
        "attention.wv": ColwiseParallel(),
        "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "feed_forward.w1": ColwiseParallel(),
        "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward.w3": ColwiseParallel(),
    }
    for layer in model.layers:
        parallelize_module(layer, mesh, plan)
    ends = {}
    if model.tok_embeddings is not None:
        ends["tok_embeddings"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    if model.output is not None:
        ends["norm"] = SequenceParallel()
        ends["output"] = ColwiseParallel(
            input_layouts=Shard(1),
            output_layouts=Shard(-1) if options.loss_parallel else Replicate(),
            use_local_output=not options.loss_parallel,
        )
    parallelize_module(model, mesh, ends)


SAVED = {
    torch.ops.aten.mm.default,
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops._c10d_functional.reduce_scatter_tensor.default,
}


def every_second_product():
    """torchtitan's selective checkpointing by operator."""
    products = {False: 0, True: 0}

    def policy(ctx, operator, *_, **__):
        if operator == torch.ops.aten.mm.default:
            products[ctx.is_recompute] += 1
            if products[ctx.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if operator in SAVED else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def fully_sharded(model, mesh):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    settings = {"mesh": mesh, "mp_policy": policy}
    reshard = not options.no_reshard
    if model.tok_embeddings is not None:
        fully_shard(model.tok_embeddings, **settings, reshard_after_forward=reshard)
    for layer in model.layers:
        if options.experts and options.ep > 1:
            apart = {**settings, "mesh": whole["efsdp"]}
            if options.experts // options.ep < whole["efsdp"].size():
                apart["shard_placement_fn"] = lambda _: Shard(1)
            fully_shard(layer.feed_forward.experts, **apart, reshard_after_forward=reshard)
        fully_shard(layer, **settings, reshard_after_forward=reshard)
    if model.output is not None:
        fully_shard([model.norm, model.output], **settings, reshard_after_forward=False)
    fully_shard(model, **settings)


def flat_sharded(model, mesh):
    halves = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    where = {"device_mesh": mesh} if options.dp > 1 else {"process_group": mesh.get_group()}
    strategy = ShardingStrategy.SHARD_GRAD_OP if options.no_reshard else ShardingStrategy.FULL_SHARD
    if options.dp > 1:
        strategy = ShardingStrategy.HYBRID_SHARD
    late = BackwardPrefetch.BACKWARD_POST if options.prefetch_late else BackwardPrefetch.BACKWARD_PRE
    units = ModuleWrapPolicy({CheckpointWrapper if options.checkpoint else Block})
    return FSDP(
        model, **where, sharding_strategy=strategy, mixed_precision=halves, auto_wrap_policy=units,
        backward_prefetch=late, forward_prefetch=options.prefetch_forward, device_id=device,
    )  # fmt: skip


dist.init_process_group("nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
shards = dist.get_world_size() // options.tp // options.pp // options.dp
if options.ep > 1:
    shape, names = (options.pp, options.dp, shards // options.ep, options.ep), ("pp", "dp", "efsdp", "ep")
    mesh = whole = init_device_mesh("cuda", shape, mesh_dim_names=names)
    sharing = mesh["efsdp", "ep"]._flatten("fsdp")
else:
    shape = (options.pp, options.dp, shards, options.tp)
    mesh = init_device_mesh("cuda", shape, mesh_dim_names=("pp", "dp", "fsdp", "tp"))
    sharing = mesh["dp", "fsdp"] if options.dp > 1 else mesh["fsdp"]
place, stages = mesh["pp"].get_local_rank(), options.pp
if options.to_the_end:
    never_stops_early = torch.utils.checkpoint.set_checkpoint_early_stop(False)
    never_stops_early.__enter__()
if options.whole_graphs:
    torch._dynamo.config.optimize_ddp = False
if options.async_tp:
    torch._inductor.config._micro_pipeline_tp = True
    enable_symm_mem_for_group(mesh["tp"].get_group().group_name)
parts = range(place, stages * options.chunks, stages)
if options.schedule in ("ZBVZeroBubble", "DualPipeV"):
    parts = (place, 2 * stages - 1 - place)
each = options.layers // len(parts) // stages
with device:
    models = [Transformer(each, part == 0, part == stages * options.chunks - 1) for part in parts]
for number, model in enumerate(models):
    if options.bf16:
        for parameter in model.parameters():
            parameter.data = parameter.data.bfloat16()
    if options.tp > 1:
        tensor_parallel(model, mesh["tp"])
    if options.checkpoint:
        more = {"context_fn": every_second_product} if options.selective else {}
        for k, layer in enumerate(model.layers):
            if (k + 1) % options.checkpoint_every == 0:
                model.layers[k] = checkpoint_wrapper(layer, preserve_rng_state=False, **more)
    if options.compile:
        for layer in model.layers:
            layer.compile()
    if options.fsdp1:
        models[number] = flat_sharded(model, sharing)
    elif shards > 1:
        fully_sharded(model, sharing)
trained = model = models[0]
if options.dp > 1 and shards == 1:
    trained = nn.parallel.DistributedDataParallel(model, device_mesh=mesh["dp"], broadcast_buffers=False)
named = [pair for model in models for pair in model.named_parameters()]
apart = [p for name, p in named if ".experts." in name and options.ep > 1]
rest = [p for name, p in named if ".experts." not in name or options.ep == 1]
groups = [part for part in (rest, apart) if part]
optimizer = torch.optim.AdamW([{"params": part} for part in groups], lr=1e-4, fused=options.fused or None)


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


if stages > 1:
    group, count = mesh["pp"].get_group(), stages * options.chunks
    cut = [PipelineStage(*one, count, device, group=group) for one in zip(models, parts)]
    kind = get_schedule_class(options.schedule)
    looped = issubclass(kind, PipelineScheduleMulti)
    schedule = kind(cut if looped else cut[0], options.microbatches, loss_fn=loss_of)


def step():
    tokens = torch.randint(options.vocab, (options.batch * options.microbatches, options.seq), device=device)
    if stages > 1:
        inputs = (tokens,) if place == 0 else ()
        target = {"target": tokens} if cut[-1].is_last else {}
        schedule.step(*inputs, **target, return_outputs=False)
        return
    for number, part in enumerate(tokens.chunk(options.microbatches)):
        if trained is not model:
            trained.require_backward_grad_sync = number == options.microbatches - 1
        elif options.no_reshard and shards > 1 and not options.fsdp1:
            model.set_requires_gradient_sync(number == options.microbatches - 1)
        whole = options.fsdp1 and options.no_reshard and number < options.microbatches - 1
        with model.no_sync() if whole else contextlib.nullcontext():
            with torch.autocast("cuda", torch.bfloat16, enabled=shards == 1 and not options.bf16):
                loss = loss_of(trained(part), part)
            loss.backward()


def clip():
    """``clip_grad_norm_``, over all stages; experts, which are on a mesh of their own, apart."""
    if options.fsdp1:
        model.clip_grad_norm_(1.0)
        return
    norms = [nn.utils.get_total_norm([p.grad for p in part]) for part in groups]
    norms = [norm.full_tensor() if hasattr(norm, "full_tensor") else norm for norm in norms]
    norm = norms[0]
    if len(norms) > 1:
        experts = norms[1] ** 2
        dist.all_reduce(experts, group=mesh["ep"].get_group())
        norm = (norm**2 + experts) ** 0.5
    if stages > 1:
        norm **= 2
        dist.all_reduce(norm, group=mesh["pp"].get_group())
        norm **= 0.5
    for part in groups:
        nn.utils.clip_grads_with_norm_(part, 1.0, norm)


for _ in range(2):
    if options.loss_parallel and options.tp > 1:
        with loss_parallel():
            step()
    else:
        step()
    clip()
    optimizer.step()
    optimizer.zero_grad()
