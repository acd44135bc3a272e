"""The clock that a power limit leaves a job: closed forms, and what energy says."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cosim.context import HERE
from cosim.gpu.catalogue import read
from cosim.gpu.gpus import Gpu
from cosim.gpu.job_clock import within
from cosim.gpu.kernel_share import KernelShare
from cosim.gpu.kernels import KernelKind, matmul, memory
from cosim.models.catalogue.workload import ModelWorkload

PRODUCT, STREAM = matmul(8192, 8192, 8192, 2), memory(1 << 30)
POWERS = {"arithmetic_power": 1000.0, "memory_power": 400.0}


def gpu(power: float = 700.0, **efficiency: Any) -> Gpu:
    sheet = read("h100-sxm").model_copy(update={"power": power})
    told = {"sustained_clock": 1.0, **POWERS, **efficiency}
    return sheet.model_copy(update={"efficiency": sheet.efficiency.model_copy(update=told)})


def clocked(one: Gpu, products: int, streams: int) -> float:
    kernels = [PRODUCT] * products + [STREAM] * streams
    return one.clocked(lambda each: [each.timer("bf16").kernels_ps(kernels)]).efficiency.sustained_clock


def test_products_alone_have_the_clock_whose_square_their_power_leaves() -> None:
    assert within(700, (5.0, 0.0, 5.0), 1000, 400) == pytest.approx(sqrt(0.7))
    assert clocked(gpu(), 8, 0) == pytest.approx(sqrt(0.7), rel=0.01)  # a product fills and drains tiles, too


def test_a_job_below_the_limit_has_the_whole_clock() -> None:
    assert clocked(gpu(), 0, 8) == 1
    assert clocked(gpu(power=1001), 8, 0) == 1
    assert within(700, (1.0, 1.0, 1.0), 1000, 400) == 1  # 700 W on average


@given(*[st.floats(0.01, 100)] * 2, st.floats(0.5, 1), st.floats(701, 3000), st.floats(50, 690))
def test_a_job_held_back_takes_the_limit(
    arithmetic: float, stalled: float, filled: float, arithmetic_w: float, memory_w: float
) -> None:
    products = arithmetic * filled
    x = within(700, (arithmetic, stalled, products), arithmetic_w, memory_w)
    energy, takes = arithmetic_w * products * x + memory_w * stalled, arithmetic / x + stalled
    assert 0 < x <= 1
    assert energy <= 700 * takes * (1 + 1e-9)
    if x < 1:
        assert energy == pytest.approx(700 * takes)


def test_a_chips_own_clock_goes_on_top() -> None:
    assert clocked(gpu(sustained_clock=0.9), 8, 8) == pytest.approx(0.9 * clocked(gpu(), 8, 8))


def test_a_model_of_the_catalogue_runs_at_the_clock_of_its_own_kernels() -> None:
    given = {
        "model": {"kind": "llama3-8b", "layers": 2}, "batch": 1, "micro_batch": 1, "memory": "ignore",
        "parallel": {}, "dtype": "bf16",
    }  # fmt: skip

    def busy(one: Gpu) -> int:
        return ModelWorkload.model_validate({**given, "gpu": one}).build(HERE).programs[0].busy_ps

    free, held = busy(gpu(power=1e6)), busy(gpu())
    assert free < held < free / sqrt(0.7)
    built = ModelWorkload.model_validate({**given, "gpu": gpu()}).build(HERE)
    assert any("of the clock" in line for line in built.report.assumed)
    kinds = [KernelShare.of(gpu(), kind) for kind in KernelKind]  # of the whole job's clock, each
    assert sum(busy(one) for one in kinds) == pytest.approx(held, rel=1e-6)


@pytest.mark.parametrize(
    ("efficiency", "said"),
    [
        ({"arithmetic_power": 900}, "arithmetic_power and memory_power go together"),
        ({"memory_power": 900}, "arithmetic_power and memory_power go together"),
        ({"arithmetic_power": 900, "memory_power": 400}, "needs the GPU's own `power`"),
        ({"arithmetic_power": -1, "memory_power": 400}, "arithmetic_power"),
    ],
)
def test_powers_that_say_nothing_are_refused(efficiency: dict[str, float], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Gpu.model_validate({"peak_flops": {"bf16": 1e15}, "memory_rate": "3TB/s", "efficiency": efficiency})
