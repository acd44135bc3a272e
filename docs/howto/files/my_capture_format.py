"""What `ss -tin` prints in a loop: a host's name, then the bytes that it sent to each other one."""

import re
from pathlib import Path

from cosim.plugins import CaptureFormat, InputError, Location, TrafficCapture, capture_of_rows

SENT = re.compile(r"(\d+)s to (\S+): (\d+) bytes")


class SentBytes(CaptureFormat):
    """A line for each host and second: `host a`, then `3s to b: 4096 bytes`"""

    def refuses(self, start: bytes, path: Path) -> str | None:
        return None if start.startswith(b"host ") else "its first line isn't `host NAME`"

    def read(self, path: Path) -> TrafficCapture:
        rows, host = [], ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("host "):
                host = line.removeprefix("host ").strip()
            elif found := SENT.fullmatch(line.strip()):
                second = int(found[1]) * 10**12
                rows.append((host, found[2], int(found[3]), second, second + 10**12))
            else:
                raise InputError("no line of bytes", location=Location(str(path), number))
        return capture_of_rows(path, "sent bytes", rows)
