"""Reads the text that a test of nccl-tests prints: ``all_reduce_perf -b 1K -e 1G -f 2``.

Header lines begin with ``#``; each rank has one, ``#  Rank  0 Group  0 Pid 96016 on host-a device  0 ...``;
a row has size, count, type, reduction, root (not of all tests), then time, algbw, busbw and errors, out of
place and in place (nccl-tests, ``src/common.cu``, BSD-3-Clause). Times out of place count. Which collective
it is follows from the line that names the test, where there is one, or from busbw over algbw and the column
of reductions (``doc/PERFORMANCE.md``).
"""

from __future__ import annotations

import math
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
_ROUNDED = 0.006
"""GB/s by which a printed rate may be off."""


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
    ends = [number for number, line in enumerate(lines, 1) if _LAST in line]
    if not ends:
        where = Location(str(path), len(lines))
        raise InputError(f"the text ends before its last line, '# {_LAST}'", location=where, hint="all of it")
    if len(ends) > 1:
        where = Location(str(path), ends[0])
        raise InputError(f"{len(ends)} tests are in it", location=where, hint="give each a file of its own")
    for number, line in enumerate(lines, 1):
        if "FAILED" in line:
            raise InputError(
                f"{line.strip('# ')!r}: data came wrong, so times say nothing",
                location=Location(str(path), number),
            )
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
    rooted: bool


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
    if not 0 < time < math.inf:
        raise InputError(f"a time of {time:g} us; times are above 0", location=where)
    rooted = start == 5 and columns[4] != "-1"
    return _Size(size, time / 1e6, columns[3], algorithm, bus, rooted)


def _collective(path: Path, lines: list[str], rows: list[_Size], ranks: int) -> Collective:
    """By the line that names it, or by what bus bandwidth is made of; both have to agree with the ranks."""
    where = Location(str(path))
    known = ", ".join(_TESTS)
    named = next((match[1] for line in lines if (match := _NAMED.search(line))), None)
    if named is not None and named not in _TESTS:
        raise InputError(f"a test of {named}; fabrics are fitted to {known}", location=where)
    if any(row.rooted for row in rows):
        raise InputError(f"a test with a root; fabrics are fitted to {known}", location=where)
    largest = max(rows, key=lambda row: row.algorithm_gb_s)
    rate, bus, part = largest.algorithm_gb_s, largest.bus_gb_s, (ranks - 1) / ranks
    if named is None and rate * (1 - part) < 4 * _ROUNDED:
        raise InputError("its rates are too small to tell which collective it is", location=where, hint=_HINT)
    twice, once = (abs(bus - one * rate) < _ROUNDED * (1 + one) for one in (2 * part, part))
    adds = largest.reduction != "none"
    if twice and adds and named in (None, "all_reduce"):
        return Collective.ALL_REDUCE
    if once and named != "all_reduce":
        if named is not None:
            return _TESTS[named]
        if adds:
            return Collective.REDUCE_SCATTER
        raise InputError("it may be all_gather or alltoall", location=where, hint=_HINT)
    others = ", ".join(list(_TESTS)[1:])
    raise InputError(
        f"busbw is {bus / rate:.2f} of algbw: with {ranks} ranks it would be {2 * part:.2f} of an "
        f"all-reduce, {part:.2f} of {others}; another test, or other ranks than its header has",
        location=where,
    )


_HINT = "put '# Collective test starting: all_gather_perf', or what it is, at its head, as newer versions do"
