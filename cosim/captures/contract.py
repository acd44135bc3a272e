"""What formats of captures are: which files they read, and what these say of traffic.

::

    class Lines(CaptureFormat):
        '''Source, destination and bytes on each line'''

        def refuses(self, start: bytes, path: Path) -> str | None:
            return None if start.startswith(b"# bytes") else "it doesn't begin with '# bytes'"

        def read(self, path: Path) -> TrafficCapture:
            rows = [line.split() for line in path.read_text().splitlines()[1:]]
            return capture_of_rows(path, "lines", [(a, b, int(size), 0, 0) for a, b, size in rows])
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosim.captures.traffic import TrafficCapture, plain_transfers
from cosim.errors import InputError, Location
from cosim.spec import Spec


class CaptureFormat(Spec):
    """Base of the formats of captures; `cosim analyse` asks each whether a file is one of its own."""

    @abstractmethod
    def refuses(self, start: bytes, path: Path) -> str | None:
        """Why a file or folder is none of this format, as `it has no header`; None: it is one.

        ``start`` is what the file begins with, 4 KiB or fewer; of a folder it is empty.
        """

    @abstractmethod
    def read(self, path: Path) -> TrafficCapture:
        """Read it.

        Raises
        ------
        InputError
            A file that can't be read or meant; names file, and line or byte.
        """


def capture_of_rows(path: Path, kind: str, rows: Sequence[tuple[str, str, int, int, int]]) -> TrafficCapture:
    """A capture of transfers: source, destination, bytes, start and end in picoseconds each.

    Raises
    ------
    InputError
        There is none, or one has bytes below 0 or ends before it starts; says which.
    """
    if not rows:
        raise InputError("holds no transfer", location=Location(str(path)), hint="give a longer record")
    for number, (_, _, size, start, end) in enumerate(rows, 1):
        if size < 0 or end < start:
            what = "bytes below 0" if size < 0 else "it ends before it starts"
            raise InputError(f"transfer {number}: {what}", location=Location(str(path)))
    hosts: dict[str, int] = {}
    ends = [[hosts.setdefault(name, len(hosts)) for name in row[:2]] for row in rows]
    src, dst = np.array(ends, np.int32).T
    size, start, end = np.array([row[2:] for row in rows], np.int64).T
    transfers = plain_transfers(tuple(hosts), src, dst, size, start, end)
    return TrafficCapture(str(path), kind, transfers, notes=(f"{len(transfers):,} transfers",))
