"""What a GPU reaches of its peaks that only its data sheet is known of: a measured neighbour's, as far as its
power and its multiprocessors go.

An operation takes as much energy on either. In an hour of training the power limit sets the clock, so that of
two GPUs that with twice the watts for each FLOP/s of its peak sustains twice the clock, up to all of it. A
kernel alone is held back less: large products of five GPUs, from 0.44 W/TFLOP/s (B200) to 1.28 (A100), reach
0.2 of the peak more for each W/TFLOP/s more (``python -m tests.lab.validation.kernels --left-out``). Filling
a tile takes its time, so that it is as many numbers fewer (``matmul_depth``) as a multiprocessor is slower;
faster ones have been given what fills them faster. Attention is taken as it is: of another generation it is
off by 15 to 50 %, power or not. Not modelled: what another process or voltage saves, other libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.gpu.gpus import Gpu

BY_POWER = 0.2
"""The share of the peak that a large product reaches more for each W/TFLOP/s more."""
MOST = 0.9
"""The largest share of the peak: A100's, which no power limit holds back."""
_KINDS = {"matmul_peak": "bf16", "fp8_peak": "fp8", "fp4_peak": "fp4"}
"""Fractions that power limits, and the type whose peak each is of."""
_TERA = 1e12


def reached(sheet: Mapping[str, Any], given: Mapping[str, Any], other: Gpu) -> dict[str, Any]:
    """Numbers of the efficiency that a GPU of this data sheet has unlike its neighbour, or are ``given``.

    What isn't a number is passed over: the sheet's own checks, which come later, say so.
    """
    written = sheet.get("peak_flops")
    peaks = {name: _number(one) for name, one in written.items()} if isinstance(written, dict) else {}
    if not peaks.get("bf16"):
        return dict(given)
    found: dict[str, Any] = {}
    efficiency, watts, many = (
        other.efficiency,
        _number(sheet.get("power")),
        _number(sheet.get("multiprocessors")),
    )
    if many:
        each = peaks["bf16"] / many / (other.peak("bf16") / other.multiprocessors)
        found["matmul_depth"] = round(efficiency.matmul_depth * min(each, 1.0))
    if not watts or not other.power:
        return found | dict(given)
    for name, dtype in _KINDS.items():
        was = getattr(efficiency, name)
        if was is None or not peaks.get(dtype) or dtype not in other.peak_flops:
            continue
        share = watts / peaks[dtype] / (other.power / other.peak_flops[dtype])
        more = BY_POWER * other.power / (other.peak("bf16") / _TERA) * (share - 1)
        found[name] = round(max(min(was + more, max(MOST, was)), 0.3), 3)
    share = watts / peaks["bf16"] / (other.power / other.peak("bf16"))
    alone = 1.0 if "matmul_peak" in given else found["matmul_peak"] / efficiency.matmul_peak
    if efficiency.fp8_training is not None:  # of the clock, as matmul_peak is
        found["fp8_training"] = round(min(efficiency.fp8_training * alone, 1.0), 3)
    found["sustained_clock"] = max(min(1.0, round(efficiency.sustained_clock * share / alone, 3)), 0.4)
    return found | dict(given)


def _number(value: object) -> float:
    """A number above 0; 0 where it isn't one."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if 0 < number < inf else 0.0
