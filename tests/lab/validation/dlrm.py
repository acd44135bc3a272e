"""DLRM on 8 V100s: its measured step against its trace's replay. ``python -m tests.lab.validation.dlrm``.

The traces (PyTorch ET and Kineto of all ranks) are facebookresearch/param's; see ``tests/data/README.md``.
Three tables: each rank's step with collectives over the network of ``dlrm_dgx1.yaml``; the same with the
collectives' measured times, which leaves the host's and the GPU's part; each collective from its last
arrival on.

What it shows: that threads, launches, streams, waits and other ranks are put together again as they were:
ranks begin up to 7.5 ms apart and wait for each other. What it doesn't: a prediction of kernels or of the
host, whose times are the trace's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cosim.engine.records import CollectiveRecord
from cosim.experiment.run import run
from cosim.experiment.scenario import load
from cosim.formats.pytorch.job import TracedJob
from cosim.formats.pytorch.read import PyTorchWorkload
from cosim.units import PS_PER_US
from tests.inputs import find

SCENARIO = Path(__file__).with_name("dlrm_dgx1.yaml")
DATA = find("pytorch")
SETTINGS = {
    "jobs[0].workload.et": str(DATA / "dlrm_pytorch_et.tar.gz"),
    "jobs[0].workload.kineto": str(DATA / "dlrm_kineto.tar.gz"),
}


@dataclass(frozen=True)
class Row:
    """A rank's step; with what it was, and what the replay makes it."""

    rank: int
    begin_us: float
    measured_us: float
    replayed_us: float

    @property
    def error(self) -> float:
        """Relative."""
        return self.replayed_us / self.measured_us - 1


def read() -> TracedJob:
    """What was measured."""
    workload = load(SCENARIO, SETTINGS).jobs[0].workload
    return cast("PyTorchWorkload", workload).read()


def replay(measured: TracedJob, collectives: str) -> tuple[list[Row], list[CollectiveRecord]]:
    """Each rank's step, and the collectives, replayed."""
    done = run(load(SCENARIO, {**SETTINGS, "jobs[0].workload.collectives": collectives}))
    ops = done.records.ops
    rows = []
    for rank, begin_ps in enumerate(measured.begin_ps):
        end_ps = int(ops.end_ps[ops.rank == rank].max())
        rows.append(
            Row(
                rank,
                begin_ps / PS_PER_US,
                measured.measured_ps(rank) / PS_PER_US,
                (end_ps - begin_ps) / PS_PER_US,
            )
        )
    return rows, list(done.records.collectives)


def main() -> None:
    """Print the tables."""
    measured = read()
    for collectives in ("simulated", "measured"):
        rows, records = replay(measured, collectives)
        print(f"collectives {collectives}")
        print("rank  began after  measured step  replayed step    error")
        for row in rows:
            times = f"{row.measured_us:10.0f} us  {row.replayed_us:10.1f} us"
            print(f"{row.rank:4d}  {row.begin_us:8.0f} us  {times}  {row.error:+7.3%}")
        mean = sum(abs(row.error) for row in rows) / len(rows)
        print(f"mean absolute error {mean:.3%}, worst {max(abs(row.error) for row in rows):.3%}\n")
        if collectives == "simulated":
            whole = {record.name: record for record in records}
    print("collective, from its last arrival   bytes  measured  replayed")
    for shared in measured.matched:
        comm = next(iter(shared.parts.values()))[0]
        record = whole.get(f"{comm.kind} {shared.number}")
        replayed = "as messages"
        if record is not None:
            replayed = f"{(record.end_ps - record.ready_ps) / PS_PER_US:5.1f} us"
        print(
            f"{comm.kind + ' ' + str(shared.number):33s} {comm.size_bytes:8d}"
            f"  {shared.network_ps / PS_PER_US:5.0f} us  {replayed}"
        )


if __name__ == "__main__":
    main()
