"""Experts that lie whole on tensor- and data-parallel ranks together, as Megatron-Core groups ranks."""

from itertools import product
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.models.catalogue.cut import Parallel
from cosim.models.catalogue.experts import places
from cosim.models.catalogue.workload import ModelWorkload

MODEL = {
    "kind": "transformer", "layers": 2, "hidden": 512, "heads": 8, "ffn": 1024, "vocabulary": 1024,
    "sequence": 256, "experts": {"num": 16, "top_k": 2, "ffn": 256},
}  # fmt: skip
TOKENS = 256


def job(**more: Any) -> ModelWorkload:
    settings = {"model": MODEL, "gpu": "h100-sxm", "memory": "ignore", **more}
    return ModelWorkload.model_validate(settings)


def megatron_cores(sizes: list[int], wanted: list[bool]) -> set[frozenset[int]]:
    """``generate_masked_orthogonal_rank_groups``: ranks that differ in the wanted axes alone, the first
    axis varying fastest.
    """
    groups: dict[tuple[int, ...], set[int]] = {}
    for places_ in product(*(range(size) for size in reversed(sizes))):
        at = list(reversed(places_))
        rank, stride = 0, 1
        for place, size in zip(at, sizes, strict=True):
            rank, stride = rank + place * stride, stride * size
        key = tuple(place for place, in_group in zip(at, wanted, strict=True) if not in_group)
        groups.setdefault(key, set()).add(rank)
    return {frozenset(group) for group in groups.values()}


@pytest.mark.parametrize(
    ("tp", "cp", "dp", "pp", "ep"),
    [(2, 1, 4, 1, 8), (2, 1, 4, 2, 4), (4, 1, 4, 1, 4), (2, 2, 4, 2, 8), (2, 1, 8, 1, 2), (8, 1, 8, 2, 64)],
)
def test_groups_are_megatron_cores(tp: int, cp: int, dp: int, pp: int, ep: int) -> None:
    parallel = Parallel(tp=tp, cp=cp, dp=dp, pp=pp, ep=ep, etp=1, sp=True)
    mesh, world = parallel.mesh, tp * cp * dp * pp
    assert mesh.world_size == world
    found = {frozenset(mesh.group(rank, parallel.ep_axes)) for rank in range(world)}
    sizes = [1, ep, world // pp // ep, pp]  # expert_decoder_rank_generator: tp-ep-dp-pp
    assert found == megatron_cores(sizes, [False, True, False, False])
    gradients = {frozenset(mesh.group(rank, parallel.expert_axes)) for rank in range(world)}
    if parallel.expert_axes:
        assert gradients == megatron_cores(sizes, [False, False, True, False])
    else:
        assert ep == tp * cp * dp
    dense = {frozenset(mesh.group(rank, parallel.gradient_axes)) for rank in range(world)}
    assert dense == megatron_cores([tp, cp, dp, pp], [False, True, True, False])


def test_without_it_groups_are_as_ever() -> None:
    plain = Parallel(tp=2, dp=8, ep=4)
    assert plain == Parallel(tp=2, dp=8, ep=4, etp=None)
    assert plain.ep_axes == ("ep",)
    for other in (Parallel(tp=2, dp=8, ep=4, etp=2), Parallel(dp=8, ep=4, etp=1)):
        assert other.ep_axes == ("ep",)
        assert other.expert_tp == other.tp


def test_a_rank_has_whole_experts_and_sends_its_own_tokens() -> None:
    def made(**parallel: Any) -> tuple[int, list[tuple[str, tuple[str, ...], int]]]:
        work = job(parallel={"tp": 2, "dp": 4, "ep": 8, **parallel})
        (layers,) = work.job().stages[0]
        found = [
            (one.collective, one.axes, one.size_bytes)
            for one in work.build(HERE).programs[0].operations
            if one.collective == "all_to_all" or (one.name.endswith("experts in forward"))
        ]
        return layers[1].experts, found

    experts, sent = made(etp=1)
    assert experts == 16 // 8 * 3 * 512 * 256
    assert set(sent) == {("all_to_all", ("ep", "tp"), 2 * TOKENS // 2 * 512 * 2)}
    shared, _ = made(ep=4)
    assert shared == 16 // 4 * 3 * 512 * 256 // 2


@pytest.mark.parametrize(
    ("parallel", "said"),
    [
        (
            {"tp": 2, "dp": 4, "ep": 8},
            "dp 4 isn't a multiple of ep 8: .* 8 would be, or etp: 1, with experts on tp ranks",
        ),
        ({"tp": 4, "dp": 4, "ep": 8, "etp": 2}, "etp 2: ranks that share an expert are 1 or tp, 4"),
        ({"tp": 4, "dp": 4, "ep": 2, "etp": 1}, "ep 2 with etp 1 isn't a multiple of tp x cp 4"),
        ({"tp": 2, "dp": 2, "ep": 8, "etp": 1}, "dp x tp x cp 4 isn't a multiple of ep 8"),
        ({"tp": 2, "dp": 2, "ep": 4, "etp": 1, "sp": False}, "etp 1: tp ranks have the same tokens without"),
    ],
)
def test_groups_that_end_in_the_midst_of_others_are_refused(parallel: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        job(parallel=parallel)


def test_hybridep_sends_weights_with_tokens_and_gathers_who_goes_where() -> None:
    """``hybrid_ep_backend.cuh``: fp32 of all the domain's experts beside a token; a byte for each token and
    expert of all ranks before.
    """

    def made(dispatcher: str, **more: Any) -> dict[tuple[str, str], set[int]]:
        framework = {"kind": "megatron", "dispatcher": dispatcher, **more}
        found: dict[tuple[str, str], set[int]] = {}
        for one in job(parallel={"dp": 8, "ep": 8}, framework=framework).build(HERE).programs[0].operations:
            if one.axes == ("ep",):
                found.setdefault((one.collective, one.phase), set()).add(one.size_bytes)
        return found

    from cosim.models.catalogue.architecture import Experts

    copies = places(Experts(num=16, top_k=2, ffn=256), 8)
    token, weights = 512 * 2, 16 * 4
    without, found = made("deepep"), made("hybridep")
    tokens = next(iter(without["all_to_all", "forward"])) // token
    assert tokens == pytest.approx(copies * TOKENS, abs=1)
    assert ("all_gather", "forward") not in without
    assert found["all_gather", "forward"] == {TOKENS * 16}
    assert ("all_gather", "backward") not in found
    for phase in ("forward", "backward"):
        assert found["all_to_all", phase] == {tokens * token, tokens * (token + weights)}
