"""Containers of the kernel's as Python has them: what is held, what is copied, what lives how long."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim.kernel import Columns, kernel, record
from cosim.kernel.columns import longer
from cosim.kernel.library import KernelLibraryError
from cosim.network.core import make_calendar

plain_memory = pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", "") or sys.platform != "linux",
    reason="counts memory as Linux does where nobody watches it",
)


class Calendar(Columns):
    """A container with a record and GROWN columns."""


class Store(Columns):
    """One with COLUMNs."""


class Core(Columns):
    """One with parts and a GRID."""


class Reported(Columns):
    """One with numbers."""


def _store() -> Store:
    return Store(unused=np.zeros(64, np.int64))


def test_what_is_not_given_is_empty_or_zero() -> None:
    core = Core()
    assert len(core.path_ptr) == 0
    assert len(core.pending) == 0
    assert core.state["grant"].tolist() == [0]
    assert Reported().count == 0


def test_a_column_is_the_array_that_was_put_there() -> None:
    store, rows = Store(), np.zeros(3, record("row"))
    store.put(rows=rows)
    assert store.rows is rows
    store.rows = rows = np.zeros(5, record("row"))  # the kernel sees it, too
    assert store.rows is rows
    place = Store._fields["rows"].place
    assert store._words[place : place + 2].tolist() == [rows.ctypes.data, 5]


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(4, np.int32),
        np.zeros((2, 2), np.int64),
        np.zeros(8, np.int64)[::2],
        np.zeros(4, ">i8"),
        np.zeros(33, np.int8)[1:].view(np.int64),
    ],
    ids=["type", "dimensions", "pieces", "order of bytes", "alignment"],
)
def test_an_array_that_c_would_read_otherwise_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(TypeError, match=r"core\.path_ptr is int64 in one piece"):
        Core(path_ptr=wrong)


def test_a_grid_has_two_dimensions() -> None:
    core = Core(link_busy=np.zeros((3, 5), np.int64))
    place = Core._fields["link_busy"].place
    assert core._words[place + 1 : place + 3].tolist() == [3, 5]
    with pytest.raises(TypeError, match="link_busy"):
        core.put(link_busy=np.zeros(3, np.int64))


def test_a_part_is_of_its_container() -> None:
    calendar = Calendar()
    core = Core(calendar=calendar)
    assert core.calendar is calendar
    with pytest.raises(TypeError, match=r"core\.store is a store, not a calendar"):
        core.put(store=calendar)


def test_numbers_are_set_and_read() -> None:
    reported = Reported(count=3)
    reported.num_closed = 2**62
    assert (reported.count, reported.num_closed) == (3, 2**62)
    assert reported.copy(count=4).count == 4


def test_a_container_that_the_header_lacks_is_named() -> None:
    with pytest.raises(TypeError, match=r"kernel\.h has no container `struct nothing_known`"):
        type("NothingKnown", (Columns,), {})


def test_a_class_of_a_class_is_the_same_container() -> None:
    class More(Reported):
        pass

    assert More.container == "reported"
    assert More(count=2).count == 2


def test_grown_columns_keep_what_they_have() -> None:
    reported = Reported()
    reported.reserve(time=3)
    assert len(reported.time) == 3
    reported.time[:] = [1, 2, 3]
    reported.reserve(time=4)
    assert reported.time.tolist() == [1, 2, 3, 0, 0, 0]
    reported.put(time=np.array([7, 8]))
    assert reported.time.tolist() == [7, 8]
    assert len(reported.lengthen("time", 3)) >= 3


def test_records_begin_with_a_cache_line() -> None:
    calendar = Calendar()
    for rows in (1, 10, 100_000):
        calendar.reserve(events=rows)
        assert calendar.events.ctypes.data % 64 == 0
        assert not calendar.events[-1].tolist()[0]


@plain_memory
def test_memory_that_nobody_wrote_to_takes_none() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    reported = Reported()
    before = resident()
    reported.reserve(time=2**27)  # a gigabyte
    reported.time[0] = 1
    assert resident() - before < 2**27


def test_the_kernel_grows_what_python_sees() -> None:
    calendar, store = make_calendar(), _store()
    store.put(
        tables=np.zeros(1, record("table")),
        rows=np.zeros(1000, record("row")),
        reps=np.zeros(1, record("repetition")),
    )
    store.tables["reps"], store.tables["free"], store.reps["rows"] = 1, kernel.NONE, 1000
    core = Core(calendar=calendar, store=store)
    kernel.open_group(store, 0, 0, 0, 0, 0, 0, 0)
    before = calendar.events
    count = np.arange(1000, dtype=np.int32)
    when = np.arange(1000) + 5
    assert kernel.give(core, 1000, np.zeros(1000, np.int32), count, count, when, when) == kernel.NONE
    assert len(calendar.events) >= 1000 > len(before)
    assert calendar.state["num_events"][0] == 1000


def test_a_view_outlives_its_container() -> None:
    reported = Reported(time=np.arange(1000))
    view = reported.time
    del reported
    gc.collect()
    Reported(time=np.full(1000, -1))
    assert view.tolist() == list(range(1000))


def test_memory_is_given_back() -> None:
    """A thousand times a hundred megabytes would not be there."""
    for _ in range(1000):
        reported = Reported()
        reported.reserve(time=100_000_000 // 8)
        reported.time[0] = 1


def test_the_end_of_the_process_is_quiet() -> None:
    program = (
        "import numpy as np\nfrom cosim.kernel import Columns\n"
        "class Reported(Columns): pass\n"
        "kept = Reported(time=np.arange(5)); view = kept.time; kept.itself = kept\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_a_copy_has_a_life_of_its_own() -> None:
    calendar, links = Calendar(), np.arange(4)
    core = Core(calendar=calendar, path_ptr=links, pending=np.zeros(5, record("pending")))
    core.state["grant"] = 7
    core.pending["time"] = [1, 2, 3, 4, 5]
    copied = core.copy({"pending": 2})
    assert copied.state["grant"].tolist() == [7]
    assert copied.pending["time"].tolist() == [1, 2]
    assert copied.path_ptr is links
    assert copied.calendar is calendar
    copied.state["grant"], copied.pending["time"] = 8, 9
    assert core.state["grant"].tolist() == [7]
    assert core.pending["time"].tolist() == [1, 2, 3, 4, 5]
    other = np.arange(3)
    assert core.copy(path_ptr=other).path_ptr is other
    del core
    assert copied.pending["time"].tolist() == [9, 9]


def test_rows_that_no_machine_has_are_refused_and_nothing_is_lost() -> None:
    reported = Reported(time=np.arange(3))
    with pytest.raises(MemoryError, match=r"no memory for 1125899906842624 rows of reported\.time"):
        reported.reserve(time=2**50)
    with pytest.raises(MemoryError):
        reported.reserve(time=2**62)
    assert reported.time.tolist() == [0, 1, 2]


_SHORT = """
import resource, sys
import numpy as np
from cosim.kernel import Columns, kernel, record
from cosim.kernel.library import KernelLibraryError
from cosim.network.core import make_calendar
class Store(Columns): pass
class Core(Columns): pass
rows = 2_000_000
store = Store(unused=np.zeros(64, np.int64), tables=np.zeros(1, record("table")),
              rows=np.zeros(1, record("row")), reps=np.zeros(1, record("repetition")))
store.tables["reps"], store.tables["free"], store.reps["rows"] = 1, kernel.NONE, 1
calendar = make_calendar()
core = Core(calendar=calendar, store=store)
kernel.open_group(store, 0, 0, 0, 0, 0, 0, 0)
zero, when = np.zeros(rows, np.int32), np.arange(rows) + 5
kernel.give(core, 10, zero, zero, zero, when, when)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
try:
    kernel.give(core, rows, zero, zero, zero, when, when)
except KernelLibraryError as error:
    print(error)
print(calendar.state["num_events"][0] >= 10, calendar.events["cause"][:3].tolist())
"""


@plain_memory
def test_a_loop_that_runs_out_of_memory_comes_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SHORT], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == ["out of memory in the kernel", "True [5, 6, 7]"]


def test_longer_doubles() -> None:
    array = np.arange(20)
    assert longer(array, 20) is array
    grown = longer(array, 21)
    assert len(grown) == 40
    assert grown[:20].tolist() == array.tolist()
    assert longer(np.zeros((0, 3)), 1).shape == (16, 3)


def test_wrong_arguments_are_refused_by_name() -> None:
    core, zero, when = Core(), np.zeros(1, np.int32), np.zeros(1, np.int64)
    with pytest.raises(Exception, match="give takes core, not reported"):
        kernel.give(Reported(), 0, zero, zero, zero, when, when)
    with pytest.raises(Exception, match="give takes int32 in one piece, not int64"):
        kernel.give(core, 0, when, zero, zero, when, when)
    with pytest.raises(Exception, match="not C contiguous"):
        kernel.give(core, 0, np.zeros(4, np.int32)[::2], zero, zero, when, when)
    constant = np.zeros(1, np.int64)
    constant.flags.writeable = False
    assert (
        kernel.give(Core(calendar=Calendar(), store=_store()), 0, zero, zero, zero, constant, when)
        == kernel.NONE
    )
    with pytest.raises(AttributeError, match="the kernel has no nothing"):
        _ = kernel.nothing
    with pytest.raises(AttributeError, match="called by its address"):
        _ = kernel.run_aware
    assert issubclass(KernelLibraryError, Exception)
