"""Dragonfly: groups of switches, all to all within a group, and links between all pairs of groups.

A switch has p endpoints, a - 1 links within its group of a, and h links to other groups; of at most a h + 1
groups each pair has a link. Paths go within the source's group, over one link between groups, and within the
destination's: links between groups count three times, so that no path takes two of them instead. An
all-to-all of s bytes a pair brings max(N - 1, (a p)^2, p^2 (1 + 2 a h)) s to the busiest link. Source: J.
Kim, W. J. Dally, S. Scott and D. Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008,
doi:10.1145/1394608.1382129. Non-minimal paths are the balancers' ``valiant`` and ``ugal``. Not modelled:
virtual channels.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from cosim.context import Context
from cosim.topology.contract import Count
from cosim.topology.graph import Topology
from cosim.topology.switch_fabric import SwitchFabric

_BETWEEN_GROUPS = 3
"""Cost: dearer by one than a way within both groups is longer than none, 1 + 3 + 1 < 3 + 3."""


class Dragonfly(SwitchFabric):
    """Groups of switches, all to all within, and links between all pairs of groups"""

    endpoints_per_switch: Count = Field(description="Endpoints (GPUs) on each switch: p.")
    switches_per_group: Count = Field(description="Switches of a group: a.")
    links_per_switch: Count = Field(description="Links of each switch to other groups: h.")
    groups: int | None = Field(None, ge=2, description="Groups; omitted: as many as links reach, a h + 1.")

    @model_validator(mode="after")
    def _links_meet(self) -> Self:
        ports, groups = self.switches_per_group * self.links_per_switch, self.num_groups
        if groups - 1 > ports or ports % (groups - 1):
            fits = [count + 1 for count in range(1, ports + 1) if ports % count == 0]
            raise ValueError(
                f"{groups} groups don't share the {ports} links of a group evenly; groups could be "
                f"{', '.join(map(str, fits))}"
            )
        return self

    @property
    def num_groups(self) -> int:
        """Groups."""
        return self.groups or self.switches_per_group * self.links_per_switch + 1

    def size_about(self) -> int:
        """See :class:`~cosim.topology.contract.TopologySpec`."""
        each = self.endpoints_per_switch * 2 + self.switches_per_group - 1 + self.links_per_switch
        return self.num_groups * self.switches_per_group * each * self.planes

    def build(self, context: Context) -> Topology:
        """The topology; port k of a group leads to the group k // (links of a pair) + 1 further on."""
        p, a, h, groups = (
            self.endpoints_per_switch,
            self.switches_per_group,
            self.links_per_switch,
            self.num_groups,
        )
        builder, number = self.start([f"group{g}.switch{i}" for g in range(groups) for i in range(a)], p)
        switch = number.reshape(groups, a)
        one, other = np.triu_indices(a, 1)
        builder.connect(switch[:, one], switch[:, other], *self.between)
        pair = a * h // (groups - 1)
        near, far = np.triu_indices(groups, 1)
        link = np.arange(pair)
        out = ((far - near - 1) % groups)[:, None] * pair + link
        back = ((near - far - 1) % groups)[:, None] * pair + link
        builder.connect(
            switch[near[:, None], out // h], switch[far[:, None], back // h], *self.between, _BETWEEN_GROUPS
        )
        name = f"dragonfly {groups}x{a}x{p}"
        return builder.topology(name, self.routing, context, planes=self.planes)

    def idle_settings(self) -> list[tuple[str, str]]:
        """The routing, where a pair of groups has one link; latencies and rates between switches are used."""
        if self.switches_per_group * self.links_per_switch == self.num_groups - 1 and self.planes == 1:
            return self.idle_routing("each pair of endpoints has one shortest path only")
        return []
