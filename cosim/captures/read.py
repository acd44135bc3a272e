"""Which reader a file or folder needs, told by what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cosim.captures.pcap import is_pcap, read_pcap
from cosim.captures.traffic import TrafficCapture
from cosim.errors import InputError, Location

_KNOWN = (
    "a packet capture (pcap, pcapng), flow records (CSV, conn.log, HPCC's list), "
    "counters of ports (.npz, CSV), "
    "or NCCL Inspector's JSON"
)


def read_capture(path: Path) -> TrafficCapture:
    """Read a capture.

    Raises
    ------
    InputError
        It isn't there, is none of those that are known, or is damaged.
    """
    place = Location(str(path))
    try:
        if path.is_dir():
            return _read_folder(path)
        with path.open("rb") as file:
            begin = file.read(4096)
        if not begin:
            raise InputError("the file is empty", location=place, hint=f"give {_KNOWN}")
        if begin.startswith(b"PK"):
            from cosim.captures.counters import read_npz

            return read_npz(path)
        return read_pcap(path) if is_pcap(begin) else _read_text(path, begin)
    except OSError as error:
        raise InputError(error.strerror or str(error), location=place) from error


def _read_folder(path: Path) -> TrafficCapture:
    from cosim.captures.inspector import inspector_files, read_inspector

    files = inspector_files(path)
    if not files:
        raise InputError(
            "neither a run nor a folder of NCCL Inspector's",
            location=Location(str(path)),
            hint="give what `cosim run --out` wrote, or a folder with *.log, *.json or *.jsonl of Inspector",
        )
    return read_inspector(path, files)


def _read_text(path: Path, begin: bytes) -> TrafficCapture:
    from cosim.captures.inspector import is_inspector, read_inspector

    if is_inspector(begin):
        return read_inspector(path)
    head = begin.partition(b"\n")[0].decode("utf-8", "replace").strip()
    names = {name.strip() for name in head.split(",")}
    if "port" in names:
        from cosim.captures.counters import read_csv

        return read_csv(path, _lines(path))
    from cosim.captures import flows

    if head.startswith(("#separator", "#fields")):
        return flows.read_zeek(path, _lines(path))
    if "src" in names or names >= {*flows.NFDUMP}:
        return flows.read_flow_csv(path, _lines(path))
    if head.isascii() and head.isdecimal() and len(head) < 12:
        return flows.read_flow_list(path, _lines(path))
    raise InputError(
        "none of the captures that are known", location=Location(str(path)), hint=f"give {_KNOWN}"
    )


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
