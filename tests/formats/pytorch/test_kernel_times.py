"""A traced iteration as a whole: its time, and its kernels by what bounds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cosim.errors import WorkloadError
from cosim.formats.pytorch.kernel_times import kind_of, read_iteration
from cosim.formats.pytorch.kineto import Work
from cosim.gpu.kernels import KernelKind

NAMES = {
    "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn": KernelKind.MATMUL,
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT": KernelKind.MATMUL,
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_nn>": KernelKind.MATMUL,
    "void splitKreduce_kernel<32, 16, int, float, float>(cublasSplitKParams<float>)": KernelKind.MATMUL,
    "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc": KernelKind.MATMUL,
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 32>>": KernelKind.ATTENTION,
    "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention)": KernelKind.ATTENTION,
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>": KernelKind.ATTENTION_BACKWARD,
    # As an H100 had them under PyTorch 2.11, cuDNN 9.19:
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0": (
        KernelKind.ATTENTION
    ),
    "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_1x4x1_cga1x1x1_kernel0_0": (
        KernelKind.ATTENTION_BACKWARD
    ),
    "void cudnn::fusion::compute_dot_do_o_specialized<true, 64>(void const*)": KernelKind.ATTENTION_BACKWARD,
    "void cudnn::fusion::convert_dq_to_16bits<true>(void const*, void*)": KernelKind.ATTENTION_BACKWARD,
    "triton_poi_fused__scaled_dot_product_cudnn_attention__to_copy_mm_transpose_3": KernelKind.MEMORY,
    "triton_red_fused__fused_rms_norm__to_copy_addmm_0": KernelKind.MEMORY,
    "triton_tem_fused_flex_attention_backward_1": KernelKind.ATTENTION_BACKWARD,
    "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionIN": KernelKind.MATMUL,
    "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::Var>": KernelKind.MEMORY,
    "_chunk_scan_chunk_state_bwd_dx_kernel": KernelKind.SCAN,
    "_bmm_chunk_fwd_kernel": KernelKind.SCAN,
    "_chunk_cumsum_fwd_kernel": KernelKind.MEMORY,
    "_state_passing_fwd_kernel": KernelKind.MEMORY,
    "void at::native::vectorized_elementwise_kernel<4, at::native::gemm_like<float> >": KernelKind.MEMORY,
    "void split_embedding_codegen_forward_unweighted_kernel<cutlass::Array<float> >": KernelKind.MEMORY,
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long)": None,
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_a_kernel_is_told_by_its_name(name: str, kind: KernelKind | None) -> None:
    whose = "nccl" if name.startswith("nccl") else ""
    assert kind_of(Work(0, 1, name, "7", 1, copy=False, library=whose)) is kind


def test_copies_count_within_the_gpu_alone() -> None:
    kinds = [
        kind_of(Work(0, 1, f"Memcpy {way}", "7", 1, copy=True)) for way in ("DtoD (Device)", "HtoD (Pinned)")
    ]
    assert kinds == [KernelKind.MEMORY, None]


def event(category: str, name: str, begin: float, duration: float, **arguments: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "ts": begin, "dur": duration, "pid": 1, "tid": 1,
        "args": arguments,
    }  # fmt: skip


def trace(steps: dict[int, float], kernels: list[tuple[str, float, float]]) -> str:
    """Steps of 100 us that begin then; kernels (name, launched, duration), which run 20 us later."""
    events = [event("user_annotation", f"ProfilerStep#{n}", at, 100) for n, at in steps.items()]
    for number, (name, at, duration) in enumerate(kernels):
        events.append(event("cuda_runtime", "cudaLaunchKernel", at, 1, correlation=number))
        events.append(event("kernel", name, at + 20, duration, correlation=number, stream=7))
    return json.dumps({"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": events})


def test_an_iteration_is_the_mean_of_the_last_steps_that_follow_each_other(tmp_path: Path) -> None:
    kernels = [("warm gemm", 10.0, 99.0), ("gemm", 510.0, 30.0), ("gemm", 610.0, 40.0), ("add", 690.0, 60.0)]
    (tmp_path / "rank0.json").write_text(trace({3: 0.0, 7: 500.0, 8: 600.0}, kernels))
    found = read_iteration(tmp_path)
    # the host's two steps take 200 us; the GPU works from 530 to 770
    assert found.seconds == pytest.approx(120e-6)
    assert found.kernels == pytest.approx({KernelKind.MATMUL: 35e-6, KernelKind.MEMORY: 30e-6})
    other = trace({7: 500.0, 8: 600.0}, [("gemm", 510.0, 90.0)]).replace('"rank": 0', '"rank": 1')
    (tmp_path / "rank1.json").write_text(other)
    found = read_iteration(tmp_path)
    assert found.ranks == (0, 1)
    assert found.seconds == pytest.approx(110e-6)
    assert found.kernels == pytest.approx({KernelKind.MATMUL: 40e-6, KernelKind.MEMORY: 15e-6})


@pytest.mark.parametrize(
    ("steps", "kernels", "what"),
    [({}, [("gemm", 1.0, 1.0)], r"prof.step\(\)"), ({1: 0.0}, [], r"ProfilerActivity.CUDA")],
)
def test_what_a_trace_lacks_is_named(
    tmp_path: Path, steps: dict[int, float], kernels: list[tuple[str, float, float]], what: str
) -> None:
    (tmp_path / "rank0.json").write_text(trace(steps, kernels))
    with pytest.raises(WorkloadError, match=what):
        read_iteration(tmp_path / "rank0.json")
    (tmp_path / "rank0b.json").write_text(trace({1: 0.0}, [("gemm", 1.0, 1.0)]))
    (tmp_path / "rank0.json").write_text(trace({1: 0.0}, [("gemm", 1.0, 1.0)]))
    with pytest.raises(WorkloadError, match="of which there is another"):
        read_iteration(tmp_path)
