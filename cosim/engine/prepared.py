"""Runs that begin in one state: what is made before a run is made once; each runs on a copy in the kernel.

A first run says what the loop asks of Python on the way: groups, plans, what iterations are called. A second
one has all that before it begins, and never runs: it is the state that others are copies of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.engine import Asked
from cosim.engine.records import Records
from cosim.engine.replay import Replay
from cosim.kernel import Columns, kernel, record
from cosim.network.compiled import CompiledNetwork
from cosim.network.flows import I64


class PreparedColumns(Columns):
    """Runs, and what they run on, as the kernel has them."""

    container = "prepared"


class RunPlaces:
    """Numbers of the network's columns in which runs differ.

    ``columns[k]`` is (column, field, rows of it): the numbers of these rows follow those of the one before.
    """

    def __init__(self, columns: Sequence[tuple[str, str, int]] = ()) -> None:
        self.columns = tuple(columns)
        self.count = sum(rows for _, _, rows in self.columns)


@dataclass(frozen=True, eq=False, slots=True)
class Outcomes:
    """What came of runs. ``status`` is 0 where a run went through. ``ends_ps`` int64[runs, iterations of all
    jobs]: when each ended on its last rank.
    """

    status: I64
    end_ps: I64
    messages: I64
    digest: NDArray[np.uint64]
    """[runs, 2]"""
    ends_ps: I64


class PreparedReplay:
    """A replay that is ready to begin.

    ``make`` gives a fresh one each time, that is the same. One is run here, which may raise as
    :func:`~cosim.engine.replay.replay` does; ``records`` are what came of it.
    """

    def __init__(self, make: Callable[[], Replay]) -> None:
        first = make()
        asked: list[Asked] = []
        first.engine.asked = asked
        try:
            self.records: Records = first.run()
        finally:
            first.close()
        if self.records.interrupted:
            raise KeyboardInterrupt
        self._replay = make()
        self._replay.begin()
        self.network = self._replay.network
        """The network, on which nothing is sent."""
        engine = self._replay.engine
        self.is_ready = isinstance(self.network, CompiledNetwork) and all(map(engine.answer_before, asked))
        """Whether runs need nothing of Python, as far as the first one shows."""

    def copy(self, places: RunPlaces) -> RunCopy:
        """What one thread runs on."""
        assert isinstance(self.network, CompiledNetwork)
        return RunCopy(self._replay, self.network, places)


class RunCopy:
    """Runs one run after another; of one thread at a time."""

    def __init__(self, replay: Replay, network: CompiledNetwork, places: RunPlaces) -> None:
        self._source = replay  # the state that each run begins in
        parts: list[tuple[int, int, int, int]] = []
        engine = _copied(replay.engine.columns, parts)
        core = _copied(network.core, parts)
        columns = _copied(network.columns, parts)
        self._core, self._columns = core, columns
        given = [
            one for column, field, rows in places.columns for one in _places(columns, column, field, rows)
        ]
        jobs = replay.engine.columns.jobs[: replay.engine.columns.used("jobs")]
        self._iterations = int(jobs["iterations"].sum())
        self._prepared = PreparedColumns(
            engine=engine,
            loop=network.entry,
            core=core.address,
            columns=columns.address,
            copied=np.array(parts, record("copied_part")),
            places=np.array(given, record("run_place")),
        )

    def run(self, starts_ps: I64, numbers: I64) -> Outcomes:
        """Run all: jobs start at ``starts_ps`` [runs, jobs], the numbers of places are ``numbers`` [runs,
        places], bit by bit. Other threads run meanwhile.
        """
        count, prepared = len(starts_ps), self._prepared
        if count != len(prepared.outcomes):
            prepared.put(
                starts=np.empty(starts_ps.shape, np.int64),
                numbers=np.empty(numbers.shape, np.int64),
                ends=np.zeros((count, self._iterations), np.int64),
                outcomes=np.zeros(count, record("run_outcome")),
            )
        prepared.starts[:], prepared.numbers[:] = starts_ps, numbers
        kernel.run_prepared(prepared, 0, count)
        found = prepared.outcomes.copy()
        return Outcomes(
            found["status"], found["end"], found["messages"], found["digest"], prepared.ends.copy()
        )


def _places(columns: Columns, column: str, field: str, rows: int) -> Iterator[tuple[int, int]]:
    known = type(columns).fields()[column]
    dtype = known.dtype
    offset = dtype.fields[field][1] if field else 0  # type: ignore[index]
    for row in range(rows):
        yield columns.address + 8 * known.place, row * dtype.itemsize + offset


def _copied(columns: Columns, parts: list[tuple[int, int, int, int]]) -> Columns:
    """A container of its own with all that is in one, the containers within it too; and how it is copied."""
    fields = type(columns).fields()
    own = vars(columns)
    held = {name: own[name] for name, field in fields.items() if field.kind in _HELD and name in own}
    given = {
        name: _copied(one, parts) if isinstance(one, Columns) else one.copy() for name, one in held.items()
    }
    copied = columns.copy(**given)
    for name, field in fields.items():
        one, other = columns.address + 8 * field.place, copied.address + 8 * field.place
        if field.kind == "grown":
            parts.append((one, other, field.dtype.itemsize, kernel.COPY_GROWN))
        elif field.kind in ("column", "grid") and name in held:
            parts.append((one, other, held[name].nbytes, kernel.COPY_ARRAY))
        elif field.kind in ("record", "number"):
            parts.append((one, other, field.dtype.itemsize, kernel.COPY_WORDS))
    return copied


_HELD = "column", "grid", "part"
