"""ASTRA-sim's roofline: what a computation takes by its operations and the bytes of its tensors.

``num_ops`` operations on ``tensor_size`` bytes take ``num_ops / min(peak, rate * num_ops / tensor_size)``
seconds, in whole ns, where the system says ``"roofline-enabled": 1`` (``Workload.cc``, ``Roofline.cc``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field

from cosim.errors import Location, WorkloadError
from cosim.files.text import read_text
from cosim.spec import RateBps, Spec
from cosim.units import PS_PER_NS


class Roofline(Spec):
    """A device's most operations a second, and its memory's rate."""

    peak_flops: float = Field(
        gt=0, allow_inf_nan=False, description="operations a second (ASTRA-sim: peak-perf)"
    )
    rate: RateBps = Field(description="of its memory (ASTRA-sim: local-mem-bw)")

    def time_ps(self, operations: int, size_bytes: int) -> int:
        """Whole nanoseconds, in picoseconds."""
        perf = (
            min(self.rate / 8 * operations / size_bytes, self.peak_flops) if size_bytes else self.peak_flops
        )
        return int(operations / perf * 1e9) * PS_PER_NS


def read_roofline(path: Path) -> Roofline | None:
    """The roofline of ASTRA-sim's system file; None: it has none, or it isn't enabled.

    Raises
    ------
    WorkloadError
        No such file, no JSON, or a roofline without its numbers.
    """
    place = Location(str(path))
    try:
        found: Any = json.loads(read_text(path, WorkloadError))
    except (ValueError, RecursionError) as problem:
        raise WorkloadError(f"not JSON: {problem}", location=place) from None
    if not isinstance(found, dict):
        raise WorkloadError("is no system of ASTRA-sim: it is no JSON object", location=place)
    if not found.get("roofline-enabled"):
        return None
    values = [found.get(name) for name in ("peak-perf", "local-mem-bw")]
    if not all(isinstance(one, int | float) and one is not True and 0 < one < _MOST for one in values):
        raise WorkloadError(
            f"roofline-enabled, and peak-perf and local-mem-bw are {values}",
            location=place,
            hint="numbers above zero: TFLOP/s, and GB/s",
        )
    return Roofline(peak_flops=float(values[0]) * 1e12, rate=f"{values[1]}GB/s")  # type: ignore[arg-type]


_MOST = 1e9
