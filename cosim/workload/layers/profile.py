"""A model as layers in an order in which they can run, with what crosses between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cosim.errors import WorkloadError
from cosim.units import PS_PER_MS
from cosim.workload.dependencies import find_cycle, topological_order

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ProfiledLayer:
    """A layer for one minibatch: times in picoseconds, its output and its weights in bytes."""

    name: str
    forward_ps: int
    backward_ps: int
    activation_bytes: int = 0
    parameter_bytes: int = 0


@dataclass(frozen=True)
class LayerProfile:
    """Layers in an order in which each comes after those that it reads.

    Attributes
    ----------
    name
        The model.
    layers
        In that order.
    reads
        For each layer, positions of those whose output it reads; None: each reads the one before it.

    Examples
    --------
    >>> from cosim.workload.layers.profile import ProfiledLayer, LayerProfile
    >>> two = LayerProfile("two", (ProfiledLayer("a", 10, 20, 1000), ProfiledLayer("b", 10, 20)))
    >>> two.crossing_bytes.tolist()
    [1000, 0]
    """

    name: str
    layers: tuple[ProfiledLayer, ...]
    reads: tuple[tuple[int, ...], ...] | None = None

    def __len__(self) -> int:
        return len(self.layers)

    @cached_property
    def compute_s(self) -> F64:
        """float64[layers]: forward and backward."""
        return np.array([one.forward_ps + one.backward_ps for one in self.layers], np.float64) / (
            1000 * PS_PER_MS
        )

    @cached_property
    def activation_bytes(self) -> NDArray[np.int64]:
        """int64[layers]: outputs."""
        return np.array([one.activation_bytes for one in self.layers], np.int64)

    @cached_property
    def parameter_bytes(self) -> NDArray[np.int64]:
        """int64[layers]: weights."""
        return np.array([one.parameter_bytes for one in self.layers], np.int64)

    @cached_property
    def crossing_bytes(self) -> NDArray[np.int64]:
        """int64[layers]: outputs of this layer and those before it that a layer after this one reads: what a
        pipeline that is cut behind it sends, once each.
        """
        last = np.arange(len(self.layers))
        for reader, read in enumerate(self._reads()):
            for one in read:
                last[one] = max(last[one], reader)
        change = np.zeros(len(self.layers) + 1, np.int64)
        for one, until in enumerate(last.tolist()):
            change[one] += self.layers[one].activation_bytes
            change[until] -= self.layers[one].activation_bytes
        return np.cumsum(change[:-1])

    def _reads(self) -> Sequence[Sequence[int]]:
        return self.reads if self.reads is not None else [(k - 1,) if k else () for k in range(len(self))]


def in_order(name: str, layers: Sequence[ProfiledLayer], reads: Sequence[Sequence[int]]) -> LayerProfile:
    """A profile of layers that were given in any order, each with those that it reads.

    Raises
    ------
    WorkloadError
        Layers that read each other.
    """
    cycle = find_cycle(reads)
    if cycle:
        named = " -> ".join(layers[k].name for k in [*cycle, cycle[0]][:9])
        raise WorkloadError(f"layers that read each other: {named}")
    order = topological_order(reads)
    place = {one: at for at, one in enumerate(order)}
    return LayerProfile(
        name,
        tuple(layers[one] for one in order),
        tuple(tuple(sorted(place[other] for other in reads[one])) for one in order),
    )
