"""A column that grows at its end, in memory or in a file, and is an array once it is whole."""

from __future__ import annotations

import mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cosim.errors import ScenarioError


class KeptColumn:
    """In memory, of which there is room for all values that are ``expected`` from the first on: what is not
    written to costs nothing.
    """

    def __init__(self, kind: DTypeLike, expected: int) -> None:
        self._kind, self._expected = kind, expected
        self._values: NDArray[Any] | None = None
        self._count = 0

    def append(self, part: NDArray[Any]) -> None:
        """Add values at the end, no more than were expected. What is all of them is kept as it is: nobody is
        to write to it any more.
        """
        end = self._count + len(part)
        if self._values is None:
            whole = end == self._expected and part.dtype == self._kind
            self._values = part if whole else np.empty(self._expected, self._kind)
        if self._values is not part:
            self._values[self._count : end] = part
        self._count = end

    def whole(self) -> NDArray[Any]:
        """All values."""
        return np.empty(0, self._kind) if self._values is None else self._values[: self._count]

    def close(self) -> None:
        """Nothing is open of it."""


class SpilledColumn:
    """In a file without a name in a folder: the system removes it with what reads it, or with the process.

    Raises
    ------
    ScenarioError
        The folder can't be written to.
    """

    def __init__(self, kind: DTypeLike, folder: Path) -> None:
        self._kind, self._folder, self._size = np.dtype(kind), folder, 0
        try:
            self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - open as long as this object
        except OSError as problem:
            raise self._refused(problem) from None

    def append(self, part: NDArray[Any]) -> None:
        """Add values at the end.

        Raises
        ------
        ScenarioError
            There is no room left for them.
        """
        left = np.ascontiguousarray(part, self._kind).data.cast("B")
        self._size += len(left)
        try:
            while left:  # what has room for a part of it takes that
                left = left[self._file.write(left) :]
        except OSError as problem:
            raise self._refused(problem) from None

    def whole(self) -> NDArray[Any]:
        """All values, read from the file as they are looked at; they can't be written to."""
        with self._file:
            if not self._size:
                return np.zeros(0, self._kind)
            return np.frombuffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._kind)

    def close(self) -> None:
        """Let go of what was not made whole."""
        self._file.close()

    def _refused(self, problem: OSError) -> ScenarioError:
        what = f"operations can't be kept in {self._folder}: {problem.strerror or problem}"
        return ScenarioError(what, hint="a folder with room for 32 bytes an operation")
