"""Plug-ins: loaded from a file beside the scenario; what is wrong with one is said by class and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

import cosim
from cosim.errors import CosimError, InputError, NetworkError
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.congestion import Control
from cosim.units import PS_PER_MS, PS_PER_US
from tests.network.congestion.worlds import graph as congestion_graph
from tests.network.congestion.worlds import watch


class Paced(Control):
    """As many Gbit/s as its weight says."""

    gives: ClassVar[Literal["window", "rate"]] = "rate"

    def start(self, c: Any) -> None:
        c.rate = c.weight * 1e9

    def update(self, c: Any) -> None:
        self.start(c)


class PacedInC(Paced):
    """The same in C."""

    kernel = "paced.c"


SCENARIO = """
topology: {kind: switch, endpoints: 3, rate: 10Gbps, latency: 1us}
network: {model: congestion, control: CONTROL}
jobs:
  - workload: {kind: periodic, compute: 1us, size: 1MB, communication: all_to_all, ranks: 3}
"""
HEAD = """
import numpy as np
from typing import ClassVar
from cosim.network.congestion import Control
"""


def run(tmp_path: Path, text: str, control: str = "{plugin: mine.py:Mine}") -> cosim.Run:
    (tmp_path / "mine.py").write_text(HEAD + text)
    return cosim.run(loads(SCENARIO.replace("CONTROL", control), base=tmp_path))


def test_a_class_beside_the_scenario_runs_and_takes_its_fields(tmp_path: Path) -> None:
    text = """
class Mine(Control):
    packets: float = 4.0
    def update(self, c):
        c.window = self.packets * c.mss
"""
    slow = run(tmp_path, text, "{plugin: mine.py:Mine, packets: 0.25}")
    fast = run(tmp_path, text)
    assert slow.records.end_ps > fast.records.end_ps
    with pytest.raises(
        InputError, match=r"network\.control\.pakets: unknown key 'pakets'; did you mean 'packets'"
    ):
        run(tmp_path, text, "{plugin: mine.py:Mine, pakets: 2}")


def test_a_class_may_scale_its_growth_for_mltcp_by_itself(tmp_path: Path) -> None:
    """``c.gain`` is 1 without MLTCP; with it, what the wrapper would have multiplied growth by."""
    text = """
class Mine(Control):
    scales_itself: ClassVar[bool] = OWN
    def start(self, c):
        c.window = c.mss / 50
    def update(self, c):
        c.window = np.where(c.marked > 0, c.window / 2, c.window + GAIN * c.mss / 50)
    def marking(self, rate_bps, mtu_bytes):
        return 9000.0, 9000.0, 1.0
"""
    left = text.replace("OWN", "False").replace("GAIN", "1")
    own = text.replace("OWN", "True").replace("GAIN", "c.gain")
    wrapper = "{kind: mltcp, over: {plugin: mine.py:Mine}}"
    plain = [run(tmp_path, mine).records for mine in (left, own)]
    assert plain[0].digest == plain[1].digest
    scaled = [run(tmp_path, mine, wrapper).records for mine in (left, own)]
    assert scaled[0].end_ps == pytest.approx(scaled[1].end_ps, rel=1e-6)
    assert scaled[0].digest != plain[0].digest


@pytest.mark.parametrize("control", [Paced, PacedInC])
def test_connections_of_a_host_take_turns_at_its_port(control: type[Control]) -> None:
    """They may send 10, 20, 60 and 70 Gbit/s of 100: the first two do, what is left is halved (max-min). In
    classes, each has what those before it leave.
    """
    wants = [10e9, 20e9, 60e9, 70e9]
    links = [(5, k, 100e9, PS_PER_US) for k in range(5)]
    flows = [(0, k, 10**8) for k in range(1, 5)]

    def rates(priorities: list[int]) -> list[float]:
        world = congestion_graph(5, 6, links)
        rates = watch(
            world,
            control(),
            flows,
            until_ps=PS_PER_MS,
            step_ps=PS_PER_US * 100,
            priorities=priorities,
            weights=[want / 1e9 for want in wants],
        ).rate
        return list(rates[-1])

    assert rates([0, 0, 0, 0]) == pytest.approx([10e9, 20e9, 35e9, 35e9], rel=1e-9)
    assert rates([1, 1, 1, 0]) == pytest.approx([10e9, 10e9, 10e9, 70e9], rel=1e-9)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "c.window = c.window * float('nan')",
            r"Mine: column 'window' is nan for the connection of job 0 from",
        ),
        ("c.window = -c.window", r"Mine: column 'window' is -\d+\.\d+ for .*, at least 0"),
        (
            "c.window = np.ones(len(c) + 1)",
            r"column 'window' was given shape \(\d+,\), but there are \d+ rows",
        ),
        ("c.window = 'wide'", "column 'window' was given 'wide', not numbers"),
        ("c.window = 0.0 * c.mss", r"column 'window' is 0 for .*; with less than 0\.001 packets \("),
        ("c.window = c.mss * 1e-9", r"column 'window' is .*e-0\d for .*; with less than 0\.001 packets \("),
        ("c.window = c.window * 1j", "(?s)column 'window' was given .*, not numbers"),
        ("c.mss[:] = 0", "Mine.*failed: ValueError: assignment destination is read-only"),
        ("c.rtt = 0", "column 'rtt' can't be set; a control sets window, rate, wait, slow_start"),
        ("c.window = c.markd", "there is no column 'markd'; there are .*marked"),
        ("self.window = c.window", r"Mine\.update failed: window: Instance is frozen$"),
        ("raise ValueError('no idea')", r"Mine\.update failed: ValueError: no idea"),
    ],
)
def test_a_bad_answer_names_class_and_column(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        run(tmp_path, f"class Mine(Control):\n    def update(self, c):\n        {body}\n")


@pytest.mark.parametrize(
    "marks",
    [
        "float('nan'), 1, 1",
        "None, 1, 1",
        "-1, 1, 1",
        "1, 1, 2",
        "2, 1, 1",
        "1, 1",
        "0, float('inf'), 1",
        "1j, 2, 1",
    ],
)
def test_a_marking_that_is_none_is_refused(tmp_path: Path, marks: str) -> None:
    text = "class Mine(Control):\n    def update(self, c): pass\n"
    text += f"    def marking(self, rate, mtu): return {marks}\n"
    with pytest.raises(NetworkError, match=r"Mine\.marking gave \(.*bytes, the second not below the first"):
        run(tmp_path, text)


def test_a_rate_that_is_next_to_nothing_is_refused(tmp_path: Path) -> None:
    text = "class Mine(Control):\n    gives = 'rate'\n    def update(self, c): c.rate = c.line * 1e-9\n"
    with pytest.raises(NetworkError, match="with less than 1e-06 of the port"):
        run(tmp_path, text)


def test_a_setting_without_a_type_is_said_so(tmp_path: Path) -> None:
    text = "class Mine(Control):\n    packets = 4.0\n    def update(self, c): pass\n"
    with pytest.raises(
        InputError, match=r"packets = 4\.0 has no type: packets: float = 4\.0 is a setting"
    ) as caught:
        run(tmp_path, text)
    assert "http" not in str(caught.value)


@pytest.mark.parametrize(
    ("control", "message"),
    [
        ("{plugin: mine.py}", "'mine.py' is not FILE.py:CLASS"),
        ("{plugin: other.py:Mine}", "there is no file .*other.py"),
        ("{plugin: mine.py:Mime}", "has no class 'Mime'; did you mean 'Mine'"),
        (
            "{plugin: mine.py:np}",
            r"np in .*mine\.py is not a Control: write class Mine\(Control\) with update\(self, c\)",
        ),
        ("dctpc", "there is no congestion control 'dctpc'; did you mean 'dctcp'"),
        ("{kind: mltcp, over: dctcp, slope: -2}", "has to be above 0 for r from 0 to 1"),
        ("{kind: mltcp, over: {kind: mltcp, over: dctcp}}", "not over MLTCP"),
    ],
)
def test_a_control_that_is_not_there_is_named(tmp_path: Path, control: str, message: str) -> None:
    with pytest.raises(CosimError, match=message):
        run(tmp_path, "class Mine(Control):\n    pass\n", control)


def test_a_file_that_does_not_import_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine.py.*SyntaxError"):
        run(tmp_path, "class Mine(Control:\n")


def test_settings_without_effect_draw_warnings(tmp_path: Path) -> None:
    two = SCENARIO + "    weight: 2\n  - workload: {kind: periodic, compute: 1us, size: 1MB, ranks: 2}\n"
    two += "share_endpoints: true\n"
    text = two.replace("CONTROL", "dctcp, pfc_threshold: 1MB, ecn_max: 2MB")
    shown = "\n".join(build(loads(text)).warnings)
    assert "network.pfc_threshold: has no effect: nothing is paused: pfc is off" in shown
    assert "network.ecn_max: has no effect" in shown
    assert "jobs[0].weight: has no effect" in shown
    text = two.replace("CONTROL", "fixed").replace("weight: 2", "priority: 1")
    assert not build(loads(text)).warnings
    over = build(loads(two.replace("CONTROL", "{kind: mltcp, over: fixed}"))).warnings
    assert "network.control: has no effect: MLTCP scales growth" in "\n".join(over)


# -- in C

IN_C = """
#include "kernel.h"
EXPORT void mine(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                 const double *parameters) {
  for (int64_t i = 0; i < n; i++) {
    rows[i].window = ANSWER;
    state[MOST_STATES * rows[i].conn] = OWN;
  }
}
"""
POINTER = """
import ctypes
from pathlib import Path
from cosim.kernel.build import SOURCES, compile_c
HERE = Path(__file__).parent
compile_c(HERE / "mine.c", HERE / "mine.so", [f"-I{SOURCES}"])
pointer = ctypes.CDLL(str(HERE / "mine.so")).mine
address = ctypes.cast(pointer, ctypes.c_void_p).value
"""
NUMBA = """
import numba
@numba.cfunc(Control.numba_signature())
def compiled(n, rows, telemetry, state, parameters):
    for row in numba.carray(rows, n):
        row.window = 3 * row.mss
        state[8 * row.conn] = 0.0
"""
CFFI = "import cffi\nboxed = cffi.FFI().cast('void (*)(void)', address)\n"


def run_compiled(
    tmp_path: Path, kernel: str, head: str = "", answer: str = "3 * rows[i].mss", own: str = "0"
) -> cosim.Run:
    (tmp_path / "mine.c").write_text(IN_C.replace("ANSWER", answer).replace("OWN", own))
    state = "    state: ClassVar[dict[str, float]] = {'own': 0.0}\n"
    return run(tmp_path, f"{head}\nclass Mine(Control):\n{state}    kernel = {kernel}\n")


@pytest.mark.parametrize(
    ("kernel", "head"),
    [
        ("'mine.c'", ""),
        ("('mine.c', 'mine')", ""),
        ("pointer", POINTER),
        ("address", POINTER),
        ("compiled", NUMBA),
        ("compiled.address", NUMBA),
        ("boxed", POINTER + CFFI),
    ],
)
def test_a_function_of_c_is_asked_wherever_it_comes_from(tmp_path: Path, kernel: str, head: str) -> None:
    for name in ("numba", "cffi"):
        if f"import {name}" in head:
            pytest.importorskip(name)
    compiled = run_compiled(tmp_path, kernel, head)
    text = (
        "class Mine(Control):\n    def update(self, c):\n        c.window = 3 * c.mss\n    start = update\n"
    )
    assert compiled.records.digest == run(tmp_path, text).records.digest


def test_a_control_that_is_built_in_can_be_named(tmp_path: Path) -> None:
    text = """
from cosim.network.congestion.controls.dctcp import Dctcp
class Mine(Dctcp):
    packets: float = 10.0
    kernel = "update_newreno"
    def parameters(self):
        return [0.5, self.packets, 2.0]
"""
    assert run(tmp_path, text).records.end_ps > 0


@pytest.mark.parametrize(
    ("kernel", "head", "message"),
    [
        (
            "plain",
            "def plain(n, rows, telemetry, state, p): pass",
            r"Mine\.kernel is a function of Python \(plain\), .*it can be the name of a C file beside the",
        ),
        ("1.5", "", r"Mine\.kernel is 1\.5, which is no function of C; it can be"),
        ("True", "", r"Mine\.kernel is True, which is no function of C"),
        ("'other.c'", "", r"Mine\.kernel is 'other\.c', but there is no file .*other\.c"),
        ("'update_new'", "", r"neither a C file \(NAME\.c\) nor one of .*update_newreno"),
        ("('mine.c', 'yours')", "", r"mine\.c.* yours"),
    ],
)
def test_what_is_no_function_of_c_is_refused(tmp_path: Path, kernel: str, head: str, message: str) -> None:
    with pytest.raises(CosimError, match=message):
        run_compiled(tmp_path, kernel, head)


def test_c_that_does_not_compile_says_where(tmp_path: Path) -> None:
    with pytest.raises(CosimError, match=r"mine\.c:6: .*nothing"):
        run_compiled(tmp_path, "'mine.c'", answer="nothing")


@pytest.mark.parametrize(
    ("answer", "own", "message"),
    [
        ("0.0 / 0.0", "0", r"Mine: column 'window' is -?nan for the connection of job 0 from"),
        ("1.0 / 0.0", "0", r"Mine: column 'window' is inf for"),
        ("-rows[i].mss", "0", r"Mine: column 'window' is -\d+\.0 for .*, at least 0"),
        ("rows[i].mss", "0.0 / 0.0", r"Mine: column 'own' is -?nan for"),
    ],
)
def test_what_is_no_number_is_noticed_of_c_too(tmp_path: Path, answer: str, own: str, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        run_compiled(tmp_path, "'mine.c'", answer=answer, own=own)


def test_c_that_was_edited_is_compiled_anew(tmp_path: Path) -> None:
    slow = run_compiled(tmp_path, "'mine.c'", answer="rows[i].mss / 4")
    assert slow.records.end_ps > run_compiled(tmp_path, "'mine.c'").records.end_ps
