"""Pinned paths: a routing in front of another, whose users say where some of their connections go.

The high part of a channel's number is a *version*: 0 goes as the other routing says, any other may be pinned,
pair by pair. So two users of one pair of endpoints may go different ways, and a new version leaves what is
under way alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from cosim.topology.checked_paths import checked_paths
from cosim.topology.graph import I32, I64, Paths, Topology

_BITS = 12


@dataclass(frozen=True, eq=False)
class PinnedPaths(Paths):
    """``inner``, but for ``pins[source, destination, version]``: links from one to the other."""

    inner: Paths
    pins: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)
    _issued: set[int] = field(default_factory=set, init=False, repr=False)
    _versions: Iterator[int] = field(default_factory=lambda: count(1), init=False, repr=False)

    def pin(self, paths: Mapping[tuple[int, int], tuple[int, ...]]) -> int:
        """Have the pairs of a new version go so; what is to be added to its connections' channels."""
        version = next(self._versions)
        self._issued.add(version)
        self.pins.update({(*pair, version): path for pair, path in paths.items()})
        return version << _BITS

    @property
    def name(self) -> str:
        """The other's name."""
        return self.inner.name

    @property
    def endpoints_forward(self) -> bool:
        """See :class:`~cosim.topology.graph.Paths`."""
        return self.inner.endpoints_forward

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`."""
        channel = np.asarray(channel, np.int32)
        version = channel >> _BITS
        ptr, links = checked_paths(self.inner, topology, src, dst, self._own(channel))
        if not version.any() or not self.pins:
            return ptr, links
        rows = [links[a:b] for a, b in pairwise(ptr)]
        for at in np.flatnonzero(version).tolist():
            pinned = self.pins.get((int(src[at]), int(dst[at]), int(version[at])))
            if pinned is not None:
                rows[at] = np.array(pinned, np.int32)
        return np.concatenate([[0], np.cumsum([len(row) for row in rows])]), np.concatenate(rows)

    def around(
        self, topology: Topology, dead: NDArray[np.bool_], src: I32, dst: I32, channel: I32
    ) -> tuple[I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`: as the other routes round what is dead."""
        return self.inner.around(topology, dead, src, dst, self._own(channel))

    def _own(self, channel: I32) -> I32:
        """Channels as the other routing knows them: without a version, where one was given out."""
        version = channel >> _BITS
        if not version.any():
            return channel
        is_pinned = np.isin(version, [*self._issued])
        return np.where(is_pinned, channel & ((1 << _BITS) - 1), channel).astype(np.int32)

    @property
    def has_alternatives(self) -> bool:
        """See :class:`~cosim.topology.graph.Paths`."""
        return self.inner.has_alternatives

    def alternatives(self, topology: Topology, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32]:
        """See :class:`~cosim.topology.graph.Paths`."""
        return self.inner.alternatives(topology, src, dst, most)
