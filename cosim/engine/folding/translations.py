"""Translations of a mesh: which ranks stand for which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.network.flows import I64
from cosim.workload.program import DeviceMesh


@dataclass(frozen=True, eq=False)
class Translations:
    """The group of translations that move a rank by multiples of ``steps[axis]`` along some axes, cyclically.

    A step divides its axis. Representatives are the ranks whose coordinate on each such axis is below the
    step; every rank is the image of exactly one of them under exactly one translation.
    """

    mesh: DeviceMesh
    steps: Mapping[str, int]

    @property
    def orders(self) -> tuple[int, ...]:
        """How many translations there are along each axis of the mesh, in mesh order."""
        return tuple(size // self.steps.get(axis, size) for axis, size in self.mesh.axes.items())

    @cached_property
    def copies(self) -> int:
        """Translations in all: ranks that a representative stands for, itself among them."""
        return int(np.prod(self.orders, dtype=np.int64))

    @cached_property
    def quotient(self) -> DeviceMesh:
        """The mesh of the representatives."""
        return DeviceMesh({axis: self.steps.get(axis, size) for axis, size in self.mesh.axes.items()})

    @cached_property
    def representatives(self) -> I64:
        """Ranks of the mesh, by their number in the quotient: int64[R]."""
        sizes = tuple(self.quotient.axes.values())
        return self._ranks(np.array(np.unravel_index(np.arange(self.quotient.world_size), sizes)))

    def images(self, ranks: I64) -> I64:
        """Where each translation takes ``ranks``: int64[copies, n]; translation 0 moves nothing."""
        # Coordinates [axes, n] and moves [axes, copies] are added to [axes, copies, n]: each rank by each
        # translation.
        sizes = np.array(list(self.mesh.axes.values()), np.int64)
        where = np.array(np.unravel_index(ranks, sizes))
        steps = np.array([self.steps.get(axis, size) for axis, size in self.mesh.axes.items()], np.int64)
        moves = np.array(np.unravel_index(np.arange(self.copies), self.orders)) * steps[:, None]
        moved = (where[:, None, :] + moves[:, :, None]) % sizes[:, None, None]
        return self._ranks(moved)

    def _ranks(self, where: I64) -> I64:
        return np.asarray(np.ravel_multi_index(tuple(where), tuple(self.mesh.axes.values())), np.int64)

    def canonical(self, rows: I64) -> I64:
        """Rows [n, copies] of images, each begun with its smallest value: equal rows are equal orbits."""
        # Translations form a group: starting from another element of a row only shifts the numbers of its
        # columns.
        first = np.array(np.unravel_index(rows.argmin(axis=1), self.orders))
        element = np.array(np.unravel_index(np.arange(self.copies), self.orders))
        orders = np.array(self.orders)[:, None, None]
        shifted = np.ravel_multi_index(tuple((element[:, None, :] + first[:, :, None]) % orders), self.orders)
        return np.asarray(np.take_along_axis(rows, shifted, axis=1), np.int64)


def group_grid(translations: Translations, axes: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Size and step of each mesh axis that a group extends along (no axes: all of them), in mesh order."""
    return tuple(
        (size, translations.steps.get(axis, size))
        for axis, size in translations.mesh.axes.items()
        if not axes or axis in axes
    )
