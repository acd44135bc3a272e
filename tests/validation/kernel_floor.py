"""How close any smooth model of matrix products could come to measured ones: what their neighbours say.

``python -m tests.validation.kernel_floor``: for each GPU and type the mean error of large products that the
fit has not seen (of an odd number in their table): by the package's numbers; by the rate of the measured
product that is nearest in size; and by the package's numbers, each product corrected by what eight or so
nearest of the fitted half are off on average (of several such corrections the best one, chosen in
hindsight). Where a correction by hundreds of measurements gains next to nothing, what is left isn't a
function of the sizes as smooth as the table is dense: products of nearly the same size differ, as the library
takes another kernel for them.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from cosim.gpu.catalogue import read
from tests.validation.kernels import DATA, F64, TABLES, Row, predicted, rows_of

NEIGHBOURS = (2, 4, 8, 16)
"""How many are asked."""


def sizes(rows: list[Row]) -> F64:
    """Rows, inner size and columns of each row's product, by doublings."""
    products = [row.kernels[-1] for row in rows]
    return np.log2([[one.rows, one.inner, one.columns] for one in products])


def corrected(fitted: list[Row], held: list[Row], ratio: F64, many: int) -> F64:
    """What ``held`` rows are off by as the ``many`` nearest of ``fitted`` are, which are off by ``ratio``."""
    _, nearest = KDTree(sizes(fitted)).query(sizes(held), many)
    return np.asarray(np.exp(np.log(ratio)[nearest].reshape(len(held), -1).mean(axis=1)))


def errors(name: str, fitted: list[Row], held: list[Row]) -> tuple[float, float, float]:
    """Mean errors of ``held`` rows: the package's, by the nearest's rate, and with the best correction."""
    gpu = read(name)
    took, known = (np.array([row.seconds for row in each]) for each in (held, fitted))
    here, there = predicted(gpu, held), predicted(gpu, fitted)
    flops, other = (np.array([row.kernels[-1].flops for row in each]) for each in (held, fitted))
    rates = flops * corrected(fitted, held, known / other, 1)
    best = min(
        float(np.abs(here * corrected(fitted, held, known / there, many) / took - 1).mean())
        for many in NEIGHBOURS
    )
    return float(np.abs(here / took - 1).mean()), float(np.abs(rates / took - 1).mean()), best


def main() -> None:
    """A line for each GPU and type."""
    print(f"{'large products held out':27s} rows  package  nearest  corrected")
    for table, name in TABLES.items():
        if not (DATA / "gpus" / f"{table}_gemm.csv").exists():
            continue
        every = rows_of(table)
        for what in dict.fromkeys(row.what for row in every if row.what != "attention"):
            fitted = [row for row in every[::2] if row.what == what]
            held = [row for row in every[1::2] if row.what == what and row.large]
            package, nearest, best = errors(name, fitted, held)
            print(f"{name:16s} {what:10s} {len(held):4d}   {package:6.1%}   {nearest:6.1%}     {best:6.1%}")


if __name__ == "__main__":
    main()
