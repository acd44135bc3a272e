"""The flow desk: where the engine opens flow groups and starts flows, whoever releases the dependents."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from cosim.engine.ledger import Ledger, Reaction
from cosim.network.flows import I32, I64, Completions, FlowGroup, FlowTable, flat_table
from cosim.network.outbox import Outbox
from cosim.network.releaser import Releaser
from cosim.network.store import COMPLETED, STARTED
from cosim.pattern.template import Template
from cosim.units import NEVER

Release = Literal["network", "engine"]


class Owner(Protocol):
    """Who is told of the flows in a group that the engine waits for."""

    def arrived(self, index: int, now: int, cause: int) -> None:
        """A flow that the engine waits for completed now: an exit's rank, or 0 for a message.

        That became certain at ``cause``.
        """


def lookahead(template: Template) -> I64:
    """For each row, the least delay of a dependent: no sooner does the engine react to a completion."""
    reaction = np.full(len(template.src), NEVER, np.int64)
    rows = np.repeat(np.arange(len(template.src)), np.diff(template.dep_ptr))
    done = template.dep_kind == COMPLETED
    # A dependent row names a distance, and through repeats several rows may lie at it: take the least
    # delay of all for each row's block-independent bound.
    least = int(template.delay_ps[rows[done]].min()) if done.any() else NEVER
    reaction[:] = least
    reaction[int(template.block_row[-2]) :] = 0
    return reaction


class Desk:
    """Opens groups, starts flows, takes completions; keeps handles small by using them again."""

    def __init__(self, outbox: Outbox, ledger: Ledger, release: Release) -> None:
        self._outbox = outbox
        self._ledger = ledger
        self._releaser = Releaser() if release == "engine" else None
        self._tables: dict[int, tuple[Template, FlowTable]] = {}
        self._messages: dict[int, FlowTable] = {}
        self._owners: list[Owner | None] = []
        self._free: list[int] = []
        self._unfinished: dict[int, int] = {}
        self._closing: dict[int, list[int]] = {}
        self.engine_released = release == "engine"

    def _handle(self, owner: Owner) -> int:
        if self._free:
            handle = self._free.pop()
            self._owners[handle] = owner
        else:
            handle = len(self._owners)
            self._owners.append(owner)
        # Two must let go of a handle: the network (every flow reported), and the owner (told of each).
        self._unfinished[handle] = 2
        return handle

    def _table(self, template: Template) -> FlowTable:
        known = self._tables.get(id(template))
        if known is not None:
            return known[1]
        if self.engine_released:
            reaction = lookahead(template)
        else:
            reaction = np.full(len(template.src), NEVER, np.int64)
            reaction[int(template.block_row[-2]) :] = 0
        table = FlowTable(
            num_participants=template.num_participants,
            src=template.src,
            dst=template.dst,
            size_bytes=template.bytes,
            channel=template.channel,
            delay_ps=template.delay_ps,
            reaction_ps=reaction,
            dep_ptr=template.dep_ptr,
            dep_distance=template.dep_distance,
            dep_kind=template.dep_kind,
            block_row=template.block_row,
            block_repeat=template.block_repeat,
        )
        self._tables[id(template)] = (template, table)
        return table

    def open_template(
        self, owner: Owner, template: Template, endpoints: I32, key: tuple[int, int], **traits: object
    ) -> int:
        """Open an instance of a template whole; the owner hears of its exits, by rank."""
        handle = self._handle(owner)
        group = FlowGroup(
            handle,
            self._table(template),
            endpoints,
            key,
            release="caller" if self.engine_released else "network",
            **traits,  # type: ignore[arg-type]
        )
        self._ledger.open(group, template.exit_base)
        self._outbox.open(group)
        if self._releaser is not None:
            self._releaser.open(group)
        return handle

    def open_message(
        self,
        owner: Owner,
        endpoints: I32,
        size_bytes: int,
        key: tuple[int, int],
        **traits: object,
    ) -> int:
        """Open a single message; the owner hears of its arrival."""
        table = self._messages.get(size_bytes)
        if table is None:
            table = self._messages[size_bytes] = flat_table([0], [1], [size_bytes])
        handle = self._handle(owner)
        group = FlowGroup(handle, table, endpoints, key, release="caller", **traits)  # type: ignore[arg-type]
        self._ledger.open(group, 0)
        self._outbox.open(group)
        return handle

    def start(self, handle: int, index: int, now: int, cause: int) -> None:
        """Start a given flow of a group, a rank's arrival or a message, now; certain since ``cause``."""
        self._outbox.start(handle, index, now, cause)
        if self._releaser is not None and self._is_template(handle):
            one = np.array([handle], np.int32), np.array([index], np.int64), np.array([now], np.int64)
            self._send(self._releaser.feed(*one, STARTED))

    def _is_template(self, handle: int) -> bool:
        return self._ledger.react_from(handle) > 0

    def _send(self, released: list[tuple[I32, I64, I64, I64]]) -> None:
        for columns in released:
            self._outbox.start_many(*columns)

    def take(self, completions: Completions) -> Reaction:
        """Count completions; what the engine has to do about them, and when."""
        reaction, closed = self._ledger.fold(completions)
        if self._releaser is not None:
            reaction = Reaction(
                completions.handle, completions.index, completions.time_ps, completions.since()
            )
        for handle in closed:
            if self._releaser is not None and self._is_template(handle):
                # Flows that no exit waits for may be the last: dependents are released at their times first.
                last = int(completions.time_ps[completions.handle == handle].max())
                self._closing.setdefault(last, []).append(handle)
            else:
                self._let_go(handle)
        return reaction

    def react(self, reaction: Reaction, now: int) -> None:
        """Do what completions at ``now`` call for: release dependents, tell owners."""
        handles, indices, causes = reaction.handle, reaction.index, reaction.cause_ps
        first = self._ledger.react_from_of(handles)
        if self._releaser is not None:
            inner = first > 0
            if inner.any():
                self._send(
                    self._releaser.feed(handles[inner], indices[inner], reaction.time_ps[inner], COMPLETED)
                )
            waited = indices >= first
            handles, indices, first, causes = handles[waited], indices[waited], first[waited], causes[waited]
        if len(handles) > 1:  # a network reports in no particular order, but queues are first come
            order = self._ledger.by_key(handles, indices)
            handles, indices, first, causes = handles[order], indices[order], first[order], causes[order]
        columns = handles.tolist(), (indices - first).tolist(), causes.tolist()
        for handle, index, cause in zip(*columns, strict=True):
            owner = self._owners[handle]
            assert owner is not None
            owner.arrived(index, now, cause)
        for handle in self._closing.pop(now, ()):
            self._let_go(handle)

    def finish(self, handle: int) -> None:
        """The owner has been told all that it waits for."""
        self._let_go(handle)

    def _let_go(self, handle: int) -> None:
        self._unfinished[handle] -= 1
        if self._unfinished[handle] == 0:
            del self._unfinished[handle]
            self._owners[handle] = None
            self._free.append(handle)
            if self._releaser is not None and self._is_template(handle):
                self._releaser.close(handle)
