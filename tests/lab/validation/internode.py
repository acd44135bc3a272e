"""NCCL's collectives between hosts, and in a rack, beside 48 measured points of eight systems.

``python -m tests.lab.validation.internode``: error and bias from 64 KiB by system, by the fabric's name
alone; then with each system left out of what its fabric's ``rate`` is fitted to. ``--csv`` prints a line for
each point. Of all numbers only three rates are fitted: InfiniBand HDR's, RoCE's and EFA v3's.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.nccl import Nccl
from cosim.pattern.template import Collective
from cosim.topology.host_shape import FABRICS, FabricName
from cosim.topology.scale_up import host_shape
from tests.inputs import find

LARGE = 65536
NVLINK = {"a100": "300GB/s", "h100": "450GB/s", "h200": "450GB/s", "gb200": "900GB/s"}
FABRIC: dict[str, FabricName] = {
    "p5 2x8": "efa-v2", "p5en 4x8 H200": "efa-v3", "H20 2x8": "infiniband-ndr",
    "A100 2x8 4xHDR": "infiniband-hdr", "A100 3x8 4xHDR": "infiniband-hdr",
    "CoreWeave H100 12x8": "infiniband-ndr", "H100 2x8 RoCE": "roce", "GB200 NVL72 1 rack": "infiniband-ndr",
}  # fmt: skip
"""H20's isn't stated: InfiniBand is assumed. A rack's messages meet no fabric."""
FITTED = ("infiniband-hdr", "roce", "efa-v3")


@dataclass(frozen=True)
class Row:
    """An all-reduce of a buffer of so many bytes, seconds; what its note says of NCCL's settings."""

    system: str
    gpu: str
    hosts: int
    gpus: int
    nics: int
    nic_gbps: int
    size_bytes: int
    seconds: float
    note: str

    @property
    def settings(self) -> dict[str, object]:
        """Of NCCL."""
        forced = [name for name in ("nvls_tree", "ring") if f"algorithm {name}" in self.note]
        return {"nvls": "NVLS off" not in self.note, **({"algorithms": forced[0]} if forced else {})}


def rows() -> list[Row]:
    """All points, in the table's order; all are all-reduces."""
    with (find("measured") / "internode_nccl.csv").open(newline="") as file:
        return [
            Row(
                line["system"],
                line["gpu"],
                hosts=int(line["hosts"]),
                gpus=int(line["gpus_per_host"]),
                nics=int(line["nics_per_host"]),
                nic_gbps=int(line["nic_gbps"]),
                size_bytes=int(line["size_bytes"]),
                seconds=float(line["time_us"]) / 1e6,
                note=line["note"],
            )
            for line in csv.DictReader(file)
        ]


@cache
def simulated(row: Row, rate: float | None = None) -> tuple[float, str]:
    """Seconds in the full path, and by what it goes; ``rate``: in place of the fabric's."""
    ranks, costs = row.hosts * row.gpus, FABRICS[FABRIC[row.system]]
    costs = costs if rate is None else costs.model_copy(update={"rate": rate})
    size = {"collective": "all_reduce", "size": row.size_bytes, "ranks": ranks}
    scenario = Scenario.model_validate(
        {
            "topology": {
                "kind": "leaf_spine",
                "leaves": row.nics,
                "spines": row.hosts,
                "endpoints_per_leaf": ranks // row.nics,
                "latency": "500ns",
                "fabric": costs,
                "hosts": {
                    "gpus": row.gpus,
                    "nvlink_rate": NVLINK[row.gpu],
                    "nvlink_latency": "300ns",
                    "nics": row.nics,
                    "nic_rate": f"{row.nic_gbps}Gbps",
                    "rails": True,
                },
            },
            "network": "fair_share",
            "collectives": {"all_reduce": {"algorithm": "nccl", **row.settings}},
            "jobs": [{"workload": {"kind": "collective", **size}}],
            "fold": "never",
        }
    )
    records = run(scenario).records
    shape = host_shape(records.topology, scenario.topology)
    assert shape is not None
    nccl = Nccl.model_validate({**row.settings, "hosts": row.hosts}).on_hosts(shape)
    return records.end_ps / 1e12, " ".join(nccl.choose(Collective.ALL_REDUCE, ranks, row.size_bytes))


def errors(points: Iterable[Row], rate: float | None = None) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Relative, of each."""
    return np.array([simulated(row, rate)[0] / row.seconds - 1 for row in points])


def fitted_rate(points: Sequence[Row]) -> float:
    """The rate, in hundredths, with the least mean error; without any points InfiniBand's."""
    if not points:
        return FABRICS["infiniband-ndr"].rate
    return min((n / 100 for n in range(75, 101)), key=lambda rate: float(np.abs(errors(points, rate)).mean()))


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    points = rows()
    if "--csv" in arguments:
        print("system,fabric,bytes,measured_us,simulated_us,error,goes_by")
        for row in points:
            seconds, way = simulated(row)
            name = "" if row.hosts == 1 else FABRIC[row.system]
            known = f"{row.system},{name},{row.size_bytes},{row.seconds * 1e6:.1f}"
            print(f"{known},{seconds * 1e6:.1f},{seconds / row.seconds - 1:+.3f},{way}")
        return
    large = [row for row in points if row.size_bytes >= LARGE]
    print("system                rows    error     bias   left out: rate    error     bias")
    left: list[float] = []
    for system in dict.fromkeys(row.system for row in large):
        own = [row for row in large if row.system == system]
        others = [row for row in large if FABRIC[row.system] == FABRIC[system] and row.system != system]
        rate = fitted_rate(others) if FABRIC[system] in FITTED else None
        with_all, without = errors(own), errors(own, rate)
        left += without.tolist()
        said = "  none" if rate is None else f"{rate:6.2f}"
        print(
            f"{system:20s} {len(own):5d}   {np.abs(with_all).mean():6.1%}  {with_all.mean():+6.1%}          "
            f"{said}   {np.abs(without).mean():6.1%}  {without.mean():+6.1%}"
        )
    every = errors(large)
    print(
        f"all                  {len(large):5d}   {np.abs(every).mean():6.1%}  {every.mean():+6.1%}"
        f"                   {np.abs(left).mean():6.1%}  {np.mean(left):+6.1%}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
