"""What one profiled rank tells another: values in a folder that all of them share."""

from __future__ import annotations

import pickle
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

_NAP_S = 0.01


class SharedFolder:
    """``beside``: ranks that run at the same time and were started before this one; it waits for those."""

    def __init__(self, folder: Path, rank: int, beside: Collection[int]) -> None:
        self.folder, self.rank, self.beside = folder, rank, frozenset(beside)

    def put(self, name: str, value: Any) -> None:
        """Leave a value; whole, or not there."""
        part = self.folder / f"{name}.{self.rank}.part"
        part.write_bytes(pickle.dumps(value))
        part.replace(self.folder / name)

    def get(self, name: str, sender: int) -> Any:
        """What a rank left; None if it has ended, or hasn't begun, without."""
        place, ended = self.folder / name, self.folder / f"ended-{sender}"
        while not place.exists() and sender in self.beside and not ended.exists():
            time.sleep(_NAP_S)
        return pickle.loads(place.read_bytes()) if place.exists() else None
