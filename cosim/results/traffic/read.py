"""What ``cosim analyse`` is given: runs with messages, and captures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.captures.contract import CaptureFormat
from cosim.captures.read import read_capture
from cosim.captures.traffic import TrafficCapture, Transfers
from cosim.engine.records import MessageRecords
from cosim.errors import InputError, Location
from cosim.results.store import SUMMARY_FILE
from cosim.results.stored_run import StoredRun, load_run


def read_traffic(path: Path, chosen: CaptureFormat | None = None) -> TrafficCapture:
    """Read a run's folder, or a capture, in a format that is named or in the one that knows it.

    Raises
    ------
    InputError
        Neither, or one that can't be read; a run without messages.
    """
    if chosen is None and (path / SUMMARY_FILE).is_file():
        return capture_of(load_run(path))
    return read_capture(path, chosen)


def capture_of(run: StoredRun) -> TrafficCapture:
    """A run's messages, as a capture would have them.

    Raises
    ------
    InputError
        The run has no messages.
    """
    messages = run.message_records
    if messages is None:
        raise InputError(
            "the run was written without its messages",
            location=Location(str(run.directory)),
            hint="run it again with --set record.messages=npz",
        )
    names, jobs = run.columns["node_name"].tolist(), run.columns["job_name"].tolist()
    return capture_of_messages(str(run.directory), messages, names, jobs)


def capture_of_messages(
    name: str, messages: MessageRecords, node_names: Sequence[str], jobs: Sequence[str]
) -> TrafficCapture:
    """Messages as a capture; hosts are the endpoints that have some."""
    most = int(max(messages.src.max(initial=-1), messages.dst.max(initial=-1))) + 1
    hosts = tuple(node_names[:most]) if len(node_names) >= most else tuple(map(str, range(most)))
    ends = messages.src, messages.dst
    times = messages.start_ps, messages.end_ps
    step = messages.op.astype(np.int64)
    transfers = Transfers(hosts, *ends, messages.size_bytes, *times, messages.job, tuple(jobs), step)
    return TrafficCapture(name, "run", transfers, notes=(f"{len(transfers):,} messages",))
