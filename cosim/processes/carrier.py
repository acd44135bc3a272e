"""Carriers: code that gives the messages of a collective while the run goes on.

::

    class Star(Carrier):
        '''All-reduce over the first rank: it gathers what all have, then sends everybody the sum'''

        name: ClassVar[str] = "star"
        carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})
        checks_data: ClassVar[bool] = True

        def carry(self, sim, collective):
            first, *others = range(collective.num_ranks)
            ends, whole = collective.endpoints, (0, collective.size_bytes)
            come = []
            for rank in others:
                yield collective.arrival(rank)
                come.append(collective.send(ends[rank], ends[first], whole, adds=True))
            yield sim.all_of([collective.arrival(first), *come])
            collective.through(first)
            for rank in others:
                yield collective.send(ends[first], ends[rank], whole)
                collective.through(rank)

Its flows are started by the engine, one by one, whoever releases those of templates. So they are the same in
this process and behind gRPC.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar

from simpy.events import Event

from cosim.errors import AlgorithmError, InputError
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template
from cosim.processes.ledger import Ledger
from cosim.processes.waiting import WorkEvent

if TYPE_CHECKING:
    from cosim.processes.carrying import Carrying
    from cosim.processes.simulation import Simulation
    from cosim.topology.graph import Topology


class Carrier(Algorithm):
    """Base of algorithms that decide as the run goes on; with ``checks_data`` all that they send is proved.

    ``endpoint_delay``, ``reduction_rate`` and ``splits`` of a scenario's ``collectives`` don't act on it.
    """

    carried: ClassVar[bool] = True
    splits: ClassVar[bool] = False

    @abstractmethod
    def carry(self, sim: Simulation, collective: Carried) -> Generator[Event, Any, Any]:
        """The process that carries one collective; it begins when the group's first rank comes to it."""

    def prove(self, collective: Collective, num_ranks: int, size_bytes: int, *, root: int = 0) -> str:
        """See :meth:`Algorithm.prove`: it can't be proved but in a run.

        Raises
        ------
        InputError
            Always.
        """
        del collective, num_ranks, size_bytes, root
        raise InputError(
            f"{self.name} gives its messages while a run goes on, which proves what they carry",
            hint="a run's notes say what it could not prove",
        )

    def build(
        self,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        costs: Costs,
        *,
        reverse: bool = False,
        chunk: int = 0,
        root: int = 0,
    ) -> Template:
        """See :meth:`Algorithm.build`: there is no template.

        Raises
        ------
        AlgorithmError
            Always.
        """
        del size_bytes, costs, reverse, chunk, root
        self.check(collective, num_ranks)
        raise AlgorithmError(
            f"{self.name} gives its messages while a run goes on: there is no list of them beforehand",
            hint="it carries whole groups of a run; it can't be one of a list, nor exported",
        )


class Carried:
    """A collective under way, as its carrier sees it. Ranks go by their position in the group.

    Attributes
    ----------
    kind
        Which collective.
    size_bytes
        As :class:`cosim.plugins.Collective` counts them.
    root
        Position of a broadcast's root.
    ranks
        Of the job, in the order of the group.
    endpoints
        Where they are: numbers of nodes.
    job, iteration
        Numbers of the job and of its iteration.
    """

    def __init__(
        self,
        carrying: Carrying,
        met: int,
        carrier: Carrier,
        kind: Collective,
        size_bytes: int,
        root: int,
        job: int,
        iteration: int,
        ranks: tuple[int, ...],
        endpoints: tuple[int, ...],
    ) -> None:
        self._carrying, self._met = carrying, met
        self._name = carrier.name
        self.kind, self.size_bytes, self.root = kind, size_bytes, root
        self.job, self.iteration, self.ranks, self.endpoints = job, iteration, ranks, endpoints
        self.num_messages = 0
        """That it has sent so far."""
        self._arrivals = [carrying.sim.event() for _ in ranks]
        self._left = {*range(len(ranks))}
        self._ledger = Ledger(kind, size_bytes, root, endpoints) if carrier.checks_data else None

    def __repr__(self) -> str:
        return f"<{self.kind.value} of {self.size_bytes} bytes by {self._name} over {len(self.ranks)} ranks>"

    @property
    def num_ranks(self) -> int:
        """Ranks of the group."""
        return len(self.ranks)

    @property
    def topology(self) -> Topology:
        """Where all this is."""
        return self._carrying.topology

    @property
    def is_over(self) -> bool:
        """Whether every rank is through."""
        return not self._left

    def shared(self, key: object, make: Callable[[], Any]) -> Any:
        """What all collectives of the run share under a key, made by whoever asks first."""
        kept = self._carrying.shared
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def arrival(self, position: int) -> Event:
        """An event: this rank has come to the collective."""
        return self._arrivals[position]

    def came(self, position: int) -> None:
        """A rank has come: the engine says so."""
        self._arrivals[position].succeed()

    def send(
        self,
        src: int,
        dst: int,
        part: tuple[int, int],
        *,
        channel: int = 0,
        adds: bool = False,
        streams: bool = False,
    ) -> WorkEvent:
        """Send a part of the data now: an event, which happens when its last byte has come.

        Parameters
        ----------
        src, dst
            Nodes: endpoints, or switches of topologies whose routing goes by tables.
        part
            First byte, and first byte behind it, of the data of all ranks: of a buffer of ``size_bytes``
            where all have the same; where each has its own (all-gather, all-to-all) rank p's begins at
            ``p * size_bytes``.
        channel
            What is sent from one node to another on one channel goes in order.
        adds
            The receiver adds it to what it has gathered. Else it is a result, which is handed on as it is.
        streams
            It is sent while it comes in: the source need not have all of it yet, but must have had it when a
            rank that gets it is through.

        Raises
        ------
        AlgorithmError
            Bytes that the collective does not have, a node that is none, or after all ranks were through.
        """
        begin, end = part
        nodes = self.topology.num_nodes
        if not (0 <= src < nodes and 0 <= dst < nodes and src != dst):
            raise AlgorithmError(
                f"{self._name}: sends from node {src} to node {dst}; nodes are 0 to {nodes - 1}"
            )
        if not 0 <= begin <= end:
            raise AlgorithmError(f"{self._name}: there are no bytes {begin} to {end}")
        if not self._left:
            raise AlgorithmError(f"{self._name}: sends after all its ranks were through")
        event = self._carrying.send(self, self._met, src, dst, end - begin, channel)
        self.num_messages += 1
        if self._ledger is not None and begin < end:
            assert event.callbacks is not None
            event.callbacks.append(self._ledger.sent(src, dst, begin, end, adds=adds, streams=streams))
        return event

    def through(self, position: int) -> None:
        """A rank has all that the collective promises it: it is done with it now.

        Raises
        ------
        AlgorithmError
            It has not come yet, was through before, or does not have it.
        """
        if position not in self._left:
            raise AlgorithmError(
                f"{self._name}: position {position} is through twice, or is none of the group"
            )
        if self._ledger is not None and (wrong := self._ledger.lacks(position)):
            raise AlgorithmError(f"{self._name}: {self.kind.value}: rank {self.ranks[position]} {wrong}")
        self._left.discard(position)
        self._carrying.through(self, self._met, position)
