"""A column that grows at its end, in a file, and is an array once it is whole."""

from __future__ import annotations

import mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cosim.errors import ScenarioError


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
