"""NCCL's collectives on 2, 4 and 8 GPUs of a host beside measured ones, five systems.

``python -m tests.lab.validation.nccl_tables``: mean error and bias of held-out rows, from 64 KiB and below,
by system and collective, by the closed forms, which are the full path's times
(``tests/pattern/test_nccl_host.py``). ``--fit`` fits each system's numbers to the other rows. Tables:
ai-dynamo/aiconfigurator (Apache-2.0), nccl-tests of NCCL 2.27 and 2.29. Rows with an even number in their
table are fitted to, the others held out.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from cosim.pattern.nccl_host import SYSTEMS, HostLaw, SystemName
from cosim.pattern.template import Collective
from tests.inputs import find

F64 = NDArray[np.float64]
DATA = find("measured")
TABLES: dict[str, SystemName] = {
    "a100_sxm": "a100", "h100_sxm": "h100", "h200_sxm": "h200", "b200_sxm": "b200", "gb200": "gb200",
}  # fmt: skip
LARGE = 65536
COLLECTIVES = {
    "all_reduce": Collective.ALL_REDUCE, "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER, "alltoall": Collective.ALL_TO_ALL,
}  # fmt: skip
FIXED = ("link_rate", "assumed_rate", "assumed_ll", "loop")
SCALE = {
    "ll_start": 5.0, "ll_hop": 1.0, "ll_rate": 1e5, "ll_drain": 0.3, "ll128_start": 6.0,
    "ll128_efficiency": 0.6, "start": 10.0, "growth": 10.0, "hop": 3.0, "efficiency": 0.6, "later": 0.1,
    "drain": 0.4, "adding": 0.03, "adding_bytes": 0.1, "direct_start": 7.0, "direct_growth": 5.0,
    "direct_efficiency": 0.65, "direct_drain": 0.2, "direct_ll_rate": 3e3, "direct_ll_hop": 0.2,
    "nvls_start": 80.0, "nvls_efficiency": 0.56,
}  # fmt: skip
"""Of each number, where the search begins."""
MOST = 0.95
"""Of a link's rate, that data can take: the rest is headers."""


@dataclass(frozen=True)
class Row:
    """A collective over ranks of one host, bytes of its whole buffer, seconds."""

    collective: Collective
    ranks: int
    size_bytes: int
    seconds: float
    number_bytes: int = 2


def rows_of(table: str) -> list[Row]:
    """Every row of a system's table."""
    with (DATA / "gpus" / f"{table}_nccl.csv").open(newline="") as file:
        return [_row(line) for line in csv.DictReader(file)]


def _row(line: dict[str, str]) -> Row:
    width = 2 if line["dtype"] == "half" else 1
    return Row(
        COLLECTIVES[line["collective"]],
        int(line["gpus"]),
        int(line["elements"]) * width,
        float(line["time_us"]) / 1e6,
        width,
    )


def predicted(law: HostLaw, rows: Sequence[Row]) -> F64:
    """Seconds of each row."""
    return np.array(
        [law.seconds(row.collective, row.ranks, row.size_bytes, row.number_bytes) for row in rows]
    )


def fit(law: HostLaw, rows: Sequence[Row]) -> HostLaw:
    """Numbers that reproduce rows best: relative errors, a loss that spares odd ones."""
    has = {"nvls": law.nvls_efficiency > 0, "ll12": law.ll128}
    names = [each.name for each in fields(law) if each.name not in FIXED and has.get(each.name[:4], True)]
    scale = np.array([SCALE[name] for name in names])
    most = np.array([MOST if name.endswith("efficiency") else 20 * SCALE[name] for name in names]) / scale
    measured = np.array([row.seconds for row in rows])
    weight = np.array([1.5 if row.size_bytes >= LARGE else 1.0 for row in rows])

    def made(z: F64) -> HostLaw:
        return replace(law, **dict(zip(names, (z * scale).tolist(), strict=True)))

    def residuals(z: F64) -> F64:
        return np.asarray(np.log(predicted(made(z), rows) / measured) * weight)

    start = np.minimum(np.ones(len(names)), 0.9 * most)
    found = least_squares(residuals, start, bounds=(0, most), loss="soft_l1", f_scale=0.1)
    return made(found.x)


def main(arguments: Sequence[str]) -> None:
    """Report, or fit."""
    print("held out                  from 64 KiB: rows   error    bias   below: error    bias")
    for table, name in TABLES.items():
        rows, law = rows_of(table), SYSTEMS[name]
        if "--fit" in arguments:
            law = fit(law, rows[::2])
            print(law)
        rows = rows[1::2]
        error = predicted(law, rows) / np.array([row.seconds for row in rows]) - 1
        large = np.array([row.size_bytes >= LARGE for row in rows])
        for collective in (*COLLECTIVES.values(), None):
            own = np.array([collective in (row.collective, None) for row in rows])
            a, b = error[own & large], error[own & ~large]
            what = "all" if collective is None else collective.value
            print(
                f"{name:6s} {what:16s} {len(a):18d}  {np.abs(a).mean():6.1%}  {a.mean():+6.1%}        "
                f"{np.abs(b).mean():6.1%}  {b.mean():+6.1%}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
