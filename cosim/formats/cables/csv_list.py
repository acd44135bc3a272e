"""Cables as CSV: a header, then a cable on each line; also what NetBox exports as CSV.

Two columns name the devices (`from,to`, `device_a,device_b`, `side_a_device,side_b_device`,
`hostname,peerHostname` ...); others may say rate, latency, how many cables a line stands for, their status
(what is planned or gone is left out), and the role of either device (`role_a`). Fields end with a comma, a
semicolon or a tab; `#` begins a comment.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import read_text
from cosim.formats.cables.columns import (
    COUNT,
    LATENCY,
    ONE,
    RATE,
    STATES,
    STATUS,
    TWO,
    is_one_of,
    plain,
    role_of,
)
from cosim.formats.cables.rates import latency_of, rate_of, times_of
from cosim.topology.file_format import Cables, TopologyFormat


class CsvCables(TopologyFormat):
    """Cables as CSV: from, to, rate ... (also NetBox's export)"""

    def refuses(self, start: str, path: Path) -> str | None:  # noqa: ARG002 - the content says it
        """See :class:`TopologyFormat`."""
        header = next((line for line in start.splitlines() if line.strip() and line[:1] != "#"), "")
        if not _columns(header):
            return "its first line doesn't name two columns of devices, as in from,to,rate"
        return None

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """See :class:`TopologyFormat`."""
        text = read_text(path, TopologyError).removeprefix("\ufeff")
        lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and line[:1] != "#"]
        header = lines[0][1] if lines else ""
        found = _columns(header)
        if not found:
            raise cables.wrong("no columns of devices", 1, "a first line such as from,to,rate")
        mark = _mark(header)
        names = [plain(name) for name in next(csv.reader([header], delimiter=mark))]
        used = {place for places in found.values() for place in places}
        for place, name in enumerate(names):
            if place not in used and name:
                report.ignored(f"column {name}")
        try:
            for number, line in lines[1:]:
                fields = [field.strip() for field in next(csv.reader([line], delimiter=mark, strict=True))]
                if not any(fields):
                    continue
                if len(fields) > len(names):
                    raise cables.wrong(f"{len(fields)} fields, and {len(names)} columns", number)
                fields += [""] * (len(names) - len(fields))
                _cable(fields, names, found, number, cables, report)
        except csv.Error as problem:
            raise cables.wrong(f"not CSV: {problem}", number) from None


def _cable(
    fields: list[str],
    names: list[str],
    found: Mapping[str, list[int]],
    number: int,
    cables: Cables,
    report: ReportBuilder,
) -> None:
    def said(what: str) -> tuple[str, str]:
        return next(((fields[k], names[k]) for k in found.get(what, ()) if fields[k]), ("", ""))

    status = plain(said("status")[0])
    if status not in STATES:
        report.ignored(f"cable that is {status}")
        return
    one, two = said("one")[0], said("two")[0]
    if not one or not two:
        raise cables.wrong("a cable with one end", number, "both devices")
    try:
        rate, latency = rate_of(*said("rate")), latency_of(*said("latency"))
        times = times_of(said("count")[0])
    except ValueError as problem:
        raise cables.wrong(str(problem), number) from None
    for name, what in ((one, "role one"), (two, "role two")):
        cables.node(name, role_of(said(what)[0]), number)
    for _ in range(times):
        cables.link(one, two, rate_bps=rate, latency_ps=latency, line=number)


def _mark(header: str) -> str:
    return max(",;\t", key=header.count)


def _columns(header: str) -> dict[str, list[int]]:
    """Where columns of each meaning are; empty: there aren't two of devices."""
    mark = _mark(header)
    if mark not in header:
        return {}
    try:
        names = [plain(name) for name in next(csv.reader([header], delimiter=mark))]
    except csv.Error:
        return {}
    found: dict[str, list[int]] = {}
    for what, known in (("one", ONE), ("two", TWO)):
        # `device a` comes before `a`, where both could be it.
        places = sorted((known.index(name), k) for k, name in enumerate(names) if name in known)
        exact = [k for _, k in places]
        if not exact:
            return {}
        named = [k for k in exact if any(word in names[k] for word in ("device", "host", "system", "name"))]
        found[what] = [*named, *(k for k in exact if k not in named)][:1]
    for what, known in (("rate", RATE), ("latency", LATENCY), ("count", COUNT), ("status", STATUS)):
        found[what] = [k for k, name in enumerate(names) if is_one_of(name, known)]
    sides = (
        ("one", ("a", "from", "source", "src", "local")),
        ("two", ("b", "to", "target", "dst", "z", "remote", "peer")),
    )
    for what, words in sides:
        found[f"role {what}"] = [
            k for k, name in enumerate(names) if "role" in name.split() and set(name.split()) & set(words)
        ]
    return found
