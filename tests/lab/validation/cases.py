"""Inputs that got wrong answers on 2026-11-28, each beside what is right.

``python -m tests.lab.validation.cases [FOLDER]`` runs them; they lie in ``../shared/cases`` beside the
checkout, made by hand or of public repositories. What is right is a closed form, a count, or what the input's
origin says; each row of :data:`ROWS` names it. An answer with a doubt on top is doubtful, whatever it is.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cosim
from cosim.context import HERE
from cosim.errors import CosimError
from cosim.topology.from_file import FileTopology
from tests.inputs import BESIDE

WITHIN = 0.01


@dataclass(frozen=True)
class Row:
    """What is tried: ``ours`` gives a number in ``unit``, which has to be ``right`` within ``within``, or at
    least that, where ``within`` is None. ``right`` None: it has to run; "": to be refused.
    """

    kind: str
    name: str
    ours: Callable[[Path], tuple[float, bool]]
    right: float | str | None
    unit: str = "ms"
    within: float | None = WITHIN


def _switch(ranks: int, workload: dict[str, Any], **more: Any) -> dict[str, Any]:
    fabric = {"kind": "switch", "endpoints": max(ranks, 2), "rate": "100Gbps", "latency": "1us"}
    return {"topology": fabric, "network": "fair_share", "jobs": [{"workload": workload}], **more}


def _first(done: cosim.Run) -> tuple[float, bool]:
    """Milliseconds of the first job's iteration, and whether they are doubted."""
    return (done.summary.jobs[0].iteration_mean_ps or 0) / 1e9, bool(done.doubts)


def _traced(file: str, step: int | str = "last", ranks: int = 1) -> Callable[[Path], tuple[float, bool]]:
    def ours(folder: Path) -> tuple[float, bool]:
        workload = {"kind": "pytorch", "kineto": str(folder / file), "step": step}
        return _first(cosim.run(_switch(ranks, workload)))

    return ours


def _sent(file: str, ranks: int, *, messages: bool = False) -> Callable[[Path], tuple[float, bool]]:
    def ours(folder: Path) -> tuple[float, bool]:
        done = cosim.run(_switch(ranks, {"kind": "pytorch", "kineto": str(folder / file)}))
        count = float(done.records.num_messages)
        return count if messages else done.summary.traffic.total_bytes / 1e6, bool(done.doubts)

    return ours


def _scenario(file: str, **setting: Any) -> Callable[[Path], tuple[float, bool]]:
    def ours(folder: Path) -> tuple[float, bool]:
        return _first(
            cosim.run(cosim.load(folder / file), set={k.replace("__", "."): v for k, v in setting.items()})
        )

    return ours


def _ring_of(file: str) -> Callable[[Path], tuple[float, bool]]:
    def ours(folder: Path) -> tuple[float, bool]:
        job = {"kind": "collective", "collective": "all_reduce", "ranks": 8, "size": "256MiB"}
        asked = _switch(8, job, collectives={"all_reduce": "ring"})
        asked["topology"] = {"kind": "nccl", "file": str(folder / file)}
        return _first(cosim.run(asked))

    return ours


def _flows(kind: str, file: str, endpoints: int) -> Callable[[Path], tuple[float, bool]]:
    def ours(folder: Path) -> tuple[float, bool]:
        done = cosim.run(_switch(endpoints, {"kind": kind, "path": str(folder / file)}))
        return float(done.records.num_messages), bool(done.doubts)

    return ours


def _endpoints(file: str) -> Callable[[Path], tuple[float, bool]]:
    def ours(folder: Path) -> tuple[float, bool]:
        return float(FileTopology(file=str(folder / file)).build(HERE).num_endpoints), False

    return ours


def _beside_none(file: str) -> Callable[[Path], tuple[float, bool]]:
    """CASSINI's iterations as a multiple of those without a scheduler, the worst job's."""

    def ours(folder: Path) -> tuple[float, bool]:
        runs = [cosim.run(cosim.load(folder / file), set={"scheduler": one}) for one in ("cassini", "none")]
        held, free = ([job.iteration_mean_ps or 0 for job in done.summary.jobs] for done in runs)
        return max(mine / theirs for mine, theirs in zip(held, free, strict=True)), bool(runs[0].doubts)

    return ours


def _in_racks(file: str) -> Callable[[Path], tuple[float, bool]]:
    """How many groups of experts lie in one rack each, by default."""

    def ours(folder: Path) -> tuple[float, bool]:
        given = cosim.load(folder / file)
        memory = {"jobs[0].workload.memory": "ignore", "jobs[0].workload.batch": 64}
        done = cosim.run(given, set=memory)
        endpoints = done.records.jobs[0].endpoints.reshape(4, 64)
        return float(sum(len({*(group // 72)}) == 1 for group in endpoints)), bool(done.doubts)

    return ours


def _without(file: str) -> Callable[[Path], tuple[float, bool]]:
    def ours(folder: Path) -> tuple[float, bool]:
        return _first(cosim.run(cosim.load(folder / file), set={"topology.nvlink_rate": None}))

    return ours


PORTS_MS = 2 * 31 / 32 * 1e9 / (8 * 48e9) * 1e3
"""1 GB round 32 GPUs by eight ports a server, each behind a PCI switch of 48 GB/s."""
_LATE, _CUT, _SHARED = "01-gpu-backlog", "02-lists-cut-at-30", "shared-clusters"
_TOPO, _PLANES = "11-htsim-topo/{}.topo", "18-two-planes/planes.yaml"
_CASSINI, _WIRE = "cassini-score-{}-slower-than-none.yaml", "faster-than-wire/faster-than-wire-defaults.yaml"
ROWS = [
    *(Row("K1", f"async, step {n}", _traced(f"{_LATE}/async.json", n), 100) for n in (2, 3, 4)),
    *(Row("K1", f"async-short, step {n}", _traced(f"{_LATE}/async-short.json", n), 20) for n in (2, 3, 4)),
    Row("K1", "async-one", _traced(f"{_LATE}/async-one.json"), 100),
    Row("K1", "sync", _traced(f"{_LATE}/sync.json"), 100),
    *(Row("K1", f"two, step {n}", _traced(f"{_LATE}/two.json", n), 15) for n in (2, 3)),
    *(Row("K2", f"a group of {n}", _traced(f"{_CUT}/w{n}.json", ranks=n), None) for n in (30, 31, 64)),
    Row("K2", "32 ranks' traces", _traced(f"{_CUT}/all32", ranks=32), None),
    Row("K2", "sizes beyond the thirtieth", _traced(f"{_CUT}/a2av40", ranks=40), ""),
    *(
        Row("K2", f"a name with {name[:8]}", _traced(f"04-rank-from-file-name/{name}.json.gz", 1), 9.288)
        for name in ("resnet50", "mi250_minitoy_train_ROCm6_2_kineto")
    ),
    Row("K3", "a rank that sends nothing", _sent("03-ragged-zero/zero2", 2), 2 * 7_077_888 / 1e6, "MB"),
    Row("K3", "... its messages", _sent("03-ragged-zero/zero2", 2, messages=True), 1, "message"),
    Row("K6", "ring of 256 MiB on MI300X", _ring_of("08-xgmi/topo_8p_940.xml"), 9.787),
    *(
        Row("K7", f"{name}.cm", _flows("htsim", f"10-htsim-msg/{name}.cm", 16), count, "messages")
        for name, count in (("msgid", 2), ("test_cr_1f10m10p", 10), ("test_cr_1f10m1p", 10))
    ),
    Row("K7", "leaf_spine_tiny.topo", _endpoints(_TOPO.format("leaf_spine_tiny")), 32, "endpoints"),
    Row("K7", "fat_tree_1024_4os.topo", _endpoints(_TOPO.format("fat_tree_1024_4os")), 1024, "endpoints"),
    Row("K7", "ConWeave's flows", _flows("flow-list", "14-conweave-flow/conweave.txt", 320), 2, "messages"),
    Row("K8", "ring on one of two planes", _scenario(_PLANES), 17.5),
    Row("K8", "`nccl` on both", _scenario(_PLANES, collectives__all_reduce="nccl"), 17.5, within=0.06),
    Row("K9", "a CPU's execution trace", _scenario("first-hour/et-zero.yaml"), ""),
    Row("K10", "groups of 64 in racks of 72", _in_racks("first-hour/gb200.yaml"), 4, "groups"),
    Row("K10", "32 GPUs of NCCL's file", _scenario("first-hour/ncclx.yaml"), PORTS_MS, within=0.05),
    Row("K10", "... without `nvlink_rate`", _without("first-hour/ncclx.yaml"), None),
    Row("K10", "a batch of 16 in one pass", _scenario("inference/decode16.yaml"), 6.8, within=0.02),
    *(
        Row("K11", f"score {score}", _beside_none(f"{_SHARED}/{_CASSINI.format(score)}"), 1.0, "x")
        for score in ("0.951", "0.958", "0.979")
    ),
    Row("K12", "two stages", _scenario(f"{_SHARED}/pipedream-1f1b-not-alternating.yaml"), 19.0),
    Row("K16", "64 x 100 kB", _scenario(_WIRE), 0.512, within=None),
]  # fmt: skip


def tried(row: Row, folder: Path) -> tuple[str, str]:
    """What cosim says, and one of :data:`VERDICTS`."""
    try:
        ours, doubted = row.ours(folder)
    except CosimError as error:
        said = str(error).splitlines()[0].rpartition(": ")[2][:60]
        return said, "refused" if row.right == "" else "wrong"
    said = f"{ours:.4g} {row.unit}".strip()
    if doubted:
        return said, "doubtful"
    if row.right is None or isinstance(row.right, str):
        return said, "right" if row.right is None else "wrong"
    good = ours >= row.right if row.within is None else abs(ours / row.right - 1) <= row.within
    return said, "right" if good else "wrong"


VERDICTS = ("right", "doubtful", "refused", "wrong")
"""What would be right is refused: ``wrong``, and the other way round."""


def main() -> int:
    """Print each input, and how many of each kind are what; 1 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.validation.cases")
    parser.add_argument("folder", type=Path, nargs="?", default=BESIDE.parent / "cases")
    folder = parser.parse_args().folder
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    print("| kind | input | right | cosim | |\n|---|---|---|---|---|")
    for row in ROWS:
        ours, verdict = tried(row, folder)
        counts[row.kind][verdict] += 1
        right = f"{row.right:.4g} {row.unit}" if isinstance(row.right, int | float) else "refused"
        right = "it runs" if row.right is None else right
        print(f"| {row.kind} | {row.name} | {right} | {ours} | {verdict} |", flush=True)
    print(f"\n| kind | tried | {' | '.join(VERDICTS)} |\n|---|---|---|---|---|---|")
    for kind, count in counts.items():
        print(f"| {kind} | {count.total()} | {' | '.join(str(count[one]) for one in VERDICTS)} |")
    return int(any(count["wrong"] for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
