"""Interpreted loops: the same results as compiled ones, whole, from the middle on, and in every scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.engine.counters import mix, mix_columns
from cosim.network import tiers, twins
from cosim.network.arrays import Arrays
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.balancing.balancers.ugal import Ugal
from cosim.network.calendar import EVENT, make_calendar, push
from cosim.network.compiled import CompiledNetwork
from cosim.network.congestion.controls.cubic import Cubic
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.jit import is_ours
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing import check_network
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from tests.examples.answers import SCENARIOS, answer_file, missing_simulator
from tests.inputs import ROOT
from tests.network.worlds import drive

Model = Callable[[], CompiledNetwork]
MODELS: dict[str, Model] = {
    "unaware": CongestionUnawareNetwork,
    "aware": CongestionAwareNetwork,
    "fair_share": FairShareNetwork,
    "spray": lambda: FairShareNetwork(Spray()),
    "dcqcn": lambda: CongestionNetwork(Dcqcn()),
    "cubic": lambda: CongestionNetwork(Cubic(), balancer=Ugal()),
    "hpcc": lambda: CongestionNetwork(Hpcc()),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
few = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
many = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
MOST_MESSAGES = 10_000
"""Of the scenarios that are interpreted here."""
SMALL = ("hierarchical", "two-jobs", "mltcp", "unfair-exact", "ring-all-reduce")


@contextmanager
def loops(how: str) -> Iterator[None]:
    """Have loops interpreted or compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSIM_LOOPS", how)
        yield


@contextmanager
def compiled_after(seconds: float) -> Iterator[None]:
    """Have loops interpreted for so long only, whether or not they are in the cache."""

    def begins(*, known: bool) -> bool:
        del known
        return not tiers.is_spent()

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COSIM_LOOPS", raising=False)
        patch.setattr(tiers, "_begins_interpreted", begins)
        patch.setattr(tiers, "MOST_S", seconds)
        patch.setattr(tiers, "_TURNS", 1)
        patch.setattr(tiers._meter, "_spent_s", 0.0)
        yield


def digest(scenario: Path) -> str:
    """The digest of a run."""
    return str(cosim.run(scenario).records.digest)


def is_small(scenario: Path) -> bool:
    """Whether it is interpreted in a few seconds."""
    text = answer_file(scenario).read_text(encoding="utf-8")
    messages = int(text.partition("\n  messages ")[2].split()[0])
    return messages <= MOST_MESSAGES and scenario.stem != "unfair-dcqcn"  # 24, of millions of round trips


# -- what a twin is ----------------------------------------------------------------------------------


class Columns(Arrays):
    """Some arrays."""

    events: Any
    grid: Any


class Whole(Arrays):
    """Another one of them."""

    columns: Columns
    more: Any


def test_a_twin_writes_where_numpy_reads() -> None:
    """Records, copies of records, and rows of rows are places in the array, not values."""
    columns = Columns(np.zeros(3, EVENT), np.zeros((2, 3), EVENT))
    view = twins._view(columns)
    view.events[1].cause = -5
    view.events[2] = view.events[1]
    view.events[1].handle = 7
    view.grid[1, 2].row = 9
    assert columns.events["cause"].tolist() == [0, -5, -5]
    assert columns.events["handle"].tolist() == [0, 7, 0]
    assert columns.grid["row"].tolist() == [[0, 0, 0], [0, 0, 9]]
    assert (len(view.events), view.grid.shape) == (3, (2, 3))
    with pytest.raises(IndexError, match="record 3"):
        view.events[3].cause = 1


def test_an_array_in_the_place_of_another_is_what_compiled_and_interpreted_code_see() -> None:
    """Whatever was looked at before, in another one, too, and whether the type stays or not."""
    columns = Columns(np.zeros(3, EVENT), np.zeros((2, 3), EVENT))
    whole = Whole(columns, np.zeros(1, EVENT))
    assert len(twins._view(whole).columns.events) == 3
    columns.put(events=np.zeros(4, EVENT))
    assert len(twins._view(whole).columns.events) == 4
    assert columns._table.tolist() == Columns(columns.events, columns.grid)._table.tolist()
    other = columns.replaced(events=np.zeros(9, EVENT))
    assert [len(twins._view(one).events) for one in (columns, other)] == [4, 9]
    for longer in (np.zeros(5, EVENT), np.zeros(5)):
        anew = Columns.of(columns, events=longer, grid=columns.grid)
        assert len(twins._view(anew).events) == 5
        assert anew._table.tolist() == Columns(longer, columns.grid)._table.tolist()
        assert anew._numba_type_ is Columns(longer, columns.grid)._numba_type_
    assert Columns.of(columns, events=columns.events, grid=columns.grid) is columns


@given(st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1))
def test_hashes_wrap_round_as_in_registers(value: int, column: int) -> None:
    """Against numpy's arrays, which wrap without a word."""
    assert int(twins.interpret(mix, np.uint64(value))) == int(
        cast("Any", mix).py_func(np.array([value], np.uint64))[0]
    )
    golden = 0x9E3779B97F4A7C15
    step = twins.interpret(mix, np.uint64((column + golden) % 2**64))
    assert mix_columns(np.array([column]))[0] == int(step)


def test_a_twin_calls_twins() -> None:
    """What is inlined when compiled, and would end the process if it were called from Python."""
    calendar = make_calendar(4)
    for time in (30, 10, 20, 10):
        twins.interpret(push, calendar, time, 1, 2, 3, 4, 5, 6)
    assert calendar.state["num_instants"][0] == 3
    assert calendar.heap["time"][0] == 10


# -- the same results --------------------------------------------------------------------------------


class FromTheFront:
    """An array of numbers for interpreted loops that has no places below 0; of records none has."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, place: Any) -> Any:
        assert np.min(place) >= 0
        return self._array[place]

    def __setitem__(self, place: Any, value: Any) -> None:
        assert np.min(place) >= 0
        self._array[place] = value


@contextmanager
def from_the_front() -> Iterator[None]:
    """Refuse indices that count from the end, as those of compiled loops must not."""
    plain = twins._view

    def view(value: Any) -> Any:
        made = plain(value)
        return FromTheFront(made) if isinstance(value, np.ndarray) and not value.dtype.names else made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twins, "_view", view)
        yield


def both(model: Model, world: World) -> None:
    """Drive a network interpreted and compiled."""
    with loops("interpreted"), from_the_front():
        network = model()
        interpreted = drive(network, world)
        assert network.interpreted
    with loops("compiled"):
        network = model()
        compiled = drive(network, world)
        assert not network.interpreted
    assert interpreted == compiled


@every_model
@few
@given(world=worlds())
def test_random_worlds_fare_alike(model: Model, world: World) -> None:
    both(model, world)


@pytest.mark.slow
@every_model
@many
@given(world=worlds())
def test_many_random_worlds_fare_alike(model: Model, world: World) -> None:
    both(model, world)


@pytest.mark.parametrize("name", SMALL)
def test_a_scenario_has_the_digest_of_its_answer(name: str) -> None:
    scenario = ROOT / "scenarios" / f"{name}.yaml"
    with loops("interpreted"):
        assert f"digest {digest(scenario)}" in answer_file(scenario).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [*filter(is_small, SCENARIOS)], ids=lambda path: path.stem)
def test_every_small_scenario_has_the_digest_of_its_answer(scenario: Path) -> None:
    if missing := missing_simulator(scenario):
        pytest.skip(f"apt-get install -y {missing}")
    with loops("interpreted"):
        assert f"digest {digest(scenario)}" in answer_file(scenario).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("model", [CongestionAwareNetwork, FairShareNetwork])
def test_the_conformance_kit_passes(model: Model) -> None:
    with loops("interpreted"):
        report = check_network(model)
        assert report.passed, str(report)


# -- from the middle on ------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("name", ["two-jobs", "mltcp"])
def test_a_run_that_is_compiled_on_its_way_has_the_same_digest(name: str, seconds: float) -> None:
    """Both loops are in the cache here: compiling only takes them from there."""
    scenario = ROOT / "scenarios" / f"{name}.yaml"
    with compiled_after(seconds):
        assert f"digest {digest(scenario)}" in answer_file(scenario).read_text(encoding="utf-8")
        assert tiers.is_spent()


@pytest.mark.parametrize("model", ["fair_share", "spray", "cubic"])
@few
@given(world=worlds())
def test_a_network_that_is_compiled_on_its_way_goes_on(model: str, world: World) -> None:
    """With what it calls by address: a control, a balancer."""
    with loops("compiled"):
        expected = drive(MODELS[model](), world)
    with compiled_after(1e-6):
        assert drive(MODELS[model](), world) == expected


# -- which -------------------------------------------------------------------------------------------


def test_processes_one_after_another_add_up(tmp_path: Path) -> None:
    """What each interpreted is left for the next; once it was compiled, it begins anew."""
    one, tally = tiers._Meter(), tmp_path / "cache" / "interpreted_s.tally"
    one.keep_in(tally.parent)
    one._spent_s = 2.0
    one._keep()
    two = tiers._Meter()
    two.keep_in(tally.parent)
    assert two._spent_s == 2.0
    two._spent_s += 1.5
    two._keep()
    assert float(tally.read_text(encoding="ascii")) == 0.0
    tally.write_text("not a number", encoding="ascii")
    tiers._Meter().keep_in(tally.parent)


def test_a_run_of_many_operations_is_not_begun_interpreted() -> None:
    with compiled_after(1.0):
        tiers.expect(tiers.MOST_OPERATIONS)
        assert not tiers.is_spent()
        tiers.expect(tiers.MOST_OPERATIONS + 1)
        assert tiers.is_spent()


def own_kernel(n: int, rows: Any, telemetry: Any, state: Any, parameters: Any) -> None:
    """Of a plug-in."""


def test_a_plug_in_in_numba_is_never_interpreted() -> None:
    """It may do anything that numba compiles."""

    class Own(Hpcc):
        """A control with a kernel of its own."""

    cast("Any", Own).kernel = own_kernel
    assert not all(map(is_ours, CongestionNetwork(Own())._kernels()))
    assert all(map(is_ours, CongestionNetwork(Hpcc(), balancer=Ugal())._kernels()))


def test_a_wrong_setting_is_named() -> None:
    with loops("interpretted"):
        result = CliRunner().invoke(app, ["run", str(ROOT / "scenarios" / "two-jobs.yaml")])
    assert result.exit_code != 0
    assert "COSIM_LOOPS is 'interpretted'" in result.output + str(result.exception)
