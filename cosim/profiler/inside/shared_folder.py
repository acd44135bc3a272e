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

    def put_message(self, receiver: int, name: str, value: Any) -> None:
        """Leave a message's values, under its distance and its sender."""
        self.put(f"message-{receiver - self.rank}-{name}-{self.rank}", value)

    def get_message(self, sender: int, name: str) -> Any:
        """What a rank sent to this one; of one that isn't run, what the next before it sent as far."""
        begins = f"message-{self.rank - sender}-{name}-"
        found = self.get(f"{begins}{sender}", sender)
        if found is not None:
            return found
        left = (place.name.removeprefix(begins) for place in self.folder.glob(f"{begins}*"))
        nearest = max((int(one) for one in left if one.isdigit() and int(one) < sender), default=None)
        return None if nearest is None else self.get(f"{begins}{nearest}", nearest)
