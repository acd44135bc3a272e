"""A case of an ASTRA-sim reference file as a scenario: the YAML that a user would write for it.

A case says what ASTRA-sim's analytical backend was run on, in one of two ways:

- fields: ``topology``, ``npus_count``, ``bandwidth_GiBps``, ``latency_ns``, ``splits``, ``active_chunks``,
  ``endpoint_delay_ns``, ``local_mem_bw_GBps``, ``optimization``, ``queues_per_dim``, ``impl`` (for each
  dimension);
- ASTRA-sim's own files, as ``system_json`` (a dict) and ``network_yml`` (text).

What runs is ``workload``, a folder of Chakra traces below the data folder, with ``comm_groups`` and
``rendezvous``; or ``collective`` of ``size_bytes`` on all NPUs, after a computation of
``start_comp_us`` where that is there. ``backend`` is ``aware`` or ``unaware``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Case = Mapping[str, Any]

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_NETWORKS = {"aware": "congestion_aware", "unaware": "congestion_unaware"}
_OPTIMIZATIONS = {"localBWAware": "local_bw_aware", "baseline": "baseline"}
_WHOLE = {"oneRing": "ring", "oneDirect": "direct", "oneHalvingDoubling": "halvingDoubling"}
"""Implementations that make one dimension of all."""

_DEFAULTS = {
    "endpoint_delay_ns": ("endpoint-delay", 10),
    "active_chunks": ("active-chunks-per-dimension", 1),
    "splits": ("preferred-dataset-splits", 1),
    "optimization": ("collective-optimization", "localBWAware"),
    "local_mem_bw_GBps": ("local-mem-bw", 1600),
    "scheduling": ("scheduling-policy", "LIFO"),
}
"""Field of a case, the key of ``system_json`` that it stands for, and its default."""

_WITHOUT_EFFECT = {
    "scheduling-policy",  # orders collectives of one NPU, of which only one is ever under way
    "boost-mode",
    "peak-perf",
    "trace-enabled",
    "track-local-mem",
    "local-mem-trace-filename",
    "local-reduction-delay",
    *("L", "o", "g", "G"),  # of the shared bus
}
_ONLY_OFF = ("model-shared-bus", "roofline-enabled", "replay-only")


def system_of(case: Case) -> dict[str, Any]:
    """The case's ``system_json``, made of its fields where it has none."""
    if "system_json" in case:
        return dict(case["system_json"])
    system = {key: case.get(field, default) for field, (key, default) in _DEFAULTS.items()}
    impl = list(case.get("impl") or ["ring"] * len(case["npus_count"]))
    system |= {f"{name.replace('_', '-')}-implementation": impl for name in COLLECTIVES}
    return system


def network_of(case: Case) -> dict[str, Any]:
    """The four lists of the case's network."""
    if "network_yml" in case:
        found: dict[str, Any] = yaml.safe_load(case["network_yml"])
        return found
    return {
        "topology": case["topology"],
        "npus_count": case["npus_count"],
        "bandwidth": case["bandwidth_GiBps"],
        "latency": case["latency_ns"],
    }


def scenario_of(case: Case, *folders: Path) -> tuple[dict[str, Any], list[str]]:
    """The scenario of a case, and what of the case it leaves out, a line for each.

    ``folders`` are where ``workload`` and ``custom_collective`` may be.
    """
    network = network_of(case)
    npus = math.prod(network["npus_count"])
    collectives, notes = _collectives(case, system_of(case), folders)
    scenario = {
        "name": case["name"],
        "topology": {"kind": "astra_sim", **network},
        "network": _NETWORKS[case["backend"]],
        "jobs": [{"workload": _workload(case, npus, folders)}],
        "collectives": collectives,
    }
    return scenario, notes


def _found(path: str, folders: Sequence[Path]) -> str:
    """Where a path is, an absolute one as it is; in the first folder if nowhere."""
    places = [folder / path for folder in folders]
    return str(next((place for place in places if place.exists()), places[0]))


def _workload(case: Case, npus: int, folders: Sequence[Path]) -> dict[str, Any]:
    if "workload" in case:
        workload: dict[str, Any] = {"kind": "chakra", "path": _found(case["workload"], folders)}
        if case.get("comm_groups"):
            workload["comm_groups"] = case["comm_groups"]
        if case.get("rendezvous"):
            workload["rendezvous"] = True
        return workload
    name, size = case["collective"], case["size_bytes"]
    if case.get("start_comp_us"):
        compute = f"{case['start_comp_us']}us"
        return {"kind": "periodic", "compute": compute, "communication": name, "size": size, "ranks": npus}
    return {"kind": "collective", "collective": name, "size": size, "ranks": npus}


def _collectives(
    case: Case, system: dict[str, Any], folders: Sequence[Path]
) -> tuple[dict[str, Any], list[str]]:
    """The ``collectives`` section; keys of ``system`` are taken out as they are used."""
    section: dict[str, Any] = {
        "sizing": "floor",
        "endpoint_delay": f"{system.pop('endpoint-delay', 10)}ns",
        "splits": system.pop("preferred-dataset-splits", 1),
        "active_chunks": system.pop("active-chunks-per-dimension", 1),
        "queues": case.get("queues_per_dim", 1),
        "optimization": _OPTIMIZATIONS[system.pop("collective-optimization", "baseline")],
    }
    notes = []
    memory = system.pop("local-mem-bw", None)
    if memory is None:
        notes.append("no local-mem-bw: reductions take no time")
    else:
        section["reduction_rate"] = f"{memory}GB/s"
    for name in COLLECTIVES:
        key = f"{name.replace('_', '-')}-implementation"
        native, custom = system.pop(key, None), system.pop(f"{key}-custom", None)
        if custom is not None:
            # The path in the file is relative to where ASTRA-sim was run; the case says where it is here.
            path = _found(case.get("custom_collective", custom[0]), folders)
            section[name] = {"algorithm": "chakra", "path": path}
        elif native is not None:
            section[name] = _algorithms(native)
    notes += [f"{key} is on, which is not simulated" for key in _ONLY_OFF if system.pop(key, 0)]
    notes += [f"{key} is not simulated" for key in sorted(set(system) - _WITHOUT_EFFECT)]
    return section, notes


def _algorithms(implementations: list[str]) -> str | list[str]:
    """Implementations for each dimension, as the ``collectives`` section names them."""
    first = implementations[0]
    for name, plain in _WHOLE.items():
        if first.startswith(name):
            return plain + first.removeprefix(name)
    return implementations
