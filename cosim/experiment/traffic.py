"""The traffic that a scenario says, as a capture of it would have it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from cosim.captures.read import read_capture
from cosim.captures.traffic import TrafficCapture
from cosim.errors import SimulationError
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario, from_document, load
from cosim.experiment.translate import translate
from cosim.files.located_yaml import Document
from cosim.results.traffic.read import capture_of_messages


def traffic_of(scenario: Path, settings: Iterable[str] = (), *, logs: bool = False) -> TrafficCapture:
    """Run a scenario, and give its messages as a capture; with ``logs`` also what its ranks would log.

    Raises
    ------
    InputError
        A mistake in the scenario.
    SimulationError
        The run was interrupted.
    """
    loaded = load(scenario, settings)
    capture = _recorded(f"{scenario} (model)", loaded)
    if not logs:
        return capture
    with TemporaryDirectory() as folder:
        translate(loaded, "inspector", folder)
        return replace(capture, collectives=read_capture(Path(folder)).collectives)


def traffic_of_model(name: str, settings: Iterable[str] = ()) -> TrafficCapture:
    """The traffic of four iterations of a catalogue's model: data parallel on 8 A100s, a batch of 64.

    They are below two leaves, 100 Gbps each. ``settings`` change that: ``jobs[0].workload.batch=128``.

    Raises
    ------
    InputError
        No such model, or a setting that doesn't fit.
    SimulationError
        The run was interrupted.
    """
    fabric = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 4}
    workload = {"kind": "model", "model": name, "gpu": "a100-80gb", "batch": 64, "parallel": {"dp": 8}}
    scenario = {
        "topology": {**fabric, "rate": "100Gbps", "latency": "500ns"},
        "network": "fair_share",
        "jobs": [{"name": name, "iterations": 4, "workload": workload}],
    }
    return _recorded(name, from_document(Document(name, scenario), Path(), name, settings))


def _recorded(name: str, scenario: Scenario) -> TrafficCapture:
    records = run(scenario.with_settings({"record.messages": "npz"})).records
    if records.messages is None or records.interrupted:
        raise SimulationError("the run was interrupted")
    jobs = [job.name for job in records.jobs]
    return capture_of_messages(name, records.messages, records.topology.node_names, jobs)
