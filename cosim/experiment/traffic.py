"""The traffic that a scenario says, as a capture of it would have it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cosim.captures.traffic import TrafficCapture
from cosim.errors import SimulationError
from cosim.experiment.run import run
from cosim.results.traffic.read import capture_of_messages


def traffic_of(scenario: Path, settings: Iterable[str] = ()) -> TrafficCapture:
    """Run a scenario, and give its messages as a capture.

    Raises
    ------
    InputError
        A mistake in the scenario.
    SimulationError
        The run was interrupted.
    """
    done = run(scenario, [*settings, "record.messages=npz"])
    records = done.records
    if records.messages is None or records.interrupted:
        raise SimulationError("the run was interrupted")
    names = [job.name for job in records.jobs]
    return capture_of_messages(f"{scenario} (model)", records.messages, records.topology.node_names, names)
