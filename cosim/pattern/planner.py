"""The planner: collectives in, plans out; every template proved before it is handed out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from cosim.answers import check_answer, is_foreign
from cosim.context import HERE, Context
from cosim.errors import AlgorithmError
from cosim.pattern.assemble import alone
from cosim.pattern.config import CollectiveConfig, one_algorithm
from cosim.pattern.contract import Algorithm
from cosim.pattern.happens_before import RACE_LIMIT
from cosim.pattern.hierarchical import Queues, chunk_sizes, phases, sub_groups
from cosim.pattern.plan import FIRST, Phase, Plan, Turn
from cosim.pattern.prove import prove
from cosim.pattern.template import I32, Collective, Template, has_data
from cosim.topology.graph import Topology
from cosim.topology.host_shape import HostShape

if TYPE_CHECKING:
    from cosim.pattern.group_links import GroupLinks

_ONE_GROUP = (Collective.BROADCAST, Collective.BARRIER, Collective.SEND_RECV)
"""Collectives that run over the whole group, never by dimension."""


def _each(chosen: Algorithm | tuple[Algorithm, ...]) -> tuple[Algorithm, ...]:
    return chosen if isinstance(chosen, tuple) else (chosen,)


_PROVED: set[tuple[object, ...]] = set()
"""Structures proved in this process: a sweep proves each of them once."""


class Planner:
    """Plans of one ``collectives:`` section, cached; templates are shared by plans.

    A template's proof is kept by (algorithm, collective, ranks, direction, variant, root), for as long as the
    process runs: sizes and delays don't change which message carries what. Algorithms read from files are
    proved again by each planner; their paths start from ``context.base``. On ``hosts`` with NVLink,
    collectives that the section doesn't name are NCCL's.
    """

    def __init__(
        self,
        config: CollectiveConfig | None = None,
        context: Context = HERE,
        hosts: HostShape | None = None,
        topology: Topology | None = None,
    ) -> None:
        self.config = config if config is not None else CollectiveConfig()
        self._given = self.config, hosts
        self._topology = topology
        if hosts is not None:
            self.config = self.config.on_hosts(hosts)
        costs = self.config.costs
        self._costs = costs if hosts is None else replace(costs, link_latency_ps=hosts.link_latency_ps)
        self.context = context
        self._read: dict[Algorithm, Algorithm] = {}
        """Algorithms as their files have them."""
        self._links: dict[tuple[int, ...], GroupLinks] = {}
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._templates: dict[tuple[object, ...], Template] = {}
        self.unchecked: set[tuple[str, str]] = set()
        """(Collective, template) of what was planned, but of whose data nothing is proved."""
        self.unstated: set[tuple[str, str]] = set()
        """The same of code that carries a collective, and doesn't say what its messages carry."""
        self._proved: set[tuple[object, ...]] = set()
        """What was read from files and proved."""

    def plan(
        self,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        *,
        root: int = 0,
        dims: tuple[int, ...] | None = None,
        turn: Turn = FIRST,
        endpoints: tuple[int, ...] | None = None,
    ) -> Plan:
        """The plan of one operation.

        Parameters
        ----------
        collective, num_ranks, size_bytes
            What is to be done, as :class:`~cosim.pattern.template.Collective` counts bytes.
        root
            Position of a broadcast's root.
        dims
            Sizes per dimension where the group is a full grid (dimension 0 varies fastest); needed where the
            configuration lists an algorithm for each dimension.
        turn
            Where the plan of the group's operation before this one stopped.
        endpoints
            Of the group's ranks, for algorithms that go by links.

        Raises
        ------
        AlgorithmError
            The configured algorithm can't do this, or is wrong.
        """
        where = endpoints if self.by_links(collective) else None
        key = (collective, num_ranks, size_bytes, root, dims, turn, where)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._make(collective, num_ranks, size_bytes, root, dims, turn, where)
        return plan

    @property
    def goes_by_hosts(self) -> bool:
        """Whether an algorithm of the section may be another one on other hosts."""
        return any(
            type(one).on_hosts is not Algorithm.on_hosts or is_foreign(type(one))
            for collective in Collective
            for one in _each(self.config.choice(collective))
        )

    def by_links(self, collective: Collective) -> bool:
        """Whether plans of a collective depend on which endpoints its group has."""
        return any(each.by_links() for each in _each(self.config.choice(collective)))

    def with_algorithm(self, collective: str, algorithm: str | Algorithm) -> Planner:
        """A planner of the same section, where an algorithm carries a collective.

        Raises
        ------
        AlgorithmError
            There is no such algorithm.
        """
        config, hosts = self._given
        try:
            chosen = one_algorithm(algorithm, self.context.base)
        except ValueError as error:
            said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise AlgorithmError(f"{collective}: {said.removeprefix('Value error, ')}") from None
        other = Planner(config.model_copy(update={collective: chosen}), self.context, hosts, self._topology)
        other.unchecked, other.unstated = self.unchecked, self.unstated
        return other

    def _make(
        self,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        root: int,
        dims: tuple[int, ...] | None,
        turn: Turn,
        endpoints: tuple[int, ...] | None,
    ) -> Plan:
        if num_ranks < 1 or size_bytes < 0 or not 0 <= root < num_ranks:
            raise AlgorithmError(
                f"{collective.value}: {num_ranks} ranks, {size_bytes} bytes, root {root} can't be meant"
            )
        config = self.config
        chosen = self._on_links(config.choice(collective), collective, num_ranks, size_bytes, endpoints)
        chosen = self._placed(chosen, collective, num_ranks, size_bytes, dims)
        active = -(-config.active_chunks // config.queues)
        if num_ranks == 1:
            phase = Phase(alone(collective, size_bytes), 0, np.zeros((1, 1), np.int32))
            return Plan(collective, 1, size_bytes, "alone", ((phase,),), active, config.queues, turn)
        algorithms, shape = self._by_dimension(chosen, collective, num_ranks, dims)
        if len(algorithms) == 1 and algorithms[0].carried:
            return self._carried(algorithms[0], collective, num_ranks, size_bytes, turn)
        if all(algorithm.splits for algorithm in algorithms):
            sizes = chunk_sizes(collective, num_ranks, size_bytes, config.splits, self._costs)
        else:  # it has chunks of its own
            sizes = [size_bytes]
        queues = Queues(len(shape), config.queues, turn)
        groups = [sub_groups(shape, dim) for dim in range(len(shape))]
        # Chunks of all-reduces take the variants of an algorithm in turns, from one operation to the next.
        variants = math.lcm(*(algorithm.variants for algorithm in algorithms))
        first = turn.variant if collective is Collective.ALL_REDUCE else 0
        chunks = [
            self._phases(algorithms, collective, shape, size, queues, groups, number, root)
            for number, size in enumerate(sizes, first)
        ]
        name = "+".join(algorithm.name for algorithm in algorithms)
        after = (first + len(sizes)) % variants if collective is Collective.ALL_REDUCE else turn.variant
        return Plan(
            collective,
            num_ranks,
            size_bytes,
            name,
            tuple(chunks),
            active,
            queues.count * queues.num_dims,
            Turn(queues.places(), after),
        )

    def _carried(
        self, algorithm: Algorithm, collective: Collective, num_ranks: int, size_bytes: int, turn: Turn
    ) -> Plan:
        """The plan of what code carries."""
        algorithm.check(collective, num_ranks)
        if not algorithm.checks_data:
            self.unstated.add((collective.value, algorithm.name))
        return Plan(collective, num_ranks, size_bytes, algorithm.name, (), 1, 1, turn, algorithm)

    def _phases(
        self,
        algorithms: Sequence[Algorithm],
        collective: Collective,
        shape: tuple[int, ...],
        size_bytes: int,
        queues: Queues,
        groups: Sequence[I32],
        chunk: int,
        root: int,
    ) -> tuple[Phase, ...]:
        """What one chunk goes through, dimension by dimension."""
        baseline = self.config.optimization == "baseline"
        steps = phases(collective, shape, size_bytes, queues, self._costs, baseline=baseline)
        made = []
        for step in steps:
            dim, size = step.dim, step.size_bytes
            template = self._template(
                algorithms[dim], step.collective, shape[dim], size, step.reverse, chunk, root
            )
            made.append(Phase(template, step.queue, groups[dim]))
        return tuple(made)

    def _on_links(
        self,
        chosen: Algorithm | tuple[Algorithm, ...],
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        endpoints: tuple[int, ...] | None,
    ) -> Algorithm | tuple[Algorithm, ...]:
        """What an algorithm that goes by links makes of the group's; on no topology it is what it is."""
        if num_ranks == 1 or self._topology is None or not self.by_links(collective):
            return chosen
        if isinstance(chosen, tuple) and len(chosen) == 1:
            chosen = chosen[0]
        if isinstance(chosen, tuple):
            raise AlgorithmError(
                f"collectives.{collective.value} lists algorithms by dimension, and one that goes by links "
                "carries the whole group: name it alone"
            )
        if endpoints is None:
            raise AlgorithmError(f"{chosen.name} goes by links, and where the group's ranks are isn't known")
        if endpoints not in self._links:
            from cosim.pattern.group_links import group_links

            self._links[endpoints] = group_links(self._topology, endpoints)
        chosen.check(collective, num_ranks)
        return chosen.on_links(self._links[endpoints], collective, size_bytes)

    @staticmethod
    def _placed(
        chosen: Algorithm | tuple[Algorithm, ...],
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        dims: tuple[int, ...] | None,
    ) -> Algorithm | tuple[Algorithm, ...]:
        """What a single algorithm makes of this group; those of a list see one dimension each anyway."""
        if isinstance(chosen, tuple) or num_ranks == 1:
            return chosen
        return chosen.placed(collective, num_ranks, size_bytes, dims)

    def _by_dimension(
        self,
        chosen: Algorithm | tuple[Algorithm, ...],
        collective: Collective,
        num_ranks: int,
        dims: tuple[int, ...] | None,
    ) -> tuple[Sequence[Algorithm], tuple[int, ...]]:
        """The algorithm and the size of each dimension; one algorithm for all makes one dimension."""
        if dims is not None and int(np.prod(dims, dtype=np.int64)) != num_ranks:
            raise AlgorithmError(f"dimensions {dims} don't multiply to the group's {num_ranks} ranks")
        if not isinstance(chosen, tuple):
            return (chosen,), (num_ranks,)
        if len(chosen) == 1 and (dims is None or len(dims) == 1):
            return chosen, (num_ranks,)
        listed = ", ".join(algorithm.name for algorithm in chosen)
        if collective in _ONE_GROUP:
            raise AlgorithmError(
                f"collectives.{collective.value} lists algorithms by dimension ({listed})",
                hint=f"{collective.value} runs over the whole group: name one",
            )
        if dims is None:
            raise AlgorithmError(
                f"collectives.{collective.value} lists algorithms by dimension ({listed}), but a group of "
                f"{num_ranks} ranks isn't a full grid of the topology's dimensions",
                hint="name one algorithm instead of a list, or place the group on whole dimensions",
            )
        if len(dims) != len(chosen):
            raise AlgorithmError(
                f"collectives.{collective.value} lists {len(chosen)} algorithms ({listed}), but there are "
                f"{len(dims)} dimensions: {' x '.join(map(str, dims))}",
                hint="name one for each dimension, dimension 0 first, or a single one for the whole group",
            )
        return chosen, dims

    def _template(
        self,
        algorithm: Algorithm,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        reverse: bool,
        chunk: int,
        root: int,
    ) -> Template:
        structure = (algorithm, collective, num_ranks, reverse, chunk % algorithm.variants, root)
        key = (*structure, size_bytes)
        template = self._templates.get(key)
        if template is None:
            if algorithm not in self._read:
                self._read[algorithm] = algorithm.read(self.context)
            read = self._read[algorithm]
            template = self._build(read, collective, num_ranks, size_bytes, reverse, chunk, root)
            # A file may change while the process runs, so that its proof is this planner's alone.
            proved = _PROVED if read is algorithm else self._proved
            if structure not in proved:
                # In a large one nobody looks for races: they show in a small one of the same kind.
                if template.num_chunks and template.num_flows > RACE_LIMIT:
                    self._prove_small(read, collective, num_ranks, reverse, chunk, root)
                prove(template)
                proved.add(structure)
            if not (has_data(template) or read.checks_data):
                self.unchecked.add((collective.value, template.name))
            self._templates[key] = template
        return template

    def _build(
        self,
        algorithm: Algorithm,
        collective: Collective,
        num_ranks: int,
        size_bytes: int,
        reverse: bool,
        chunk: int,
        root: int,
    ) -> Template:
        template = algorithm.build(
            collective, num_ranks, size_bytes, self._costs, reverse=reverse, chunk=chunk, root=root
        )
        check_answer(algorithm, "build", template, Template)
        return template

    def _prove_small(
        self,
        algorithm: Algorithm,
        collective: Collective,
        num_ranks: int,
        reverse: bool,
        chunk: int,
        root: int,
    ) -> None:
        """Prove the same algorithm on a group small enough for the prover to look at all orders."""
        for few in (8, 4, 2):
            if few < num_ranks:
                alike = algorithm.on_few(num_ranks, few)
                small = self._build(alike, collective, few, few, reverse, chunk, root % few)
                if small.num_flows <= RACE_LIMIT:
                    prove(small)
                    return
