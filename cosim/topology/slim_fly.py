"""Slim fly: switches two hops apart at most, with as few links as graphs of diameter two are known to need.

Of a power of a prime, q = 4 w + d with d = -1, 0, 1: 2 q^2 switches of (3 q - d) / 2 links each. Switch (0,
x, y) is linked to (0, x, y') where y - y' is in X, (1, m, c) to (1, m, c') where c - c' is in X', and (0, x,
y) to (1, m, c) where y = m x + c, all in GF(q); X and X' are powers of a primitive element. Source: B. D.
McKay, M. Miller and J. Siran, "A note on large graphs of diameter two and given maximum degree", J. Comb.
Theory B 74, 1998, doi:10.1006/jctb.1998.1828; M. Besta and T. Hoefler, "Slim Fly: A Cost Effective
Low-Diameter Network Topology", SC 2014, doi:10.1109/SC.2014.34. q = 5 is the Hoffman-Singleton graph.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, field_validator

from cosim.context import Context
from cosim.topology.contract import Count, Routing
from cosim.topology.galois import GaloisField, prime_power
from cosim.topology.graph import I64, Topology
from cosim.topology.routings import EcmpSpec
from cosim.topology.switch_fabric import SwitchFabric

_MOST = 251


class SlimFly(SwitchFabric):
    """Switches two hops apart at most, with close to the fewest links"""

    q: int = Field(description="A prime, or a power of one, from 4 on; there are 2 q^2 switches.")
    endpoints_per_switch: Count | None = Field(
        None, description="Endpoints (GPUs) on each switch; omitted: half of its links, rounded up."
    )
    routing: Routing = Field(EcmpSpec(), description="ecmp or shortest.")

    @field_validator("q")
    @classmethod
    def _prime_power(cls, q: int) -> int:
        right = [n for n in range(4, _MOST + 1) if prime_power(n)]
        if q not in right:
            near = sorted(sorted(right, key=lambda n: abs(n - q))[:2])
            raise ValueError(
                f"q {q} should be a prime or a power of one, from 4 to {_MOST}; {near[0]} and {near[1]} are "
                "near"
            )
        return q

    @property
    def degree(self) -> int:
        """Links of a switch to other switches."""
        return (3 * self.q - (0, 1, 0, -1)[self.q % 4]) // 2

    @property
    def concentration(self) -> int:
        """Endpoints on each switch."""
        return self.endpoints_per_switch or -(-self.degree // 2)

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        return 2 * self.q**2 * (2 * self.concentration + self.degree) * self.planes

    def build(self, context: Context) -> Topology:
        """The topology."""
        q, each, field = self.q, self.concentration, GaloisField(self.q)
        names = [f"switch{side}.{x}.{y}" for side in (0, 1) for x in range(q) for y in range(q)]
        builder, number = self.start(names, each)
        sides = number.reshape(2, q, q)
        for side, apart in enumerate(_generators(field)):
            y = np.arange(q)
            low, high = np.broadcast_arrays(y[:, None], field.plus(y[:, None], apart))
            first = low < high  # each link once: the sets have -d with every d
            builder.connect(sides[side][:, low[first]], sides[side][:, high[first]], *self.between)
        x, m, c = np.meshgrid(np.arange(q), np.arange(q), np.arange(q), indexing="ij")
        builder.connect(sides[0][x, field.plus(field.times(m, x), c)], sides[1][m, c], *self.between)
        return builder.topology(f"slim fly q={q}", self.routing, context, planes=self.planes)


def _generators(field: GaloisField) -> tuple[I64, I64]:
    """X and X': differences of linked places on either side; each has its negatives."""
    q, power = field.q, field.powers
    if q % 4 == 1:
        return power[0 : q - 1 : 2], power[1 : q - 1 : 2]
    if q % 4 == 0:  # a difference is its own negative
        return power[0 : q - 1 : 2], np.append(power[1 : q - 1 : 2], power[0])
    w = (q + 1) // 4
    one = [*range(0, 2 * w - 1, 2), *range(2 * w - 1, 4 * w - 2, 2)]
    other = [*range(1, 2 * w, 2), *range(2 * w, 4 * w - 1, 2)]
    return power[np.array(one) % (q - 1)], power[np.array(other) % (q - 1)]
