"""The roofline: a kernel takes as long as its arithmetic or its memory traffic, whichever is longer.

Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, doi:10.1145/1498765.1498785. Efficiencies are
fractions of the data-sheet peaks; they stand for what a roofline leaves out (tile sizes, launches, clocks).
"""

from __future__ import annotations

from fractions import Fraction

from cosim.units import PS_PER_S
from cosim.workload.gpus import DType, Gpu


def compute_ps(
    flops: int,
    bytes_moved: int,
    gpu: Gpu,
    dtype: DType,
    *,
    efficiency: float = 1.0,
    memory_efficiency: float = 1.0,
) -> int:
    """Picoseconds of one kernel, rounded up; exact arithmetic, so equal on every machine.

    Raises
    ------
    ValueError
        A GPU without that number type, or an efficiency that isn't in (0, 1].
    """
    for name, value in (("efficiency", efficiency), ("memory_efficiency", memory_efficiency)):
        if not 0 < value <= 1:
            raise ValueError(f"{name} is {value}; it should be above 0 and at most 1")
    arithmetic = Fraction(flops) / (Fraction(gpu.peak(dtype)) * Fraction(efficiency))
    memory = Fraction(bytes_moved * 8) / (Fraction(gpu.memory_rate) * Fraction(memory_efficiency))
    seconds = max(arithmetic, memory)
    return -((-seconds.numerator * PS_PER_S) // seconds.denominator)
