"""Source, destination and bytes on each line, below a line that says so."""

from __future__ import annotations

from pathlib import Path

from cosim.plugins import CaptureFormat, TrafficCapture, capture_of_rows


class Bytes(CaptureFormat):
    """Source, destination and bytes on each line"""

    def refuses(self, start: bytes, path: Path) -> str | None:
        return None if start.startswith(b"# bytes") else "it doesn't begin with '# bytes'"

    def read(self, path: Path) -> TrafficCapture:
        rows = [line.split() for line in path.read_text().splitlines()[1:]]
        return capture_of_rows(path, "bytes", [(a, b, int(size), 0, 0) for a, b, size in rows])
