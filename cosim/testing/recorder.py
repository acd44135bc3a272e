"""Recorder and player: what a network was asked and answered, and the same answers again.

A :class:`Recorder` stands in front of a network and keeps every ``advance`` in memory. A :class:`Player`
stands in for the network and answers from the recording, as long as it is asked the same; the first thing
that is asked differently is an error that names it. So two runs that should be the same can be compared
where they part, and a caller can be tested without a network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from cosim.errors import NetworkError
from cosim.network.flows import FlowBatch, FlowGroup, FlowTable
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One ``advance``: what was asked, and the answer."""

    flows: FlowBatch
    horizon_ps: int
    answer: Advance


@dataclass(eq=False)
class Recording:
    """Every call since ``open``, and the last statistics that were asked for."""

    capabilities: Capabilities
    calls: list[Call] = field(default_factory=list)
    statistics: NetworkStatistics | None = None


class Recorder(ForwardingNetwork):
    """``inner``, with every call kept in ``recording``.

    Examples
    --------
    A recording answers as the network did, without it:

    >>> from cosim.network.fair_share import FairShareNetwork
    >>> from cosim.network.flows import FlowBatch
    >>> from cosim.testing import star
    >>> network = Recorder(FairShareNetwork())
    >>> network.open(star())
    >>> network.advance(FlowBatch(), 1000).granted_ps
    1000
    >>> player = Player(network.recording)
    >>> player.open(star())
    >>> player.advance(FlowBatch(), 1000).granted_ps
    1000
    >>> player.advance(FlowBatch(), 2000)
    Traceback (most recent call last):
    ...
    cosim.errors.NetworkError: call 1 is beyond the 1 that were recorded
    """

    def __init__(self, inner: NetworkSimulator) -> None:
        super().__init__(inner)
        self.recording = Recording(inner.describe())

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        answer = self.inner.advance(flows, horizon_ps)
        self.recording.calls.append(Call(flows, horizon_ps, answer))
        return answer

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self.recording.statistics = self.inner.statistics()
        return self.recording.statistics


class Player(NetworkSimulator):
    """A network that answers from a recording, and refuses what wasn't asked then. See :class:`Recorder`."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._next = 0

    def describe(self) -> Capabilities:
        """What the recorded network could do, but peek."""
        return replace(self._recording.capabilities, peek=False)

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Go to the start of the recording; it holds no topology to compare."""
        del topology, seed, options
        self._next = 0

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """The recorded answer.

        Raises
        ------
        NetworkError
            Something else is asked than was recorded; names the first difference.
        """
        number = self._next
        if number == len(self._recording.calls):
            raise NetworkError(f"call {number} is beyond the {number} that were recorded")
        call = self._recording.calls[number]
        for what, asked, recorded in _differences(flows, horizon_ps, call):
            raise NetworkError(f"call {number} differs: {what} is {asked}, recorded was {recorded}")
        self._next += 1
        return call.answer

    def statistics(self) -> NetworkStatistics:
        """The last statistics that were recorded.

        Raises
        ------
        NetworkError
            None were.
        """
        if self._recording.statistics is None:
            raise NetworkError("no statistics were recorded")
        return self._recording.statistics

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""


def _differences(flows: FlowBatch, horizon_ps: int, call: Call) -> Iterator[tuple[str, object, object]]:
    """(what, asked, recorded); starts and groups are compared as sets, for their order means nothing."""
    asked = {group.handle: group for group in flows.groups}
    recorded = {group.handle: group for group in call.flows.groups}
    if sorted(asked) != sorted(recorded):
        yield "the handles of new groups", sorted(asked), sorted(recorded)
        return
    for handle in sorted(asked):
        yield from _group_differences(asked[handle], recorded[handle])
    ours, theirs = _starts(flows), _starts(call.flows)
    if len(ours) != len(theirs):
        yield "the number of starts", len(ours), len(theirs)
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            yield "a start (handle, index, start_ps, cause_ps)", one, other
    if horizon_ps != call.horizon_ps:
        yield "the horizon", f"{horizon_ps} ps", f"{call.horizon_ps} ps"


def _starts(flows: FlowBatch) -> list[tuple[int, int, int, int]]:
    columns = (flows.start_handle, flows.start_index, flows.start_ps, flows.cause_ps)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def _group_differences(asked: FlowGroup, recorded: FlowGroup) -> Iterator[tuple[str, object, object]]:
    for name in (f.name for f in fields(FlowGroup)):
        one, other = getattr(asked, name), getattr(recorded, name)
        if name == "table":
            yield from _table_differences(asked.handle, one, other)
        elif not np.array_equal(one, other):
            yield f"{name} of group {asked.handle}", one, other


def _table_differences(
    handle: int, asked: FlowTable, recorded: FlowTable
) -> Iterator[tuple[str, object, object]]:
    if asked is recorded:
        return
    for name in (f.name for f in fields(FlowTable)):
        one, other = np.asarray(getattr(asked, name)), np.asarray(getattr(recorded, name))
        if not np.array_equal(one, other):
            yield f"{name} in the table of group {handle}", one.tolist(), other.tolist()
