"""Kernels that communicate, whoever's they are: not computation, and simulated where bytes are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.errors import InputError
from cosim.formats.pytorch.libraries import every_library
from tests.formats.pytorch.trace_files import Rank
from tests.inputs import ROOT

LIBRARIES = every_library()


def whose(kernel: str) -> tuple[str, str] | None:
    """The library that a kernel is first found in, and what it does."""
    found = ((name, library.kind(kernel)) for name, library in LIBRARIES.items())
    return next(((name, kind) for name, kind in found if kind is not None), None)


@pytest.mark.parametrize(
    ("kernel", "library", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl", "all_reduce"),
        (
            "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
            "nccl",
            "all_gather",
        ),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "nccl", ""),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "nccl", ""),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)", "deep_ep", "all_to_all"),
        ("void deep_ep::internode_ll::combine<true, 7168, 9>(void*, void*)", "deep_ep", "all_to_all"),
        ("void deep_ep::internode::notify_dispatch<false, 4>(int const*, int*)", "deep_ep", ""),
        ("void deep_ep::layout::get_dispatch_layout<256, 4, 8>(long const*)", "deep_ep", ""),
        ("void dpsk::ep::internode::combine<false, 8, __nv_bfloat16>(int4*)", "deep_ep", "all_to_all"),
        ("void dpsk::ep::internode::cached_notify<false>(int, int)", "deep_ep", ""),
        ("void uccl::internode_ll::dispatch<true, 7168>(void*)", "deep_ep", "all_to_all"),
        ("void hybrid_ep::dispatch_kernel<unsigned char, 4>(int)", "deep_ep", "all_to_all"),
        ("void mori::moe::EpCombineInterNodeKernel<hip_bfloat16>(int)", "deep_ep", "all_to_all"),
        ("nvshmemi_transfer_rma_put_nbi_block(void*, void*)", "nvshmem", ""),
        ("nvshmem_alltoall_kernel(int*, int*)", "nvshmem", "all_to_all"),
        ("void mscclpp::allreduce7<__half>(__half*, __half*)", "mscclpp", "all_reduce"),
        (
            "void one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**)",
            "symmetric_memory",
            "all_reduce",
        ),
        (
            "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
            "symmetric_memory",
            "all_reduce",
        ),
        ("void vllm::cross_device_reduce_1stage<nv_bfloat16, 4>(vllm::RankData*)", "vllm", "all_reduce"),
        ("void sglang::cross_device_reduce_2stage<half, 8>(sglang::RankData*)", "vllm", "all_reduce"),
        (
            "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<2>(int)",
            "tensorrt_llm",
            "all_reduce",
        ),
        ("void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel(int)", "tensorrt_llm", "all_to_all"),
        ("kuserbuffers_pushsend(int*, int*)", "userbuffers", ""),
        ("hcom_allReduce__677_0", "hccl", "all_reduce"),
    ],
)
def test_a_kernel_is_its_librarys(kernel: str, library: str, kind: str) -> None:
    assert whose(kernel) == (library, kind)


@pytest.mark.parametrize(
    "kernel",
    [
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm>(int)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
        "void at::native::index_elementwise_kernel<128, 4, at::native::gather_kernel>(int)",
        "_scatter_gather_elementwise_kernel",
        "triton_poi_fused_add_broadcast_mul_0",
        "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>>(int)",
        "Memcpy PtoP",
    ],
)
def test_what_computes_is_nobodys(kernel: str) -> None:
    assert whose(kernel) is None


def write(folder: Path, kernel: str, rank: int = 0, world: int = 1, **operator: Any) -> None:
    """40 us of a product, then 60 us of a kernel, under an operator."""
    made = Rank(rank, world)
    made.op("ProfilerStep#1", 0, 45)
    made.launch("gemm", 10, 20, 60)
    made.op(operator.pop("name", "mine::op"), 20, 40, **operator)
    made.launch(kernel, 25, 60, 120)
    trace = made.kineto()
    trace["distributedInfo"]["pg_config"] = [{"pg_name": "tp", "pg_size": world, "ranks": [*range(world)]}]
    (folder / f"rank{rank}.json").write_text(json.dumps(trace))


def run(folder: Path, ranks: int = 2, **settings: Any) -> cosim.Run:
    fabric = {"kind": "switch", "endpoints": ranks, "rate": "100Gbps", "latency": "0ns"}
    job = {"workload": {"kind": "pytorch", "kineto": str(folder), **settings}}
    return cosim.run({"topology": fabric, "network": "fair_share", "jobs": [job]})


def test_a_kernel_without_bytes_is_communication_of_its_measured_time(tmp_path: Path) -> None:
    write(tmp_path, "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)")
    done = run(tmp_path)
    (job,) = done.summary.jobs
    assert (job.compute.mean_ps, job.communication.mean_ps) == (40 * 10**6, 60 * 10**6)
    assert job.exposed.mean_ps == 60 * 10**6
    assert any("kernel of deep_ep whose bytes" in line for line in job.assumed)
    assert done.doubts[0].what.endswith("communication of deep_ep")
    assert "sizes" in done.doubts[0].instead
    assert not run(tmp_path, collectives="measured").doubts
    assert "communication as measured" in {step.what for step in _path(done)}


def _path(done: cosim.Run) -> Any:
    from cosim.results.critical_path import last_critical_paths

    return last_critical_paths(done.records)[0].steps


def test_bytes_of_symmetric_memory_are_its_operators_first_tensor(tmp_path: Path) -> None:
    said = {
        "name": "symm_mem::one_shot_all_reduce",
        "Input Dims": [[1024, 512], [], []],
        "Input type": ["c10::BFloat16", "", ""],
        "Concrete Inputs": ["", "sum", "tp"],
    }
    for rank in range(4):
        write(tmp_path, "void one_shot_all_reduce_kernel<c10::BFloat16, 16, 4>(int)", rank, 4, **said)
    done = run(tmp_path, 4)
    (collective,) = done.records.collectives
    assert collective.size_bytes == 1024 * 512 * 2
    assert len(collective.ranks) == 4
    # After the product, in place of the kernel's 60 us: each rank sends 2 x 3/4 of it at 100 Gb/s.
    assert done.summary.jobs[0].iteration_mean_ps == pytest.approx(60e6 + 1.5 * 1024 * 512 * 2 * 80, rel=1e-3)


@pytest.mark.parametrize("operator", ["_C_custom_ar::all_reduce", "sgl_kernel::all_reduce"])
@pytest.mark.parametrize(
    ("groups", "known"),
    [([[0, 1, 2, 3], [0, 1, 2, 3], [0]], True), ([[0, 1, 2, 3], [0, 1]], False), ([[0]], False), ([], False)],
)
def test_bytes_of_vllms_all_reduce_are_its_tensor_over_the_only_group(
    tmp_path: Path, operator: str, groups: list[list[int]], known: bool
) -> None:
    """``all_reduce(int fa, Tensor inp, Tensor! out, int reg_buffer, int reg_buffer_sz_bytes)``: vLLM's
    torch_bindings.cpp. Nothing says the group: of several, the kernel keeps its time.
    """
    said = {
        "name": operator,
        "Input Dims": [[], [4, 7168], [4, 7168], [], []],
        "Input type": ["Scalar", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"],
        "Concrete Inputs": ["94023417", "", "", "140214", "8388608"],
    }
    for rank in range(4):
        write(tmp_path, "void vllm::cross_device_reduce_1stage<nv_bfloat16, 4>(int)", rank, 4, **said)
        path = tmp_path / f"rank{rank}.json"
        trace = json.loads(path.read_text())
        trace["distributedInfo"]["pg_config"] = [
            {"pg_name": str(k), "pg_size": len(ranks), "ranks": ranks} for k, ranks in enumerate(groups)
        ]
        path.write_text(json.dumps(trace))
    done = run(tmp_path, 4)
    sent = [(one.size_bytes, len(one.ranks)) for one in done.records.collectives]
    assert sent == ([(4 * 7168 * 2, 4)] if known else [])
    if not known:
        assert all(job.communication.mean_ps == 60 * 10**6 for job in done.summary.jobs)


def test_who_knows_a_kernels_bytes_states_them(tmp_path: Path) -> None:
    """As bytes of a collective: of 8 MB for all four ranks each sends three quarters, at 100 Gb/s."""
    for rank in range(4):
        write(tmp_path, "void deep_ep::internode::dispatch<false, 8>(int4*)", rank, 4)
    mine = {"kind": "names", "kernels": {"dispatch": "all_to_all"}, "sizes": {"dispatch": "8MB"}}
    done = run(tmp_path, 4, libraries=[mine])
    (collective,) = done.records.collectives
    assert (collective.size_bytes, len(collective.ranks)) == (8_000_000, 4)
    assert done.summary.jobs[0].iteration_mean_ps == pytest.approx(60e6 + 6e6 * 80, rel=1e-3)
    assert not done.doubts


def test_a_library_of_ones_own_says_what_is_sent(tmp_path: Path) -> None:
    for rank in range(2):
        said = {"name": "loom::all_reduce", "Input Dims": [[5, 500]]}
        write(tmp_path, "weave_all_reduce_bf16", rank, 2, **said)
    mine = [{"plugin": f"{ROOT / 'docs/howto/files/my_communication.py'}:Loom"}]
    (collective,) = run(tmp_path, libraries=mine).records.collectives
    assert (collective.size_bytes, len(collective.ranks)) == (5000, 2)


def test_names_of_a_scenarios_own_library_come_first(tmp_path: Path) -> None:
    write(tmp_path, "void at::native::elementwise_kernel<128>(int)")
    names = [{"kind": "names", "kernels": {"elementwise": ""}}]
    (job,) = run(tmp_path, libraries=names).summary.jobs
    assert (job.compute.mean_ps, job.communication.mean_ps) == (40 * 10**6, 60 * 10**6)


@pytest.mark.parametrize("pattern", ["(", "[z-a]"])
def test_a_pattern_that_is_none_is_refused(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, "gemm")
    with pytest.raises(InputError, match="is no regular expression"):
        run(tmp_path, libraries=[{"kind": "names", "kernels": {pattern: ""}}])


def test_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "gemm")
    with pytest.raises(InputError, match="'gossip' is no collective"):
        run(tmp_path, libraries=[{"kind": "names", "kernels": {"gemm": "gossip"}}])
