"""Functions that loops call by address: of one network all interpreted, or all compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cosim.network.jit import compiled_for
from cosim.network.twins import number_of


class Addresses:
    """Where they are, and who was told so: what is interpreted at first is told anew when it is compiled."""

    def __init__(self, *, interpreted: bool) -> None:
        self.interpreted = interpreted
        self._told: list[tuple[Any, str, Callable[..., Any], Any]] = []

    def of(self, function: Callable[..., Any], signature: Any) -> int:
        """Where a function is; below 0, where it is interpreted."""
        return number_of(function) if self.interpreted else int(compiled_for(function, signature).address)

    def tell(self, record: Any, field: str, function: Callable[..., Any], signature: Any) -> None:
        """Write into a field of a record where a function is."""
        self._told.append((record, field, function, signature))
        record[field] = self.of(function, signature)

    def compile(self) -> None:
        """From now on they are compiled."""
        self.interpreted = False
        for record, field, function, signature in self._told:
            record[field] = self.of(function, signature)
