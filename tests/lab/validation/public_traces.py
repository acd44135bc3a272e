"""Traces and fabrics that other projects publish, each beside an answer that cosim had no part in.

``python -m tests.lab.validation.public_traces FOLDER`` reads every Kineto trace (``.json``, ``.json.gz``),
every ``.topo`` of htsim and every ``.txt`` of HPCC's form below FOLDER, such as a checkout of Holistic Trace
Analysis, csg-htsim or conweave-ns3. Nothing of them lies in this repository.

- Each step of a trace is replayed with ``collectives: measured``. :func:`measured_steps` says how long it
  took, from the plain JSON: from its begin, or the end of the GPU work launched before, until its end, or the
  end of the last work that it launched. Both lie within 1 %, or the page has a doubt.
- A fabric's endpoints, switches and cables are counted: from HPCC's first line, from htsim's ports of tiers.

It says nothing of predictions: durations are the trace's own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cosim
from cosim.context import HERE
from cosim.errors import CosimError
from cosim.topology.from_file import FileTopology

_GPU = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
_WITHIN = 0.01


@dataclass(frozen=True)
class Tried:
    """One file, or one step of one: what it is said to be, what cosim says, and whether that is right."""

    name: str
    said: str
    ours: str
    verdict: str
    """``right``, ``doubtful``, ``refused`` or ``wrong``."""


def measured_steps(trace: Mapping[str, Any]) -> dict[int | None, float]:
    """Microseconds each ``ProfilerStep#N`` took; the whole trace as ``None`` where it has no steps.

    Work whose launch the trace hasn't was launched before it. A step without GPU work lasts as long as its
    annotation; a trace without steps, from its first event of a thread to its last.
    """
    events = [one for one in trace.get("traceEvents", []) if one.get("ph") == "X"]
    host = [
        one for one in events if one.get("cat") not in (*_GPU, "Trace", "gpu_user_annotation", "overhead")
    ]
    launched = {
        one["args"]["correlation"]: float(one["ts"])
        for one in host
        if str(one.get("cat")).endswith(("_runtime", "_driver", "Runtime"))
        and "correlation" in one.get("args", {})
    }
    began = min((float(one["ts"]) for one in host), default=0.0)
    works = [
        (launched.get(one["args"].get("correlation"), began - 1), float(one["ts"]) + float(one["dur"]))
        for one in events
        if one.get("cat") in _GPU
    ]
    spans: dict[int | None, tuple[float, float]] = {
        int(found[1]): (float(one["ts"]), float(one["ts"]) + float(one["dur"]))
        for one in host
        if (found := re.match(r"ProfilerStep#(\d+)$", str(one["name"])))
    }
    if not spans:
        begins = [float(one["ts"]) for one in host]
        ends = [float(one["ts"]) + float(one.get("dur", 0)) for one in host]
        spans = {None: (min(begins), max(ends) + 1e-9)}
    took = {}
    for number, (begin, end) in spans.items():
        before = [until for at, until in works if at < begin]
        inside = [until for at, until in works if begin <= at < end]
        took[number] = max([end, *inside]) - max([begin, *before])
    return took


def _run(path: Path, step: int | None, ranks: int) -> tuple[float, bool]:
    """Microseconds that cosim replays, and whether it doubts them."""
    chosen = "" if step is None else f", step: {step}"
    text = f"""
topology: {{kind: switch, endpoints: {ranks}, rate: 25GB/s, latency: 1us}}
network: fair_share
jobs: [{{workload: {{kind: pytorch, kineto: {json.dumps(str(path))}, collectives: measured{chosen}}}}}]
"""
    done = cosim.run(cosim.loads(text))
    mean = done.summary.jobs[0].iteration_mean_ps
    return (mean or 0) / 1e6, "\ndoubtful:" in str(done)


def _judged(name: str, took: float, path: Path, step: int | None, ranks: int) -> Tried:
    try:
        ours, doubted = _run(path, step, ranks)
    except CosimError as error:
        return Tried(
            name, f"{took / 1e3:.3f} ms", str(error).split(": ", 3)[-1].splitlines()[0][:60], "refused"
        )
    right = abs(ours - took) <= _WITHIN * took
    verdict = "doubtful" if doubted else "right" if right else "wrong"
    return Tried(name, f"{took / 1e3:.3f} ms", f"{ours / 1e3:.3f} ms", verdict)


def tried_trace(path: Path) -> Iterator[Tried]:
    """Each step of a Kineto trace; nothing for JSON that is none."""
    raw = path.read_bytes()
    try:
        trace = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    except (ValueError, EOFError, OSError):
        return
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return
    ranks = trace.get("distributedInfo", {}).get("world_size") or 1
    for number, took in measured_steps(trace).items():
        label = path.name if number is None else f"{path.name} step {number}"
        yield _judged(label, took, path, number, ranks)


def counted_cables(lines: list[str]) -> tuple[int, int, int] | None:
    """Endpoints, switches and cables of HPCC's form, from its first line."""
    head = lines[0].split() if lines else []
    if len(head) not in (3, 5) or not all(one.isdigit() for one in head):
        return None
    nodes, switches = int(head[0]), int(head[len(head) - 2])
    return nodes - switches, switches, int(head[-1])


def counted_tiers(lines: list[str]) -> tuple[int, int, int] | None:
    """The same of htsim's form: ports of a tier, up and down, by its switches' radix."""
    nodes, tiers = 0, list[dict[str, int]]()
    for words in (line.split() for line in lines if len(line.split()) == 2):
        if words[0] == "Nodes":
            nodes = int(words[1])
        elif words[0] == "Tier":
            tiers.append({})
        elif tiers and words[1].isdigit():
            tiers[-1][words[0]] = int(words[1])
    if not nodes or not tiers:
        return None
    switches, cables, ports = 0, 0, nodes
    for tier in tiers:
        count = ports // tier["Radix_Down"]
        switches, cables, ports = switches + count, cables + ports, count * tier.get("Radix_Up", 0)
    return nodes, switches, cables


def tried_topology(path: Path) -> Iterator[Tried]:
    """A fabric of HPCC's or htsim's form; nothing for another text."""
    count = counted_tiers if path.suffix == ".topo" else counted_cables
    found = count(path.read_text(errors="replace").splitlines())
    if found is None:
        return
    said = "{} endpoints, {} switches, {} cables".format(*found)
    try:
        made = FileTopology(file=str(path)).build(HERE)
    except CosimError as error:
        yield Tried(path.name, said, str(error).splitlines()[0][-60:], "refused")
        return
    switches = made.num_nodes - made.num_endpoints
    ours = f"{made.num_endpoints} endpoints, {switches} switches, {made.num_links // 2} cables"
    yield Tried(path.name, said, ours, "right" if ours == said else "wrong")


def _tried(path: Path) -> Iterator[Tried]:
    if path.name.endswith((".json", ".json.gz")):
        yield from tried_trace(path)
    elif path.suffix in (".txt", ".topo"):
        yield from tried_topology(path)


def main() -> int:
    """The table and a count of each verdict; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.validation.public_traces")
    parser.add_argument("folder", type=Path)
    rows: list[Tried] = []
    print("| file | its own | cosim | |\n|---|---|---|---|")
    for path in sorted(parser.parse_args().folder.rglob("*")):
        for row in _tried(path):
            rows.append(row)
            print(f"| {row.name} | {row.said} | {row.ours} | {row.verdict} |", flush=True)
    for verdict in ("right", "doubtful", "refused", "wrong"):
        print(f"{verdict}: {sum(row.verdict == verdict for row in rows)}")
    return int(any(row.verdict == "wrong" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
