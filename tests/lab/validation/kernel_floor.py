"""How close a model of matrix products' sizes could come to measured ones: what other products say.

``python -m tests.lab.validation.kernel_floor``: for each GPU and type the mean error of large products that
the fit has not seen (of an odd number in their table): by the package's numbers; by the rate of the measured
product that is nearest in size; by the package's numbers, each product corrected by what eight or so nearest
of the fitted half are off on average (of several such corrections the best one, chosen in hindsight); and
corrected by trees (`extra_trees`) that were shown of all large products of the fitted half what the package
is off by, beside sizes, multiples, waves and what is left of them for tiles of 64 to 256. Neighbours find
what is smooth in the sizes, trees also what isn't: where neither gains much, what is left is no function of
the sizes that hundreds of measurements show.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from cosim.gpu.catalogue import read
from tests.lab.validation import extra_trees
from tests.lab.validation.kernels import DATA, F64, TABLES, Row, predicted, rows_of

NEIGHBOURS = (2, 4, 8, 16)
"""How many are asked."""
SHOWN = 2e10
"""FLOPs of the smallest products that trees are shown: some below what counts as large."""
SIDES = (64, 128, 192, 256)
"""Of tiles."""


def sizes(rows: list[Row]) -> F64:
    """Rows, inner size and columns of each row's product, by doublings."""
    products = [row.kernels[-1] for row in rows]
    return np.log2([[one.rows, one.inner, one.columns] for one in products])


def corrected(fitted: list[Row], held: list[Row], ratio: F64, many: int) -> F64:
    """What ``held`` rows are off by as the ``many`` nearest of ``fitted`` are, which are off by ``ratio``."""
    _, nearest = KDTree(sizes(fitted)).query(sizes(held), many)
    return np.asarray(np.exp(np.log(ratio)[nearest].reshape(len(held), -1).mean(axis=1)))


def features(rows: list[Row], took: F64, processors: int) -> F64:
    """What a library could choose a kernel by: sizes and their products, powers of two in them, tiles, waves
    and how far the last ones are filled; and what the package says (s).
    """
    three = sizes(rows)
    m, k, n = np.round(2**three.T)
    found = [*three.T, *(three @ [[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]]).T, np.log2(m / n), np.log2(took)]
    found += [size % many == 0 for size in (m, k, n) for many in (8, 16, 32, 64, 128, 256, 512)]
    for rows_of_tile in SIDES:
        for columns in SIDES:
            tiles = np.ceil(m / rows_of_tile) * np.ceil(n / columns)
            waves = tiles / processors
            found += [waves, waves / np.ceil(waves), m * n / (tiles * rows_of_tile * columns)]
    return np.stack(found, axis=1).astype(float)


def errors(name: str, fitted: list[Row], held: list[Row]) -> tuple[float, float, float, float]:
    """Mean errors of ``held`` rows: the package's, by the nearest's rate, by neighbours, by trees."""
    gpu = read(name)
    took, known = (np.array([row.seconds for row in each]) for each in (held, fitted))
    here, there = predicted(gpu, held), predicted(gpu, fitted)
    flops, other = (np.array([row.kernels[-1].flops for row in each]) for each in (held, fitted))
    rates = flops * corrected(fitted, held, known / other, 1)
    best = min(
        float(np.abs(here * corrected(fitted, held, known / there, many) / took - 1).mean())
        for many in NEIGHBOURS
    )
    shown = np.array([row.kernels[-1].flops >= SHOWN for row in fitted])
    both = zip((fitted, held), (there, here), strict=True)
    taught, asked = (features(rows, each, gpu.multiprocessors) for rows, each in both)
    trees = here * np.exp(extra_trees.predicted(taught[shown], np.log(known / there)[shown], asked))
    mean = [float(np.abs(each / took - 1).mean()) for each in (here, rates, trees)]
    return mean[0], mean[1], best, mean[2]


def main() -> None:
    """A line for each GPU and type."""
    print(f"{'large products held out':27s} rows  package  nearest  corrected   trees")
    for table, name in TABLES.items():
        if not (DATA / "gpus" / f"{table}_gemm.csv").exists():
            continue
        every = rows_of(table)
        for what in dict.fromkeys(row.what for row in every if row.what != "attention"):
            fitted = [row for row in every[::2] if row.what == what]
            held = [row for row in every[1::2] if row.what == what and row.large]
            said = errors(name, fitted, held)
            print(f"{name:16s} {what:10s} {len(held):4d}   " + "   ".join(f"{one:6.1%}" for one in said))


if __name__ == "__main__":
    main()
