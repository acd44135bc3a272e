"""Mamba-2 layers on a rank: FLOPs, bytes, parameters, states and refusals, against counts by hand."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.gpu.catalogue import read
from cosim.gpu.kernels import Kernel, KernelKind, scan, total_flops
from cosim.models.catalogue.blocks import Blocks
from cosim.models.catalogue.cut import Cut, Parallel
from cosim.models.catalogue.mamba import Mamba
from cosim.models.catalogue.mamba_layer import MambaLayer
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.parts import Piece
from cosim.registry import find
from cosim.workload.program import Operation
from tests.models.test_hybrid_models import TINY

SIZES = Mamba(state=16, heads=8, head_dim=4, groups=2, chunk=32)
BATCH, TOKENS = 2, 128


def cut(**more: Any) -> Cut:
    return Cut(Parallel(), BATCH, TOKENS, TOKENS, 2, **more)


def job(**more: Any) -> ModelWorkload:
    settings = {"model": TINY, "gpu": "h100-sxm", "memory": "ignore", **more}
    return ModelWorkload.model_validate(settings)


def operations(**more: Any) -> tuple[Operation, ...]:
    return job(**more).build(HERE).programs[0].operations


def returned(kernels: tuple[Kernel, ...]) -> list[Kernel]:
    return [one for kernel in kernels for one in kernel.returned or ()]


def test_chunks_give_what_the_recurrence_gives_with_as_many_flops() -> None:
    """Listing 1 of arXiv 2405.21060, product by product, as torch counts them."""
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    chunks, size, state, head = TOKENS // SIZES.chunk, SIZES.chunk, SIZES.state, SIZES.head_dim
    torch.manual_seed(0)
    x, log = torch.randn(SIZES.heads, TOKENS, head), -torch.rand(SIZES.heads, TOKENS)
    b, c = torch.randn(2, SIZES.groups, TOKENS, state)
    each = SIZES.heads // SIZES.groups
    kept, wanted = torch.zeros(SIZES.heads, state, head), []
    for t in range(TOKENS):
        into, out = (one[:, t].repeat_interleave(each, 0) for one in (b, c))
        kept = kept * log[:, t].exp()[:, None, None] + into[:, :, None] * x[:, t, None]
        wanted.append((out[:, None] @ kept)[:, 0])

    with FlopCounterMode(display=False) as counted:
        xs, logs = x.reshape(-1, chunks, size, head), log.reshape(-1, chunks, size)
        bs, cs = (one.reshape(-1, chunks, size, state) for one in (b, c))
        until = logs.cumsum(-1)
        weights = cs @ bs.transpose(-1, -2)
        decays = (until[..., :, None] - until[..., None, :]).tril().exp().tril()
        y = (weights.repeat_interleave(each, 0) * decays) @ xs
        fades = (until[..., -1:] - until).exp()[..., None]
        states = (bs.repeat_interleave(each, 0) * fades).transpose(-1, -2) @ xs
        passed = [torch.zeros_like(states[:, 0])]
        for number in range(chunks - 1):
            passed.append(passed[-1] * until[:, number, -1].exp()[:, None, None] + states[:, number])
        read_out = cs.repeat_interleave(each, 0) @ torch.stack(passed, 1)
        y = (y + read_out * until.exp()[..., None]).reshape(SIZES.heads, TOKENS, head)
    assert torch.allclose(y, torch.stack(wanted, 1), atol=1e-3)
    convolution = 2 * SIZES.convolved * SIZES.conv
    assert counted.get_total_flops() == TOKENS * (SIZES.flops_per_token() - convolution)

    saved = TOKENS * SIZES.chunk * SIZES.inner  # what a causal mask saves within chunks
    kernels = MambaLayer(SIZES, replace(cut(), batch=1)).kernels()
    assert total_flops(kernels) == counted.get_total_flops() - saved


def test_backward_is_each_gradient_and_the_states_again() -> None:
    layer = MambaLayer(SIZES, cut())
    tokens = BATCH * TOKENS
    through = 2 * tokens * SIZES.inner * SIZES.state
    within = tokens * SIZES.inner * SIZES.chunk
    shared = 2 * tokens * SIZES.groups * SIZES.state * SIZES.chunk
    # Again: states, C times B. Gradients: states' twice (of x's part, B's, C's, and their own), C times B's.
    assert total_flops(returned(layer.kernels())) == (1 + 4) * through + 3 * within + (1 + 2) * shared


def test_states_pass_memory_in_fp32_and_half_of_c_times_b_is_read() -> None:
    layer = MambaLayer(SIZES, replace(cut(), batch=1))
    numbers, shared = TOKENS * SIZES.inner, TOKENS * SIZES.groups * SIZES.state
    states, steps = TOKENS // SIZES.chunk * SIZES.inner * SIZES.state, TOKENS * SIZES.heads
    products = TOKENS * SIZES.chunk * SIZES.groups
    found = [one.bytes_moved for one in layer.kernels() if one.kind is KernelKind.SCAN]
    assert found == [
        2 * (numbers + shared) + 8 * steps + 4 * states,
        4 * shared + 4 * products,
        2 * (4 * numbers + shared + states) + 2 * products + 8 * steps,
    ]


def test_several_sequences_are_copied_into_mambas_order_and_back() -> None:
    one, two = (MambaLayer(SIZES, replace(cut(), batch=batch)).kernels() for batch in (1, 2))
    assert len(two) - len(one) == 2
    assert len(returned(two)) - len(returned(one)) == 2


def test_tensor_parallel_ranks_share_heads_and_groups() -> None:
    whole = MambaLayer(SIZES, cut()).kernels()
    half = MambaLayer(SIZES, replace(cut(), parallel=Parallel(tp=2))).kernels()
    for one, two in zip((*whole, *returned(whole)), (*half, *returned(half)), strict=True):
        assert (one.flops, one.bytes_moved) == (2 * two.flops, 2 * two.bytes_moved)
    model = find("cosim.models", "nemotron-h-8b")
    blocks = Blocks(model, replace(cut(), parallel=Parallel(tp=8)))
    own = sum(blocks.parameters(model.kinds(layer))[0] for layer in range(model.layers))
    copied = model.layers * model.norm_parameters
    layers = model.parameters - model.embedding_parameters - model.head_parameters
    assert 8 * (own - copied) + copied == layers
    with pytest.raises(ValidationError, match=r"mamba\.groups 2 isn't a multiple of tp 4; 4 would be"):
        job(parallel={"tp": 4}, model=TINY | {"experts": None, "pattern": "M*-M"})


def test_a_scan_takes_its_bytes_or_its_products() -> None:
    timer = read("h100-sxm").timer("bf16")
    efficiency = read("h100-sxm").efficiency
    fixed = timer.kernel_ps(scan(0, 0))
    rate = 989.4e12 * efficiency.scan_peak * efficiency.sustained_clock
    products = timer.kernel_ps(scan(10**12, 10**6)) - fixed
    assert products == pytest.approx(1e24 / rate, rel=0.01)
    assert timer.kernel_ps(scan(1, 10**9)) - fixed > 1e9 / 3.36e12 * 1e12


def test_layers_of_one_kind_have_one_norm_and_one_residual() -> None:
    model = find("cosim.models", "nemotron-3-nano")
    blocks = Blocks(model, cut())
    names = {
        kind: [piece.name for piece in blocks.layer(model.pattern.index(kind)).forward] for kind in "M*E"
    }
    assert [name.split(" ", 2)[2] for name in names["M"]] == ["norm", "mamba", "residual"]
    assert [name.split(" ", 2)[2] for name in names["*"]] == ["norm", "attention", "residual"]
    assert names["E"][0].endswith("norm")
    assert names["E"][-1].endswith("residual")


def test_attention_without_positions_rotates_nothing() -> None:
    def moved(**model: Any) -> float:
        made = operations(model=TINY | model, parallel={})
        return sum(one.bytes_moved for one in made if one.phase == "forward")

    tokens, heads, size, width = 64, 4 + 4, 16, 2
    assert moved() - moved(rotary=False) == 2 * tokens * heads * size * width


def test_latent_experts_are_sent_and_computed_smaller() -> None:
    latent = TINY | {"experts": {"num": 4, "top_k": 2, "ffn": 32, "latent": 16}}
    parallel = {"dp": 2, "ep": 2}

    def sent(model: dict[str, Any]) -> int:
        made = operations(model=model, parallel=parallel)
        return next(one.size_bytes for one in made if one.collective == "all_to_all")

    assert sent(TINY) == 4 * sent(latent)
    tokens = 64
    alone: dict[str, Any] = {"parallel": {}}

    def flops(model: dict[str, Any]) -> float:
        return sum(one.flops for one in operations(model=model, **alone))

    saved = 2 * 2 * (64 - 16) * 32 * 2 - 2 * 64 * 16 * 2  # of each token's two experts, less both projections
    assert flops(TINY) - flops(latent) == 3 * tokens * saved


def test_a_token_reads_and_writes_states_however_long_its_sequence_is() -> None:
    model = "mamba2-2.7b"

    def serving(**more: Any) -> ModelWorkload:
        return job(model=model, micro_batch=4, task="decode", **more)

    short, long = serving(sequence=1024), serving(sequence=65536)
    sizes = find("cosim.models", model)
    mamba = sizes.mamba
    states = sizes.layers * 4 * (mamba.inner * mamba.state * 4 + mamba.convolved * mamba.conv * 2)
    assert short.job().memory.cache == long.job().memory.cache == states
    made = [sum(one.bytes_moved for one in each.build(HERE).programs[0].operations) for each in (short, long)]
    assert made[0] == made[1] > 2 * sizes.layers * 4 * mamba.inner * mamba.state * 4 + sizes.parameters * 2


def test_hybrids_keep_keys_and_values_of_their_attention_alone() -> None:
    model = find("cosim.models", "nemotron-3-nano")
    one, two = (
        job(model="nemotron-3-nano", task="decode", sequence=tokens).job().memory.cache
        for tokens in (1000, 2000)
    )
    assert two - one == 1000 * model.count("*") * 2 * model.kv * model.head * 2


def test_prompts_are_read_by_forwards_kernels() -> None:
    forward = sum(one.flops for one in operations(parallel={}) if one.phase == "forward")
    prompt = sum(one.flops for one in operations(parallel={}, task="prefill"))
    assert forward - prompt == 2 * (64 - 1) * 64 * 128  # logits of one token


def test_modules_that_predict_ahead_may_share_their_weights() -> None:
    def made(**more: Any) -> ModelWorkload:
        model = TINY | {"ahead": 2, "ahead_pattern": "*E", **more}
        return job(model=model, parallel={}, sharded_optimizer=False)

    own, shared = made(), made(ahead_shared=True)
    (layers,) = own.job().stages[0]
    module = next(layer for layer in layers if layer.name == "token 2").num_parameters
    assert own.job().memory.weights - shared.job().memory.weights == 2 * module
    flops = [sum(one.flops for one in each.build(HERE).programs[0].operations) for each in (own, shared)]
    assert flops[0] == flops[1]


def test_recipes_leave_the_linear_layers_wide_that_they_name() -> None:
    """Nemotron 3 Super's in NVFP4: FP8 for Mamba-2's product out, bf16 at the end and for attention."""
    own = {"attention": "none", "mamba_out": "mxfp8"}
    framework = {"kind": "megatron", "recipes": own, "wide_layers": [0, 1]}
    work = job(model=TINY | {"pattern": "M*-M"}, gpu="b200", recipe="nvfp4", framework=framework)
    (layers,) = work.job().stages[0]

    def narrow(number: int) -> list[str | None]:
        pieces: tuple[Piece, ...] = layers[number].forward
        return [one.narrow for piece in pieces for one in piece.kernels if one.kind is KernelKind.MATMUL]

    assert [narrow(number) for number in (1, 2, 3, 4)] == [
        ["fp4", "fp8"],
        [None, None],
        ["fp4", "fp4"],
        [None, None],
    ]
    with pytest.raises(ValidationError, match="recipes: mamba_out: nvfp4 beside recipe fp8; fp8, none would"):
        job(recipe="fp8", framework={"kind": "megatron", "recipes": {"mamba_out": "nvfp4"}})
    with pytest.raises(ValidationError, match="mamba_out: mxfp8 needs a recipe of the workload's"):
        job(framework={"kind": "megatron", "recipes": {"mamba_out": "mxfp8"}})


def test_layers_of_experts_run_again_with_their_all_to_alls() -> None:
    parallel = {"dp": 2, "ep": 2}

    def sends(**more: Any) -> int:
        return sum(one.collective == "all_to_all" for one in operations(parallel=parallel, **more))

    assert sends(recompute=["experts"]) - sends() == 2
    kept = [job(parallel=parallel, recompute=each).job().memory.activations for each in ("none", ["experts"])]
    assert kept[0] > kept[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"framework": "pytorch"},
            "framework pytorch has no Mamba-2 layers",
        ),
        ({"parallel": {"cp": 2}}, "parallel.cp: custom has Mamba-2 layers, whose states pass along"),
        (
            {
                "framework": {"kind": "megatron", "transformer_impl": "local"},
                "model": TINY | {"gated": False},
            },
            "needs norm: layer",
        ),
    ],
)
def test_what_has_no_mamba_refuses_it_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        job(**changes)
