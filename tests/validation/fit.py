"""Fits the compute model and NCCL's parameters to the measured tables, as they stand in the catalogue.

``python tests/validation/fit.py``. First NCCL's three (and nccl-tests' launch) to its all-reduces of 2 and 8
GPUs, by their closed form; then, those fixed, the compute model's six to both Megatron-DeepSpeed tables at
once, each table weighing the same, relative errors, a soft L1 loss (a few rows are slower than anything
known of them explains). Then the same on random halves of the rows, with the error on the other halves: what
unseen rows should expect.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from measured import DATA, F64, FITTED, Row, read_nccl, read_rows, report
from measured_jobs import LAUNCH_PS
from scipy.optimize import least_squares
from surrogate import I64, NVLINK, Surrogate

from cosim.pattern.nccl import Nccl
from cosim.units import PS_PER_S
from cosim.workload.compute.efficiency import Efficiency

TABLES = ("single", "multi")
START = {
    "matmul_peak": 0.8, "matmul_depth": 150.0, "memory_peak": 0.75, "kernel_time": 10e6, "host_time": 50e6,
    "step_time": 10e9,
}  # fmt: skip
_LL128 = 0.92


def nccl_s(gpus: int, size: F64, latency: float, efficiency: float, gap: float, launch: float) -> F64:
    """A ring on an NVSwitch, LL128 or Simple, whichever is faster; no faster than it is issued."""
    steps, rate = 2 * (gpus - 1), NVLINK * efficiency
    simple = steps * (3.4e-6 + size / gpus / rate)
    ll128 = steps * (1.9e-6 + size / gpus / rate / _LL128)
    kernel = latency + np.minimum(simple, ll128) + gap * size / gpus / Nccl().buffer
    return np.maximum(kernel, launch * gpus)


def fit_nccl() -> None:
    """Fit to 2 and 8 GPUs; report 4."""
    tables = {n: read_nccl(DATA / f"nccl_allreduce_a100_gpus{n}.csv") for n in (2, 4, 8)}

    def predicted(values: F64, gpus: int) -> F64:
        latency, efficiency, gap, launch = values
        return nccl_s(gpus, np.array(tables[gpus][0], np.float64), latency, efficiency, gap, launch)

    scale = np.array([40e-6, 0.8, 20e-6, 10e-6])

    def residuals(z: F64) -> F64:
        return np.concatenate([np.log(predicted(z * scale, n) / tables[n][1]) for n in (2, 8)])

    found = least_squares(
        residuals,
        np.ones(4), loss="soft_l1", f_scale=0.05,
    )  # fmt: skip
    latency, efficiency, gap, launch = found.x * scale
    print(
        f"latency {latency * 1e6:.1f} us, nvlink_efficiency {efficiency:.3f}, loop_gap {gap * 1e6:.1f} us,",
        end=" ",
    )
    print(f"launch {launch * 1e6:.1f} us (in the catalogue: {LAUNCH_PS / 1e6:g} us)")
    for gpus, (_, measured) in tables.items():
        print("  " + report(f"{gpus} GPUs", predicted(found.x * scale, gpus), measured))


class Fit:
    """Rows of both tables, and what is fitted to a part of them."""

    def __init__(self, tables: Sequence[Sequence[Row]]) -> None:
        self.rows = [list(rows) for rows in tables]
        self.measured = [np.array([row.measured_s for row in rows]) for rows in tables]
        self.surrogates = [Surrogate([row.job for row in rows]) for rows in tables]
        self.names = FITTED["gpu"]
        self.scale = np.array([START[name] for name in self.names])
        spec = Nccl()
        self.nccl = {
            "latency": spec.latency / PS_PER_S,
            "loop_gap": spec.loop_gap / PS_PER_S,
            "nvlink_efficiency": spec.nvlink_efficiency,
            "network_efficiency": spec.network_efficiency,
        }

    def efficiency(self, values: F64) -> Efficiency:
        """Parameters, times in whole picoseconds."""
        given = {
            name: round(value) if name.endswith("_time") else float(value)
            for name, value in zip(self.names, values, strict=True)
        }
        return Efficiency().model_copy(update=given)

    def predicted(self, values: F64) -> list[F64]:
        """Seconds of every row of each table."""
        return [one.predict(self.efficiency(values), self.nccl) for one in self.surrogates]

    def fit(self, chosen: Sequence[I64]) -> F64:
        """Parameters for the rows chosen of each table."""

        def residuals(z: F64) -> F64:
            each = self.predicted(z * self.scale)
            parts = [
                np.log(p[rows] / m[rows]) / np.sqrt(len(rows))
                for p, m, rows in zip(each, self.measured, chosen, strict=True)
            ]
            return np.concatenate(parts) * 30

        low, high = zip(*(_bounds(name) for name in self.names), strict=True)
        bounds = np.array(low) / self.scale, np.array(high) / self.scale
        found = least_squares(
            residuals,
            np.ones(len(self.names)),
            bounds=bounds,
            loss="soft_l1",
            diff_step=[1e-3] * len(self.names),
        )
        return np.asarray(found.x * self.scale, np.float64)


def _bounds(name: str) -> tuple[float, float]:
    metadata = Efficiency.model_fields[name].metadata
    low = next(one.ge for one in metadata if hasattr(one, "ge"))
    return low, next(one.le for one in metadata if hasattr(one, "le"))


def main() -> None:
    """Fit, and cross-validate on three random halves."""
    fit_nccl()
    fit = Fit([read_rows(DATA / f"megatron_deepspeed_a100_{name}_node.csv") for name in TABLES])
    everything = [np.arange(len(rows)) for rows in fit.rows]
    values = fit.fit(everything)
    print(", ".join(f"{name} {value:.4g}" for name, value in zip(fit.names, values, strict=True)))
    for name, predicted, measured in zip(TABLES, fit.predicted(values), fit.measured, strict=True):
        print("  " + report(name, predicted, measured))
    generator = np.random.default_rng(0)
    for half in range(3):
        orders = [generator.permutation(len(rows)) for rows in fit.rows]
        values = fit.fit([order[: len(order) // 2] for order in orders])
        shown = ", ".join(f"{name} {value:.4g}" for name, value in zip(fit.names, values, strict=True))
        print(f"half {half}: {shown}")
        for name, predicted, measured, order in zip(
            TABLES, fit.predicted(values), fit.measured, orders, strict=True
        ):
            unseen = order[len(order) // 2 :]
            print("  " + report(f"{name}, unseen", predicted[unseen], measured[unseen]))


if __name__ == "__main__":
    main()
