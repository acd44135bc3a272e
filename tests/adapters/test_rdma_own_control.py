"""A control of one's own, packet by packet: cosim's of C as if they were a user's, beside the server's."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from cosim.context import Context
from cosim.errors import CosimError
from cosim.experiment.scenario import loads
from cosim.kernel.layout import record
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.protocol import adapters
from cosim.protocol.client import RemoteNetwork, launch
from cosim.protocol.rdma import Ns3Rdma
from tests.adapters.ns3_worlds import US, star
from tests.adapters.rdma_worlds import rdma, run

INCAST = [(k, 8, 2_000_000) for k in range(8)]


def own(base: type[Control], folder: Path) -> type[Control]:
    """A user's class with that control's numbers, and a C file that answers as it does."""
    name = base.__name__.lower()
    arguments = "int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state"
    call = f"update_{name}(n, rows, telemetry, state, parameters);"
    (folder / f"{name}.c").write_text(
        f'#include <math.h>\n#include "kernel.h"\n#include "numbers.c"\n#include "controls.c"\n'
        f"EXPORT void mine({arguments}, const double *parameters) {{ {call} }}\n"
    )
    made = type(f"My{base.__name__}", (base,), {"kernel": (f"{name}.c", "mine"), "__module__": "mine"})
    made.__doc__ = "A user's"
    return made


def ended(control: Any, **wanted: Any) -> np.ndarray[Any, Any]:
    """When the flows of an incast end."""
    rdma()
    session = Ns3Rdma.model_validate({"control": control, **wanted}).build(Context(Path()))
    assert isinstance(session, RemoteNetwork)
    ran = run(star(9, 100.0, US), INCAST, session=session)
    assert min(ran.end_ps) > 0
    return np.array(ran.end_ps, np.float64)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the C file of a class lies that a test makes."""
    monkeypatch.setattr("cosim.network.plugged._folder_of", lambda _: tmp_path)
    return tmp_path


@pytest.mark.parametrize(("base", "within"), [(Dctcp, 0.02), (Swift, 0.01), (Timely, 0.01)])
def test_a_control_of_ones_own_fares_as_the_servers(base: type[Control], within: float, beside: Path) -> None:
    """They share no line: the server's looks at each acknowledgement, the user's at each round trip."""
    mine, built_in = ended(own(base, beside)()), ended(base())
    assert mine.mean() == pytest.approx(built_in.mean(), rel=within)
    assert mine.max() == pytest.approx(built_in.max(), rel=within)


def test_telemetry_of_one_acknowledgement_a_round_trip_slows_hpcc_down(beside: Path) -> None:
    """The server's compares each acknowledgement with the one before."""
    mine, built_in = ended(own(Hpcc, beside)()), ended(Hpcc())
    assert built_in.mean() < mine.mean() < 1.15 * built_in.mean()


def test_a_rate_waits_and_chances_come_the_same_each_time(beside: Path) -> None:
    """DCQCN answers by rate, says when it wants to be asked again, and draws its notifications."""
    control = own(Dcqcn, beside)()
    first = ended(control)
    assert (ended(control) == first).all()
    assert first.mean() == pytest.approx(ended(Dcqcn()).mean(), rel=0.05)


def test_the_server_knows_the_kernels_records() -> None:
    text = (adapters.sources("ns3_rdma") / "src/rdma/own_control.h").read_text("utf-8")
    for there, here in (("ControlRow", "control_row"), ("HopSight", "hop_sight")):
        body = re.search(rf"struct {there}\n{{\n(.*?)\n}};", text, re.DOTALL)
        assert body is not None
        fields = [
            (kind, name.strip())
            for kind, names in re.findall(r"(int64_t|double) ([^;]+);", body[1])
            for name in names.split(",")
        ]
        kinds = {"int64_t": np.int64, "double": np.float64}
        wanted = record(here)
        assert [name for _, name in fields] == list(wanted.names or ())
        assert [np.dtype(kinds[kind]) for kind, _ in fields] == [wanted[k] for k in range(len(fields))]


def test_an_answer_that_is_no_number_ends_the_run_with_the_functions_name(beside: Path) -> None:
    arguments = "int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state"
    (beside / "bad.c").write_text(
        f'#include "kernel.h"\nEXPORT void bad({arguments}, const double *parameters) {{\n'
        "  rows[0].window = rows[0].first ? 1e6 : 0.0 / 0.0;\n}\n"
    )
    bad = type("Bad", (Control,), {"kernel": "bad.c", "__module__": "mine"})
    with pytest.raises(CosimError, match=r"bad in bad-.* gave -?nan as window"):
        ended(bad())


class Halved(Control):
    """Half the window at any mark"""

    state: ClassVar[dict[str, float]] = {"rounds": 0.0}
    asked: ClassVar[list[int]] = []

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:
        del rate_bps
        return 65.0 * mtu_bytes, 65.0 * mtu_bytes, 1.0

    def update(self, c: Any) -> None:
        self.asked.append(len(c))
        c.rounds = c.rounds + 1
        c.window = np.where(c.marked > 0, np.maximum(c.window / 2, c.mss), c.window + c.mss * c.limited)


HALVED = """
EXPORT void halved(int64_t n, struct control_row *rows, struct hop_sight *telemetry, double *state,
                   const double *parameters) {
  for (struct control_row *row = rows; row < rows + n; row++) {
    double half = row->window / 2 > row->mss ? row->window / 2 : row->mss;
    if (row->first) row->window = row->line * row->base_rtt / 8e12;
    else row->window = row->marked > 0 ? half : row->window + row->mss * row->limited;
  }
}
"""


def test_a_control_of_python_is_asked_and_gives_what_the_same_in_c_gives(beside: Path) -> None:
    (beside / "halved.c").write_text(f'#include "kernel.h"\n{HALVED}')
    in_c = type("HalvedInC", (Halved,), {"kernel": "halved.c", "__module__": "mine"})
    asked = len(Halved.asked)
    in_python = ended(Halved())
    assert len(Halved.asked) > asked + 100
    assert (ended(in_c()) == in_python).all()


def test_a_control_of_python_that_fails_ends_the_run_with_its_own_words(beside: Path) -> None:
    class Broken(Halved):
        """Asks for what there is not"""

        def update(self, c: Any) -> None:
            c.window = c.widnow

    with pytest.raises(CosimError, match="there is no column 'widnow'"):
        ended(Broken())


def test_tcps_controls_are_refused_with_what_would_run() -> None:
    text = "{model: ns3_rdma, control: cubic}"
    with pytest.raises(CosimError, match="no control of RDMA"):
        loads(
            f"network: {text}\ntopology: {{kind: switch, endpoints: 2, rate: 1Gbps, latency: 1us}}\n"
            "jobs: [{workload: {kind: collective, ranks: 2, size: 1MB}}]"
        )


def test_a_server_that_nobody_told_of_a_folder_loads_nothing() -> None:
    settings = Ns3Rdma.model_validate({"control": "fixed"}).settings()
    options = {"pfc": "off", "own.library": "x.so", "own.function": "x"}
    session = launch([rdma()], **vars(replace(settings, transport="own", options=options)))
    try:
        with pytest.raises(CosimError, match="without COSIM_CONTROLS"):
            session.open(star(2, 10.0, US))
    finally:
        session.close()
