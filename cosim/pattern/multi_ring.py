"""Several rings at once, each by a stride of its own: rank i sends to i + s, and on another ring to i - s.

As many rings as strides, each both ways, with an equal part of the data; where every stride has links of its
own no two rings share one. Source: W. Wang et al., "TopoOpt", NSDI 2023, arXiv 2202.00433; the rings are
those of :mod:`cosim.pattern.ring`. Strides that aren't given are those along which every rank of the group
has a link to the rank so many further on.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from cosim.errors import AlgorithmError
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.group_links import GroupLinks
from cosim.pattern.ring import Rings
from cosim.pattern.template import Collective, Template


class MultiRing(Algorithm):
    """Rings by several strides at once, each both ways (TopoOpt)"""

    name: ClassVar[str] = "multi_ring"
    carries: ClassVar[frozenset[Collective]] = frozenset(
        {Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER}
    )
    strides: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (),
        max_length=128,
        description="of the rings; omitted: those that all ranks have links for",
    )

    def by_links(self) -> bool:
        """Where no strides are given."""
        return not self.strides

    def on_links(self, links: GroupLinks, collective: Collective, size_bytes: int) -> Algorithm:  # noqa: ARG002
        """With the strides for which there are links."""
        n, there = links.num_ranks, {(src, dst) for src, dst, _, _ in links.direct}
        found = [
            stride
            for stride in range(1, n // 2 + 1)
            if math.gcd(n, stride) == 1
            and all((i, (i + way) % n) in there for i in range(n) for way in (stride, -stride))
        ]
        if not found:
            raise AlgorithmError(
                f"multi_ring: no ring of the group's {n} ranks by one stride has a link for every step",
                hint="give strides, such as {algorithm: multi_ring, strides: [1, 5]}, or place the group on "
                "a direct_connect whose strides suit it",
            )
        return self.model_copy(update={"strides": tuple(found)})

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
        """See :meth:`Algorithm.build`; channel 2 k and 2 k + 1 are stride k up and down."""
        del chunk, root
        self.check(collective, num_ranks)
        strides = self.strides or (1,)
        for stride in strides:
            if math.gcd(stride, num_ranks) != 1:
                raise AlgorithmError(
                    f"multi_ring: steps of {stride} don't visit all of a group of {num_ranks} ranks: both "
                    f"are multiples of {math.gcd(stride, num_ranks)}",
                    hint=f"1 does, and what has no divisor in common with {num_ranks}",
                )
        order = np.arange(num_ranks) * np.repeat(strides, 2)[:, None] % num_ranks
        rings = Rings(
            num_ranks,
            len(order),
            costs,
            reverse=reverse,
            bidirectional=True,
            order=order.astype(np.int32),
            name=self.name,
        )
        return rings.reduce_or_gather(collective, size_bytes)
