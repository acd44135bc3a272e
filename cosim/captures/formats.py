"""The formats of captures that come along."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cosim.captures.contract import CaptureFormat
from cosim.captures.traffic import TrafficCapture
from cosim.errors import InputError, Location


class Pcap(CaptureFormat):
    """Packets: pcap and pcapng"""

    def refuses(self, start: bytes, path: Path) -> str | None:  # noqa: ARG002
        """See :class:`CaptureFormat`."""
        from cosim.captures.pcap import is_pcap

        return None if is_pcap(start) else "it has no magic number of pcap or pcapng"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.pcap import read_pcap

        return read_pcap(path)


class CountersNpz(CaptureFormat):
    """Counters of ports: .npz"""

    def refuses(self, start: bytes, path: Path) -> str | None:  # noqa: ARG002
        """See :class:`CaptureFormat`."""
        return None if start.startswith(b"PK") else "it is no .npz"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.counters import read_npz

        return read_npz(path)


class CountersCsv(CaptureFormat):
    """Counters of ports: CSV"""

    def refuses(self, start: bytes, path: Path) -> str | None:  # noqa: ARG002
        """See :class:`CaptureFormat`."""
        return None if "port" in _columns(start) else "its first line isn't port,time_s,in_bytes,out_bytes"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.counters import read_csv

        return read_csv(path, _lines(path))


class FlowCsv(CaptureFormat):
    """Flow records: CSV with named columns, or nfdump's"""

    def refuses(self, start: bytes, path: Path) -> str | None:  # noqa: ARG002
        """See :class:`CaptureFormat`."""
        from cosim.captures.flows import NFDUMP

        names = _columns(start)
        fits = "port" not in names and ("src" in names or names >= {*NFDUMP})
        return None if fits else "its first line isn't src,dst,size_bytes,start_s,end_s, nor nfdump's"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.flows import read_flow_csv

        return read_flow_csv(path, _lines(path))


class Zeek(CaptureFormat):
    """Flow records: Zeek's conn.log"""

    def refuses(self, start: bytes, path: Path) -> str | None:  # noqa: ARG002
        """See :class:`CaptureFormat`."""
        return None if start.startswith((b"#separator", b"#fields")) else "it doesn't begin with #separator"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.flows import read_zeek

        return read_zeek(path, _lines(path))


class FlowList(CaptureFormat):
    """Flow records: HPCC's list"""

    def refuses(self, start: bytes, path: Path) -> str | None:  # noqa: ARG002
        """See :class:`CaptureFormat`."""
        head = start.partition(b"\n")[0].strip()
        return None if head.isdigit() and len(head) < 12 else "its first line is no number of flows"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.flows import read_flow_list

        return read_flow_list(path, _lines(path))


class Inspector(CaptureFormat):
    """Collectives: NCCL Inspector's JSON, a file or a folder"""

    def refuses(self, start: bytes, path: Path) -> str | None:
        """See :class:`CaptureFormat`."""
        from cosim.captures.inspector import inspector_files, is_inspector

        if path.is_dir():
            return None if inspector_files(path) else "it has no *.log, *.json or *.jsonl of NCCL Inspector's"
        return None if is_inspector(start) else "its first line has no header and metadata"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.inspector import inspector_files, read_inspector

        return read_inspector(path, inspector_files(path) if path.is_dir() else None)


class NcclLog(CaptureFormat):
    """Rings, trees and connections: lines of NCCL_DEBUG=INFO, a file or a folder"""

    def refuses(self, start: bytes, path: Path) -> str | None:
        """See :class:`CaptureFormat`."""
        from cosim.captures.inspector import is_inspector
        from cosim.captures.nccl_log import has_nccl_lines, nccl_files

        if path.is_dir():
            return None if nccl_files(path) else "it has no file with lines of NCCL INFO"
        found = not is_inspector(start) and has_nccl_lines(path)
        return None if found else "it has no line of NCCL INFO (NCCL_DEBUG=INFO)"

    def read(self, path: Path) -> TrafficCapture:
        """See :class:`CaptureFormat`."""
        from cosim.captures.nccl_log import nccl_files, read_nccl_log

        return read_nccl_log(path, nccl_files(path) if path.is_dir() else None)


def _columns(start: bytes) -> set[str]:
    head = start.partition(b"\n")[0].decode("utf-8", "replace")
    return {name.strip() for name in head.split(",")}


def _lines(path: Path) -> Iterator[str]:
    """Lines of a text.

    Raises
    ------
    InputError
        It is no UTF-8.
    """
    number = 0
    with path.open(encoding="utf-8", newline="") as file:
        try:
            for number, line in enumerate(file, 1):  # noqa: B007 - said where it ends
                yield line
        except UnicodeDecodeError as error:
            raise InputError(
                f"not UTF-8: {error}", location=Location(str(path), number + 1), hint="copy it again"
            ) from error
