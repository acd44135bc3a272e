"""The ``collectives:`` section of a scenario: which algorithms carry what, and what their steps cost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo

from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.direct import Direct
from cosim.pattern.dissemination import Dissemination
from cosim.pattern.nccl import Nccl
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.send_recv import SendRecv
from cosim.pattern.template import Collective
from cosim.pattern.tree import BinomialTree
from cosim.registry import Named, folder_of
from cosim.spec import RateBps, Spec, TimePs
from cosim.topology.host_shape import HostShape

_NAMED = Named("cosim.collectives")
_WINDOWED = re.compile(r"direct([1-9]\d*)$")


def one_algorithm(value: Any, folder: Path) -> Algorithm:
    """What ``ring``, ``{algorithm: ring, ...}`` or ``direct4`` means; paths start from ``folder``.

    Raises
    ------
    ValueError
        No such algorithm, or mistakes in its description.
    """
    windowed = _WINDOWED.match(value) if isinstance(value, str) else None
    if windowed is not None:  # ASTRA-sim's way to write a window: direct4
        return Direct(window=int(windowed.group(1)))
    found: Algorithm = _NAMED.resolve(value, folder)
    return found


def _choice(value: Any, info: ValidationInfo) -> Any:
    folder = folder_of(info.context)
    if not isinstance(value, (list, tuple)):
        return one_algorithm(value, folder)
    if not value:
        raise ValueError("an empty list; name one algorithm for each dimension, or one for all")
    return tuple(one_algorithm(each, folder) for each in value)


Choice = Annotated[
    SerializeAsAny[Algorithm] | tuple[SerializeAsAny[Algorithm], ...], BeforeValidator(_choice)
]
"""One algorithm over the whole group, or one for each dimension of the topology, dimension 0 first."""


class CollectiveConfig(Spec):
    """How collectives are carried: algorithms, delays, chunks. On hosts with NVLink what isn't named is
    NCCL's
    """

    endpoint_delay: TimePs = Field(0, ge=0, description="before each send and after each receive")
    reduction_rate: RateBps | None = Field(
        None,
        description="local memory bandwidth that reductions read and write at; omitted: reductions are free",
    )
    sizing: Literal["exact", "floor"] = Field(
        "exact", description="exact loses no byte; floor divides as ASTRA-sim does, dropping remainders"
    )
    optimization: Literal["local_bw_aware", "baseline"] = Field(
        "local_bw_aware",
        description="all-reduce over dimensions: reduce-scatter in, all-gather out, or whole in each",
    )
    splits: int = Field(1, ge=1, le=4096, description="chunks that an operation is split into")
    active_chunks: int = Field(1, ge=1, description="chunks under way at once in a dimension of a rank")
    queues: int = Field(1, ge=1, le=64, description="queues of a dimension, which share active_chunks")
    all_reduce: Choice = Field(
        RingAlgorithm(),
        description="NAME, {algorithm: NAME, its fields}, or a list by dimension; `cosim list collective`",
    )
    all_gather: Choice = Field(RingAlgorithm(), description="as all_reduce")
    reduce_scatter: Choice = Field(RingAlgorithm(), description="as all_reduce")
    all_to_all: Choice = Field(Direct(), description="as all_reduce")
    broadcast: Choice = Field(BinomialTree(), description="as all_reduce, but no list")
    barrier: Choice = Field(Dissemination(), description="as all_reduce, but no list")
    send_recv: Choice = Field(SendRecv(), description="as all_reduce, but no list")

    @property
    def costs(self) -> Costs:
        """What algorithms need to know of this section."""
        return Costs(self.endpoint_delay, self.reduction_rate, self.sizing == "floor")

    def choice(self, collective: Collective) -> Algorithm | tuple[Algorithm, ...]:
        """The algorithm of a collective, or one for each dimension."""
        chosen: Algorithm | tuple[Algorithm, ...] = getattr(self, collective.value)
        return chosen

    @property
    def is_carried(self) -> bool:
        """Whether code carries any of them while a run goes on."""
        chosen = [self.choice(kind) for kind in Collective]
        return any(
            one.carried for all_of in chosen for one in (all_of if isinstance(all_of, tuple) else (all_of,))
        )

    def on_hosts(self, hosts: HostShape) -> CollectiveConfig:
        """The section on a topology of such hosts: with their NICs, and, where GPUs have NVLinks of a data
        sheet's rate, what it doesn't name is NCCL's.
        """
        found: dict[str, object] = {}
        nccl = Nccl()
        for kind in Collective:
            chosen = self.choice(kind)
            named = kind.value in self.model_fields_set or hosts.named_only
            if not named and kind in nccl.carries:
                chosen = nccl
            each = chosen if isinstance(chosen, tuple) else (chosen,)
            placed = tuple(algorithm.on_hosts(hosts) for algorithm in each)
            found[kind.value] = placed if isinstance(chosen, tuple) else placed[0]
        return self.model_copy(update=found)

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings that were given but can't affect any result."""
        idle: list[tuple[str, str]] = []
        given = self.model_fields_set
        if "active_chunks" in given and self.active_chunks > 1 and self.splits == 1:
            idle.append(("active_chunks", "an operation is one chunk (splits: 1)"))
        elif "active_chunks" in given and self.active_chunks > self.splits * self.queues:
            idle.append(("active_chunks", f"no more than {self.splits} chunks exist (splits: {self.splits})"))
        if "queues" in given and self.queues > 1 and self.splits == 1:
            idle.append(("queues", "an operation is one chunk (splits: 1), which takes one queue"))
        if "optimization" in given and not (isinstance(self.all_reduce, tuple) and len(self.all_reduce) > 1):
            idle.append(("optimization", "all_reduce is one algorithm; it matters to a list by dimension"))
        for name in (kind.value for kind in Collective):
            chosen = getattr(self, name)
            for number, algorithm in enumerate(chosen if isinstance(chosen, tuple) else (chosen,)):
                where = f"{name}.{number}" if isinstance(chosen, tuple) else name
                idle += [(f"{where}.{key}", why) for key, why in algorithm.idle_settings()]
        return idle
