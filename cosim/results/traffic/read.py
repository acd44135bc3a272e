"""What ``cosim analyse`` is given: runs with messages, and captures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cosim.captures.read import read_capture
from cosim.captures.traffic import Capture, Transfers
from cosim.errors import InputError, Location
from cosim.results.store import SUMMARY_FILE
from cosim.results.stored_run import StoredRun, load_run


def read_traffic(path: Path) -> Capture:
    """Read a run's folder or a capture.

    Raises
    ------
    InputError
        Neither, or one that can't be read; a run without messages.
    """
    if (path / SUMMARY_FILE).is_file():
        return capture_of(load_run(path))
    return read_capture(path)


def capture_of(run: StoredRun) -> Capture:
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
    names = run.columns["node_name"]
    most = int(max(messages.src.max(initial=-1), messages.dst.max(initial=-1))) + 1
    hosts = tuple(names[:most].tolist()) if len(names) >= most else tuple(map(str, range(most)))
    jobs = tuple(run.columns["job_name"].tolist())
    transfers = Transfers(
        hosts,
        messages.src,
        messages.dst,
        messages.size_bytes,
        messages.start_ps,
        messages.end_ps,
        messages.job,
        jobs,
        messages.op.astype(np.int64),
    )
    return Capture(str(run.directory), "run", transfers, notes=(f"{len(transfers):,} messages",))
