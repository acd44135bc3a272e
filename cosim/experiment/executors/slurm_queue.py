"""Which of submitit's jobs have ended: those that left what they gave, and those that Slurm has no more.

submitit itself asks Slurm's accounting, which many clusters don't keep, and every ten minutes; without it, it
waits for a job that was killed for ever.
"""

from __future__ import annotations

import getpass
import subprocess
import time
from collections.abc import Collection, Sequence
from typing import Any

from cosim.errors import SimulationError

_ASK_S = 10.0
"""How often Slurm's controller is asked, which serves everybody."""
_ANSWER_S = 60.0
"""A command of Slurm's that takes longer is given up; its own limit is 10 s (MessageTimeout), a few times."""
_GONE = "gone from the queue"
_ENDED = {
    _GONE,
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "DEADLINE", "FAILED", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
"""States of a job that goes on no more, unless it is put into the queue again. COMPLETING may last: it does
until the last process of the job has ended.
"""


class SlurmQueue:
    """Slurm's queue, as seen by one who waits for jobs; ``patience_s``: how long it may not answer."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._asked_s = self._answered_s = time.monotonic()
        self._gone: dict[Any, str] = {}

    def ended(self, jobs: Collection[Any]) -> dict[Any, str]:
        """Those that have ended, each with the state it was last seen in; empty where it left a result.

        Raises
        ------
        SimulationError
            Slurm hasn't answered for too long.
        """
        found = {job: "" for job in jobs if job.paths.result_pickle.exists()}
        if time.monotonic() - self._asked_s < _ASK_S:
            return found
        states = self._states()
        self._asked_s = time.monotonic()
        if states is None:
            return found
        seen = {job: states.get(job.job_id, _GONE) for job in jobs if job not in found}
        gone = {job: state for job, state in seen.items() if state in _ENDED}
        # A result may be seen later than the end of its job, a job be put back: it has to be gone twice.
        found |= {job: state for job, state in gone.items() if job in self._gone}
        self._gone = gone
        return found

    def cancel(self, jobs: Collection[Any]) -> None:
        """Have them go on no more."""
        if jobs:
            _said(["scancel", *(job.job_id for job in jobs)])

    def _states(self) -> dict[str, str] | None:
        """States of all jobs of the user, by id; None where Slurm doesn't say."""
        command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i %T"]
        said = _said([*command, f"--user={getpass.getuser()}"])
        if said.returncode == 0:
            self._answered_s = time.monotonic()
            pairs = (line.split() for line in said.stdout.splitlines())
            return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
        if time.monotonic() - self._answered_s > self._patience_s:
            why = (said.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise SimulationError(
                f"Slurm doesn't answer: {why}; what had ended is in the store, if the sweep has one,\n"
                "  and the same command goes on from there"
            )
        return None


def _said(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What a command of Slurm's says; one that takes too long has failed."""
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=_ANSWER_S)
    except subprocess.TimeoutExpired:
        late = f"{command[0]}: no answer in {_ANSWER_S:g} s"
        return subprocess.CompletedProcess(command, 1, "", late)


class LocalQueue:
    """submitit's jobs that are processes of this machine."""

    def ended(self, jobs: Collection[Any]) -> dict[Any, str]:
        """As :meth:`SlurmQueue.ended`."""
        return {job: "" if job.paths.result_pickle.exists() else str(job.state) for job in jobs if job.done()}

    def cancel(self, jobs: Collection[Any]) -> None:
        """As :meth:`SlurmQueue.cancel`."""
        for job in jobs:
            job.cancel()
