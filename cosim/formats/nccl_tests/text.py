"""Reads the text that a test of nccl-tests prints: ``all_reduce_perf -b 1K -e 1G -f 2``.

Header lines begin with ``#``; each rank has one, ``#  Rank  0 Group  0 Pid 96016 on host-a device  0 ...``;
a row has size, count, type, reduction, root (not of all tests), then time, algbw, busbw and errors, out of
place and in place (nccl-tests, ``src/common.cu``, BSD-3-Clause). Times out of place count. Which collective
it is follows from the line that names the test, where there is one, or from busbw over algbw and the column
of reductions (``doc/PERFORMANCE.md``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cosim.errors import InputError, Location
from cosim.experiment.fit_fabric import NcclTest
from cosim.pattern.template import Collective

_NAMED = re.compile(r"Collective test starting: *(\w+?)(?:_perf)?\s*$")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s.*\bon\s+(\S+)\s+device\b")
_SIZES = re.compile(r"\s*\d+\s+\d+\s+\S+\s")
_LAST = "Avg bus bandwidth"
_TESTS = {
    "all_reduce": Collective.ALL_REDUCE, "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER, "alltoall": Collective.ALL_TO_ALL,
}  # fmt: skip
_CLOSE, _EXACT = 0.02, 5.0
"""Busbw over algbw is known within so much, of rows of so many GB/s."""


def read_test(path: Path) -> NcclTest:
    """The test whose output a file has, whole.

    Raises
    ------
    InputError
        It isn't such text, ends too early, has no times out of place, or is of a test that isn't modelled.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't be read: {error}", location=Location(str(path))) from None
    rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if _SIZES.match(line)]
    if not rows:
        raise InputError(
            "no row of sizes and times in it", location=Location(str(path)), hint="what nccl-tests print"
        )
    if not any(_LAST in line for line in lines):
        where = Location(str(path), len(lines))
        raise InputError(f"the text ends before its last line, '# {_LAST}'", location=where, hint="all of it")
    found = [match for line in lines if (match := _RANK.match(line))]
    if not found:
        raise InputError(
            "no line of a rank ('#  Rank  0 Group  0 Pid 1 on HOST device  0') in it: how many there are and "
            "where isn't known",
            location=Location(str(path)),
            hint="keep the header",
        )
    ranks, hosts = len({match[1] for match in found}), len({match[2] for match in found})
    if ranks < 2:
        raise InputError("it has one rank: nothing is sent", location=Location(str(path)))
    collective = _collective(path, lines, rows, ranks)
    return NcclTest(collective, ranks, hosts, tuple((row.size_bytes, row.seconds) for row in rows))


@dataclass(frozen=True, slots=True)
class _Size:
    size_bytes: int
    seconds: float
    reduction: str
    algorithm_gb_s: float
    bus_gb_s: float


def _row(path: Path, number: int, line: str) -> _Size:
    """Out of place: the first time, algbw and busbw after the columns of what was done."""
    where, columns = Location(str(path), number), line.split()
    # size, count, type, redop, root; newer versions leave none of these out, older ones no root.
    start = 5 if len(columns) >= 13 else 4 if len(columns) == 12 else 0
    if not start:
        raise InputError(
            f"{len(columns)} columns; 12 or 13 are expected, times out of place, then in place",
            location=where,
        )
    if columns[start] == "N/A":
        raise InputError(
            "no time out of place, only in place", location=where, hint="run it without in-place buffers"
        )
    try:
        time, algorithm, bus = (float(one) for one in columns[start : start + 3])
        size = int(columns[0])
    except ValueError:
        raise InputError(f"{line.strip()!r} has no number where one is expected", location=where) from None
    return _Size(size, time / 1e6, columns[3], algorithm, bus)


def _collective(path: Path, lines: list[str], rows: list[_Size], ranks: int) -> Collective:
    """By the line that names it, or by what bus bandwidth is made of."""
    where = Location(str(path))
    known = ", ".join(_TESTS)
    named = next((match[1] for line in lines if (match := _NAMED.search(line))), None)
    if named is not None:
        if named not in _TESTS:
            raise InputError(f"a test of {named}; fabrics are fitted to {known}", location=where)
        return _TESTS[named]
    largest = max(rows, key=lambda row: row.algorithm_gb_s)
    if largest.algorithm_gb_s < _EXACT:
        raise InputError("its rates are too small to tell which collective it is", location=where, hint=_HINT)
    factor = largest.bus_gb_s / largest.algorithm_gb_s
    part, adds = (ranks - 1) / ranks, largest.reduction != "none"
    if adds and abs(factor - 2 * part) < _CLOSE:
        return Collective.ALL_REDUCE
    if adds and abs(factor - part) < _CLOSE:
        return Collective.REDUCE_SCATTER
    if not adds and abs(factor - part) < _CLOSE:
        raise InputError("it may be all_gather or alltoall", location=where, hint=_HINT)
    raise InputError(
        f"busbw is {factor:.2f} of algbw: with {ranks} ranks it would be {2 * part:.2f} of an all-reduce, "
        f"{part:.2f} of {', '.join(list(_TESTS)[1:])}; another test, or other ranks than its header has",
        location=where,
    )


_HINT = "put '# Collective test starting: all_gather_perf', or what it is, at its head, as newer versions do"
