"""What llm-foundry's FSDP jobs set: clocks, rates of attention, and how hosts stand still.

``python -m tests.lab.validation.fsdp_fit`` (6 minutes): for each GPU the numbers of its file that its jobs
set, fitted to the rows of an even number (mean of the absolute logarithms of simulated over measured times),
beside the package's, with the errors of both halves; then, by the package's numbers, ``stalls`` and
``stall_length`` by least squares of all slopes of jobs that differ in their number of GPUs alone.
``--stalls``: those alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from cosim.context import HERE
from cosim.gpu.catalogue import read
from cosim.gpu.parameters import value
from cosim.models.stalls import seen
from cosim.units import PS_PER_MS
from tests.lab.validation.fsdp_jobs import Row, rows, workload
from tests.lab.validation.measured import F64
from tests.lab.validation.training import fsdp_s, with_numbers
from tests.lab.validation.weak_scaling import BAR, name_without_size

SETS = {
    "a100-40gb": ("sustained_clock",),
    "a100-80gb": ("sustained_clock",),
    "h100-sxm": ("sustained_clock", "flash2", "triton"),
}
LENGTHS_MS = (10, 20, 40, 60, 80, 100, 120, 150, 200, 300)
FRACTIONS = np.arange(1, 81) * 1e-5


def fit(name: str, every: Sequence[Row]) -> None:
    """To the rows of an even number; print them, and the errors."""
    names = SETS[name]
    own = [(number, row) for number, row in enumerate(every) if row.gpu == name and row.group[-3:] != "fp8"]

    def ratios(numbers: F64, half: int) -> F64:
        gpu = with_numbers(read(name), dict(zip(names, numbers.tolist(), strict=True)))
        return np.array([fsdp_s(row, gpu) / row.seconds for number, row in own if number % 2 == half])

    def off(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(np.abs(np.log(ratios(numbers, 0))).mean())

    package = np.array([value(read(name), one) for one in names])
    found: F64 = minimize(
        off, package, method="Nelder-Mead", options={"xatol": 2e-3, "fatol": 2e-5, "maxfev": 60}
    ).x
    for what, numbers in (("the package's", package), ("fitted to even rows", found)):
        errors = [ratios(numbers, half) - 1 for half in (0, 1)]
        told = ", ".join(f"{one} {number:.3f}" for one, number in zip(names, numbers, strict=True))
        halves = ", ".join(f"{np.abs(each).mean():.1%} ({each.mean():+.1%})" for each in errors)
        print(f"{name}: {told}, {what}: even and odd rows {halves}", flush=True)


def stalls(every: Sequence[Row]) -> None:
    """By slopes; print the best of each length."""
    alike: dict[str, dict[int, Row]] = {}
    for row in every:
        alike.setdefault(name_without_size(row), {})[row.gpus] = row
    series = [[jobs[size] for size in sorted(jobs)] for jobs in alike.values() if len(jobs) > 1]
    without = {id(row): fsdp_s(row, row.gpu, 0.0) for jobs in series for row in jobs}
    programs = {id(row): workload(row).build(HERE).programs for jobs in series for row in jobs}
    found = []
    for length in LENGTHS_MS:
        share = {each: seen(made, length * PS_PER_MS) for each, made in programs.items()}
        for fraction in FRACTIONS.tolist():
            took = {
                id(row): without[id(row)] * (1 + fraction * share[id(row)] * (row.gpus - 1))
                for jobs in series
                for row in jobs
            }
            off = [
                took[id(row)] / took[id(jobs[0])] - row.seconds / jobs[0].seconds
                for jobs in series
                for row in jobs[1:]
            ]
            found.append((float(np.sqrt(np.mean(np.square(off)))), length, fraction, off))
    for length in LENGTHS_MS:
        error, _, fraction, off = min(one for one in found if one[1] == length)
        near = sum(abs(one) <= BAR for one in off)
        print(
            f"stall_length {length} ms: stalls {fraction:.5f}, {error:.2%}, {near} of {len(off)} slopes near"
        )
    print(f"least: stall_length {min(found)[1]} ms, stalls {min(found)[2]:.5f}")


def main(arguments: Sequence[str]) -> None:
    """Both, or stalls alone."""
    every = rows()
    for name in () if "--stalls" in arguments else SETS:
        fit(name, every)
    stalls(every)


if __name__ == "__main__":
    main(sys.argv[1:])
