from dataclasses import replace
from typing import Any

import pytest

from cosim.context import HERE
from cosim.gpu.catalogue import A100_80GB, H100_SXM, V100_SXM2, names, read
from cosim.gpu.efficiency import Calibration, Efficiency
from cosim.gpu.gpus import Gpu
from cosim.gpu.kernels import Narrow, fused_attention, matmul, matmul_backward, memory, narrowed
from cosim.gpu.timer import GpuTimer
from cosim.host.hosts import Host
from cosim.models.transformer import Transformer
from cosim.units import PS_PER_S

EXACT = {"matmul_peak": 1, "matmul_depth": 0, "memory_peak": 1, "kernel_time": "0ns"}


def exact(gpu: Gpu, **efficiency: object) -> Gpu:
    own = Efficiency.model_validate({**EXACT, **efficiency})
    return gpu.model_copy(update={"efficiency": own, "host": Host(operator_time=0)})


def timer(**efficiency: object) -> GpuTimer:
    return GpuTimer(exact(A100_80GB, **efficiency), "bf16")


def test_a_full_wave_runs_at_peak() -> None:
    kernel = matmul(128 * 108, 4096, 128 * 8, 2)
    assert timer().kernel_ps(kernel) == pytest.approx(kernel.flops / 312e12 * PS_PER_S, rel=1e-9)


def test_one_tile_more_costs_a_wave() -> None:
    full, more = (timer().kernel_ps(matmul(128 * tiles, 8192, 128 * 9, 2)) for tiles in (12, 13))
    assert more == pytest.approx(2 * full, rel=1e-6)


def test_products_one_after_another_have_waves_and_times_of_their_own() -> None:
    clock = timer(kernel_time="3us", matmul_depth=100)
    one = matmul(128 * 9, 8192, 128 * 9, 2)  # of 81 tiles, on 108 multiprocessors
    together = matmul(128 * 9, 8192, 128 * 9, 2, batch=4)
    apart = replace(together, launches=4)
    assert clock.kernel_ps(apart) == pytest.approx(4 * clock.kernel_ps(one), rel=1e-6)
    fixed = 3 * 10**6
    assert (clock.kernel_ps(together) - fixed) / (clock.kernel_ps(one) - fixed) == pytest.approx(3, rel=1e-6)
    for each in (*matmul_backward(apart, 2), *narrowed(apart, 2, "fp8")):
        assert each.launches == 4


def test_half_the_rate_at_the_depth() -> None:
    kernel = matmul(128 * 108, 512, 128 * 8, 2)
    assert timer(matmul_depth=512).kernel_ps(kernel) == pytest.approx(2 * timer().kernel_ps(kernel), rel=1e-6)


def test_what_fills_beside_arithmetic_counts_by_the_longer() -> None:
    clock = timer(matmul_depth=512, matmul_overlap=True)
    for inner, longer in ((512, 2**0.5), (16 * 512, 1.002)):
        kernel = matmul(128 * 108, inner, 128 * 8, 2)
        assert clock.kernel_ps(kernel) == pytest.approx(longer * timer().kernel_ps(kernel), rel=1e-3)


def test_filling_takes_its_time_whatever_the_type() -> None:
    kernel = replace(matmul(128 * 132, 4096, 128 * 8, 2), bytes_moved=0)
    exact = {**EXACT, "fp8_peak": 1}

    def filling(narrow: Narrow | None) -> int:
        with_, without = (
            GpuTimer(
                H100_SXM.model_copy(update={"efficiency": Efficiency.model_validate({**exact, **more})}),
                "bf16",
            ).kernel_ps(replace(kernel, narrow=narrow))
            for more in ({"matmul_depth": 200}, {})
        )
        return with_ - without

    assert filling("fp8") == pytest.approx(filling(None), rel=1e-3)


def narrow_clock(*, alone: bool = False, cache: int | None = None, **more: Any) -> GpuTimer:
    """Of an H100 that reaches all of its peaks, but for what is given."""
    efficiency = Efficiency.model_validate({**EXACT, "fp8_peak": 1, **more})
    peaks = {**H100_SXM.peak_flops, "fp4": 2 * H100_SXM.peak("fp8")}
    changed = {"efficiency": efficiency, "cache": cache, "peak_flops": peaks}
    return GpuTimer(H100_SXM.model_copy(update=changed), "bf16", alone=alone)


def test_narrow_operands_want_whole_rows_and_an_inner_size_in_one() -> None:
    """So many rows more are so many FLOPs more. A split would fill what is idle."""
    clock = narrow_clock(ragged_rows=512, split_inner=4)
    whole, odd, one_tile, small = (
        replace(matmul(rows, 65536, columns, 2), bytes_moved=0)
        for rows, columns in ((4096, 8448), (4095, 8448), (255, 8448), (128, 128 * 33))
    )
    narrow = [clock.kernel_ps(replace(one, narrow="fp8")) for one in (whole, odd, one_tile, small)]
    more = 2 * 512 * 65536 * 8448 / H100_SXM.peak("fp8") * PS_PER_S
    assert narrow[1] == pytest.approx(narrow[0] + more, rel=1e-6)
    tall = replace(matmul(16383, 65536, 8448, 2), bytes_moved=0, narrow="fp8")
    assert clock.kernel_ps(tall) == pytest.approx(narrow_clock().kernel_ps(tall) + more / 2, rel=1e-6)
    assert narrow[2] == narrow_clock().kernel_ps(replace(one_tile, narrow="fp8"))
    assert clock.kernel_ps(odd) == clock.kernel_ps(whole)
    one_wave = 2 * 128 * 128 * 132 * 65536 / H100_SXM.peak("fp8") * PS_PER_S
    assert narrow[3] == pytest.approx(one_wave, rel=1e-6)
    assert clock.kernel_ps(small) < 2 * one_wave * 0.6


def test_tiles_of_fp4_are_filled_up() -> None:
    clock = narrow_clock(fp4_rows=256)
    few, many = (replace(matmul(rows, 4096, 128 * 132, 2), bytes_moved=0) for rows in (257, 512))
    kinds: tuple[tuple[Narrow | None, bool], ...] = (("fp4", True), ("fp8", False), (None, False))
    for narrow, same in kinds:
        times = [clock.kernel_ps(replace(one, narrow=narrow)) for one in (few, many)]
        assert (times[0] == times[1]) is same


def test_a_benchmarks_operand_that_outgrows_the_cache_passes_memory_again() -> None:
    """What doesn't fit of the smaller one, for each panel of the larger one, the more the more waves of tiles
    drift apart; not in a training.
    """
    kernel = replace(matmul(4096, 16384, 8192, 2), bytes_moved=0, narrow="fp8")
    smaller = 4096 * 16384  # bytes of FP8
    panel: dict[str, Any] = {"fp8_panel": 128, "memory_peak": 0.5}
    for fits in (smaller, smaller // 2):
        clock = narrow_clock(alone=True, cache=fits, **panel)
        waves = 4096 * 8192 / (128 * 256 * 132)
        passed = (smaller - fits) * (8192 // 128) * waves / (waves + 5)
        again = passed * 8 / (H100_SXM.memory_rate * 0.5) * PS_PER_S
        assert clock.kernel_ps(kernel) - narrow_clock().kernel_ps(kernel) == pytest.approx(again, rel=1e-6)
        turned = replace(kernel, rows=8192, columns=4096)
        assert clock.kernel_ps(turned) == pytest.approx(clock.kernel_ps(kernel), rel=1e-6)
    few = narrow_clock(alone=True, cache=smaller // 2, panel_rows=4097, **panel)
    assert few.kernel_ps(kernel) == clock.kernel_ps(kernel)
    assert few.kernel_ps(turned) == narrow_clock().kernel_ps(turned)  # no wider than it has rows
    longer = narrow_clock(alone=True, cache=smaller // 2, panel_rows=4096, **panel)
    assert longer.kernel_ps(kernel) == narrow_clock().kernel_ps(kernel)
    training, unknown = narrow_clock(cache=1, **panel), narrow_clock(alone=True, **panel)
    assert training.kernel_ps(kernel) == unknown.kernel_ps(kernel) == narrow_clock().kernel_ps(kernel)


def test_odd_rows_slow_a_product_and_its_gradients_down() -> None:
    clock = timer(unaligned=0.5)
    even, odd = matmul(1024, 8192, 65536, 2), matmul(1024, 8192, 65537, 2)
    for one, other in zip((even, *matmul_backward(even, 2)), (odd, *matmul_backward(odd, 2)), strict=True):
        assert clock.kernel_ps(other) == pytest.approx(2 * clock.kernel_ps(one), rel=0.02)
    # Tokens may be as odd as they like: no matrix has rows of so many.
    rows = matmul(1023, 8192, 65536, 2)
    assert clock.kernel_ps(rows) == clock.kernel_ps(even)
    assert clock.kernel_ps(matmul_backward(rows, 2)[1]) < clock.kernel_ps(matmul_backward(even, 2)[1])


def test_memory_bound_kernels_take_their_bytes_and_a_time_each() -> None:
    assert timer(memory_peak=0.5).kernel_ps(memory(2039 * 10**6)) == 2 * 10**9
    assert timer(kernel_time="3us").kernel_ps(memory(0, launches=4)) == 12 * 10**6


def test_backward_of_a_product_is_two_of_as_much_work() -> None:
    kernel = matmul(100, 200, 300, 2, batch=5)
    back = matmul_backward(kernel, 2)
    assert [one.flops for one in back] == [kernel.flops] * 2


@pytest.mark.parametrize("gpu", [read(name) for name in names()], ids=lambda gpu: gpu.name)
def test_each_gpu_says_how_far_it_can_be_trusted(gpu: object) -> None:
    said = gpu.trust("bf16")  # type: ignore[attr-defined]
    known = {
        A100_80GB.name: "calibrated on 774",
        "A100-SXM4-40GB": "calibrated on llm-foundry",
        H100_SXM.name: "calibrated on llm-foundry",
        "H100-SXM5-PyTorch": "calibrated on six training jobs",
        "H200-SXM-PyTorch": "calibrated on sixteen training jobs measured on one H200, to which nothing",
        "GB200": "calibrated on Megatron-Bridge's Llama 3",
    }
    assert said.startswith(known.get(gpu.name, "uncalibrated"))  # type: ignore[attr-defined]
    assert A100_80GB.trust("fp32").startswith("uncalibrated for fp32")


def test_a_report_carries_the_uncertainty() -> None:
    shape = {"layers": 1, "hidden": 64, "heads": 1, "vocabulary": 64, "sequence": 64}
    for gpu, words in ((A100_80GB, "calibrated on 774 iterations"), (V100_SXM2, "uncalibrated")):
        (line,) = (
            Transformer.model_validate({**shape, "gpu": gpu, "dtype": "fp16"}).build(HERE).report.assumed
        )
        assert words in line
    assert (
        ": error 8%, one sigma"
        in Transformer.model_validate({**shape, "gpu": A100_80GB}).build(HERE).report.assumed[0]
    )


def test_the_fastest_tile_is_taken_and_a_long_inner_size_is_split() -> None:
    one, two = timer(tiles=((128, 128),)), timer(tiles=((128, 128), (64, 64)))
    small = matmul(64, 4096, 64, 2)
    assert two.kernel_ps(small) == pytest.approx(one.kernel_ps(small) / 4, rel=1e-6)
    whole, split = timer(), timer(split_inner=4)
    deep = matmul(128, 65536, 128, 2)
    partial = 2 * 4 * 4 * 128 * 128 / 2039e9 * PS_PER_S
    assert split.kernel_ps(deep) == pytest.approx(whole.kernel_ps(deep) / 4 + partial, rel=1e-6)


def test_narrow_products_run_at_their_type_and_are_converted() -> None:
    gpu = exact(H100_SXM, fp8_peak=0.5, tiles=[[128, 128]])
    wide = matmul(128 * 132, 8192, 128 * 8, 2)
    convert, product = narrowed(wide, 2, "fp8")
    assert convert.bytes_moved == 3 * wide.rows * wide.inner
    fast = GpuTimer(gpu, "bf16")
    assert fast.kernel_ps(product) == pytest.approx(wide.flops / (1978.9e12 * 0.5) * PS_PER_S, rel=1e-6)
    assert fast.kernel_ps(wide) == pytest.approx(wide.flops / 989.4e12 * PS_PER_S, rel=1e-6)


def test_the_power_limit_slows_arithmetic_of_a_training_only() -> None:
    gpu = exact(A100_80GB, sustained_clock=0.5)
    training, alone = GpuTimer(gpu, "bf16"), GpuTimer(gpu, "bf16", alone=True)
    product = matmul(128 * 108, 8192, 128 * 8, 2)
    assert training.kernel_ps(product) == pytest.approx(2 * alone.kernel_ps(product), rel=1e-6)
    assert training.kernel_ps(memory(1 << 30)) == alone.kernel_ps(memory(1 << 30))


def test_element_wise_kernels_of_a_training_have_a_rate_of_their_own() -> None:
    gpu = exact(A100_80GB, memory_peak=0.8, memory_training=0.4)
    among, alone = GpuTimer(gpu, "bf16"), GpuTimer(gpu, "bf16", alone=True)
    sweep = memory(1 << 30)
    assert among.kernel_ps(sweep) == pytest.approx(2 * alone.kernel_ps(sweep), rel=1e-6)
    bound = matmul(16, 8192, 8192, 2)  # by its matrix, which is no element-wise kernel's to read
    assert among.kernel_ps(bound) == alone.kernel_ps(bound)


def test_jobs_with_experts_may_be_known_less_well() -> None:
    known = Calibration(source="jobs", dtypes=["bf16"], uncertainty=0.05, experts=0.2, common=0.6)
    gpu = A100_80GB.model_copy(update={"calibration": known})
    assert gpu.error("bf16", experts=True) == pytest.approx((0.12, 0.16))
    assert gpu.error("bf16") == pytest.approx((0.03, 0.04))
    alike = gpu.model_copy(update={"calibration": known.model_copy(update={"experts": None})})
    assert alike.error("bf16", experts=True) == alike.error("bf16")


def test_jobs_of_another_framework_are_known_less_well() -> None:
    known = Calibration(source="jobs", dtypes=["bf16"], uncertainty=0.08, framework="pytorch", common=0.6)
    gpu = A100_80GB.model_copy(update={"calibration": known})
    assert gpu.error("bf16", framework="pytorch") == gpu.error("bf16") == pytest.approx((0.048, 0.064))
    assert gpu.error("bf16", framework="megatron") == pytest.approx((0.06, 0.08))  # 0.08 and 0.06 in squares


def test_a_causal_mask_halves_attention_and_its_longest_block_bounds_it() -> None:
    shape = {"heads": 64, "queries": 8192, "keys": 8192, "head": 128}
    flops = 4 * 64 * 8192 * 8192 * 128
    whole = fused_attention(flops, 0, **shape)  # type: ignore[arg-type]
    half = fused_attention(flops // 2, 0, causal=True, **shape)  # type: ignore[arg-type]
    clock = timer(attention_peak=1, attention_tile=128 * 64, causal_saves=1)
    assert clock.kernel_ps(half) == pytest.approx(clock.kernel_ps(whole) / 2, rel=0.01)
    assert timer(attention_peak=1).kernel_ps(half) == clock.kernel_ps(whole)  # one that skips nothing
    one = fused_attention(flops // 128, 0, heads=1, queries=8192, keys=8192, head=128, causal=True)
    longest = 4 * 64 * 8192 * 128 / (312e12 / 108)  # its last 64 queries, on one multiprocessor
    assert clock.kernel_ps(one) >= longest * PS_PER_S
    old = fused_attention(flops, 0, version="flash2", **shape)  # type: ignore[arg-type]
    slow = timer(attention_peak=1, flash2=0.5)
    assert slow.kernel_ps(old) == pytest.approx(2 * slow.kernel_ps(whole), rel=1e-6)


@pytest.mark.parametrize(("rows", "blocks"), [(4096, 16), (256, 1)])
def test_blocks_of_causal_attention_in_any_order_wait_for_half_of_the_longest(rows: int, blocks: int) -> None:
    gpu = read("gb200")
    heads, head, queries = 8, 128, rows // blocks
    flops = 2 * heads * rows * rows * head
    kernel = fused_attention(flops, 0, heads=heads, queries=rows, keys=rows, head=head, causal=True)
    efficiency = gpu.efficiency.model_copy(update={"attention_tile": queries * head, "kernel_time": 0})
    took = {
        order: GpuTimer(
            gpu.model_copy(update={"efficiency": efficiency.model_copy(update={"attention_sorted": order})}),
            "bf16",
            alone=True,
        ).kernel_ps(kernel)
        for order in (True, False)
    }
    # The last block's scores, one by one, beside what each processor has of all.
    last = sum(rows - queries + row + 0.5 for row in range(queries))
    share = heads * sum(row + 0.5 for row in range(rows)) / gpu.multiprocessors
    even = took[False] / (1 + last / share / 2)
    assert took[True] >= even
    ramp = 1 + efficiency.attention_ramp / rows
    assert even == pytest.approx(
        flops * ramp / (gpu.peak("bf16") * efficiency.attention_peak) * 1e12, rel=1e-3
    )
