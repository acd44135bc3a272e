"""Packet runs kept in a folder, so that only the model that is held against them runs again.

A run's file is named for what it is, and by a hash of everything that it depends on: settings, flows, links
and the adapter's sources. Of another version none is found, and it runs anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.protocol.rdma import Ns3Rdma
from tests.inputs import ROOT
from tests.lab.benchmarks.ns3_congestion import Case
from tests.lab.benchmarks.rdma.sessions import run, session

F64 = NDArray[np.float64]


def file_of(folder: Path, spec: Ns3Rdma, case: Case, seed: int | None) -> Path:
    """Where a run is kept."""
    found = hashlib.sha256()
    adapter = ROOT / "adapters" / "ns3"
    for path in sorted((adapter / "src").rglob("*.[ch]*")):
        found.update(path.read_bytes())
    links = case.topology
    for column in (links.link_src, links.link_dst, links.link_rate_bps, links.link_latency_ps):
        found.update(np.ascontiguousarray(column).tobytes())
    found.update(repr((spec.settings(), case.flows, seed)).encode())
    control = type(spec.control.inner()).__name__.lower()
    name = f"{control}, {case.name}, {seed}".replace("/", " per ").replace(":", " to ")
    return folder / f"{name} {found.hexdigest()[:12]}.json"


def packets(control: Any, case: Case, seed: int | None, folder: Path | None, **wanted: Any) -> F64:
    """Completion times (us) in ns-3; from the folder where they are kept, and then kept."""
    spec = Ns3Rdma.model_validate({"control": control, "mtu": case.mtu, **wanted})
    path = None if folder is None else file_of(folder, spec, case, seed)
    if path is not None and path.exists():
        return np.array(json.loads(path.read_text("utf-8")))
    us = run(session("ns3_rdma", spec.settings()), case, seed).us
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(us.tolist()), "utf-8")
    return us
