"""ASTRA-sim's network notation: 1 to N dimensions, as in its ``network.yml``.

Units follow its analytical backend, which the names hide: a bandwidth of v "GB/s" is v * 2^30 bytes per
second, per direction of each link; a latency of v is v nanoseconds per link. Source: astra-network-analytical
(``common/NetworkParser.cpp``, ``common/Type.h``), doi:10.1109/ISPASS57527.2023.00035.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.files.located_yaml import read_model
from cosim.spec import Spec
from cosim.topology.contract import Fabric, Routing, TopologySpec
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, Kind, grid_topology
from cosim.topology.routings import DimensionOrderedSpec
from cosim.units import NEVER

BPS_PER_GIB = 2.0**33
"""Bits per second in one of ASTRA-sim's GB/s (2^30 bytes per second)."""

MAX_NPUS = 1 << 22
MAX_LINKS = 1 << 26

Sizes = list[Annotated[int, Field(gt=1)]]
Bandwidths = list[Annotated[float, Field(gt=0, allow_inf_nan=False)]]
Latencies = list[Annotated[float, Field(ge=0, allow_inf_nan=False)]]


def dimensions(
    topology: Sequence[Kind], npus_count: Sequence[int], bandwidth: Sequence[float], latency: Sequence[float]
) -> tuple[Dimension, ...]:
    """Dimensions from the notation's four lists, rates exact in bits per second.

    Raises
    ------
    ValueError
        Lists of different lengths, a latency finer than a picosecond, or more than can be held.
    """
    for name, values in (("npus_count", npus_count), ("bandwidth", bandwidth), ("latency", latency)):
        if len(values) != len(topology):
            raise ValueError(
                f"{name} has {len(values)} entries, topology has {len(topology)}: one for each dimension"
            )
    if not topology:
        raise ValueError("topology is empty; write at least one of Ring, FullyConnected, Switch")
    found = tuple(
        Dimension(kind, size, rate * BPS_PER_GIB, _picoseconds(delay))
        for kind, size, rate, delay in zip(topology, npus_count, bandwidth, latency, strict=True)
    )
    npus = math.prod(npus_count)
    links = sum(dimension.num_links(npus) for dimension in found)
    if npus > MAX_NPUS or links > MAX_LINKS:
        raise ValueError(
            f"npus_count makes {npus} NPUs with {links} links; {MAX_NPUS} and {MAX_LINKS} are the most"
        )
    return found


def _picoseconds(nanoseconds: float) -> int:
    # repr is the shortest decimal that means this float: what the user wrote.
    exact = Fraction(repr(nanoseconds)) * 1000
    if exact.denominator != 1:
        raise ValueError(f"latency {nanoseconds!r} ns is finer than a picosecond; three decimals at most")
    if exact > NEVER:
        raise ValueError(f"latency {nanoseconds!r} ns is longer than the 53 days that picoseconds count to")
    return int(exact)


class NetworkFile(Spec):
    """The keys of ASTRA-sim's network file."""

    topology: list[Kind]
    npus_count: Sizes
    bandwidth: Bandwidths
    latency: Latencies

    @model_validator(mode="after")
    def _lists_agree(self) -> Self:
        self.dimensions()
        return self

    def dimensions(self) -> tuple[Dimension, ...]:
        """The file's dimensions."""
        return dimensions(self.topology, self.npus_count, self.bandwidth, self.latency)


class AstraSim(TopologySpec):
    """ASTRA-sim's notation: 1 to N dimensions of Ring, FullyConnected and Switch."""

    has_dimensions: ClassVar[bool] = True

    topology: list[Kind] = Field([], description="Ring, FullyConnected or Switch, for each dimension.")
    npus_count: Sizes = Field([], description="NPUs along each dimension; dimension 0 varies fastest.")
    bandwidth: Bandwidths = Field(
        [], description="Per dimension: v means v * 2^30 bytes/s per link and direction."
    )
    latency: Latencies = Field([], description="Per dimension: nanoseconds of each link.")
    file: str | None = Field(None, description="ASTRA-sim's network file with those four, instead of them.")
    routing: Routing = Field(
        DimensionOrderedSpec(), description="dimension_ordered (closed form), shortest or ecmp."
    )

    @model_validator(mode="after")
    def _inline_or_file(self) -> Self:
        given = sorted({"topology", "npus_count", "bandwidth", "latency"} & self.model_fields_set)
        if self.file is None:
            dimensions(self.topology, self.npus_count, self.bandwidth, self.latency)
        elif given:
            raise ValueError(f"file and {', '.join(given)} are both given; give the file or the four lists")
        return self

    def build(self, context: Context) -> Topology:
        """The topology.

        Raises
        ------
        TopologyError
            The file can't be read, or holds what ASTRA-sim's notation does not have.
        """
        if self.file is not None:
            found = read_model(context.base / self.file, NetworkFile, TopologyError).dimensions()
        else:
            found = dimensions(self.topology, self.npus_count, self.bandwidth, self.latency)
        return grid_topology(found, self.routing.build(Fabric(found, True), context))

    def idle_settings(self) -> list[tuple[str, str]]:
        """The routing, where each pair has one shortest path: one dimension without ties."""
        one = len(self.topology) == 1
        if one and (self.topology[0] != "Ring" or self.npus_count[0] == 2 or math.prod(self.npus_count) % 2):
            return self.idle_routing("each pair of NPUs has one shortest path only")
        return []
