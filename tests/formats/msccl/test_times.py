"""MSCCL programs timed: against our own algorithms, against bounds, and through a scenario."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim.errors import AlgorithmError
from cosim.formats.msccl.program_template import program_template
from cosim.formats.msccl.read import parse_program, read_program
from cosim.formats.msccl.schedule import schedule
from cosim.pattern.costs import Costs
from cosim.pattern.prove import prove
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.rows import normal
from cosim.pattern.template import Collective, Template
from tests.formats.msccl.programs import FILES, RING_BY_MSCCLANG, SMALL_RING
from tests.inputs import needs

RATE = 100  # Gbps
SCENARIO = f"""
topology: {{kind: switch, endpoints: NUM, rate: {RATE}Gbps, latency: 500ns}}
network: fair_share
jobs:
  - workload: {{kind: collective, collective: WHAT, ranks: NUM, size: SIZE}}
collectives:
  WHAT: {{algorithm: msccl, path: FILE}}
"""
COLUMNS = ("src", "dst", "bytes", "channel", "delay_ps", "dep_ptr", "dep_distance", "dep_kind", "block_row")


def scenario(path: Path, collective: Collective, ranks: int, size: int) -> str:
    text = SCENARIO.replace("NUM", str(ranks)).replace("WHAT", collective.value).replace("SIZE", str(size))
    return text.replace("FILE", str(path))


def template(path: Path, size: int, costs: Costs = Costs(), *, flags: bool = False) -> Template:  # noqa: B008
    program = read_program(path)
    assert program.collective is not None
    return program_template(schedule(program), program.collective, size, costs, flags=flags)


@needs("chakra/custom_ring_allreduce_8npus_1MB")
def test_the_ring_that_msccl_compiled_is_our_ring_column_by_column() -> None:
    theirs = template(RING_BY_MSCCLANG, 1 << 20)
    ours = normal(RingAlgorithm().build(Collective.ALL_REDUCE, 8, 1 << 20, Costs()))
    for name in COLUMNS:
        assert np.array_equal(getattr(theirs, name), getattr(ours, name)), name


@needs("msccl")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_production_files_take_no_less_than_their_bytes_allow(path: Path) -> None:
    program = read_program(path)
    n = len(program.gpus)
    assert program.collective is not None
    size = 3 << 18
    run = cosim.run(cosim.loads(scenario(path, program.collective, n, size)))
    # A rank must send, or take in, this many bytes over its one link, and a message two links far.
    least = {
        Collective.ALL_REDUCE: Fraction(2 * size * (n - 1), n),
        Collective.ALL_GATHER: Fraction(size * (n - 1)),
        Collective.ALL_TO_ALL: Fraction(size * (n - 1), n),
    }[program.collective]
    bound = least * 8 * 1000 / RATE + 1_000_000
    time = run.summary.jobs[0].iteration_mean_ps
    assert time is not None
    assert bound <= time
    assert run.records.num_messages == template(path, size).num_messages


@needs("msccl")
@pytest.mark.parametrize(
    ("name", "collective", "ours"),
    [
        ("ndv4-a2a2ll", Collective.ALL_TO_ALL, "direct"),  # every pair of GPUs at once
        ("ndv4-ag-16m", Collective.ALL_GATHER, "direct"),
        ("ndv4-ag-1k-512k", Collective.ALL_GATHER, "direct"),
        ("ndv4-ap2ll", Collective.ALL_REDUCE, "direct"),  # all pairs: scatter, reduce, gather
        ("ndv4-r48ll", Collective.ALL_REDUCE, "ring"),  # 8 rings of 4 channels side by side
    ],
)
def test_production_files_take_what_our_algorithm_of_that_shape_takes(
    name: str, collective: Collective, ours: str
) -> None:
    (path,) = (path for path in FILES if path.stem == name)
    loaded = cosim.loads(scenario(path, collective, 8, 1 << 20))
    times = [
        cosim.run(each).summary.jobs[0].iteration_mean_ps
        for each in (loaded, loaded.with_settings({f"collectives.{collective.value}": ours}))
    ]
    assert times[0] == times[1]


def test_two_gpu_ring_takes_what_its_steps_take(tmp_path: Path) -> None:
    """Two steps one after the other, each half the buffer over two links."""
    path = tmp_path / "ring.xml"
    path.write_text(SMALL_RING)
    run = cosim.run(cosim.loads(scenario(path, Collective.ALL_REDUCE, 2, 1 << 20)))
    step = (1 << 19) * 8 * 1000 // RATE + 1_000_000
    assert run.summary.jobs[0].iteration_mean_ps == 2 * step


def test_remainders_are_rounded_up_or_down_as_sizing_says() -> None:
    plan = schedule(parse_program(SMALL_RING))
    exact = program_template(plan, Collective.ALL_REDUCE, 1001, Costs())
    floor = program_template(plan, Collective.ALL_REDUCE, 1001, Costs(floor=True))
    assert set(exact.bytes[exact.src != exact.dst].tolist()) == {501}
    assert set(floor.bytes[floor.src != floor.dst].tolist()) == {500}


def test_flags_of_the_protocol_count_where_asked_for() -> None:
    for protocol, whole in (("Simple", 6000), ("LL", 12_000), ("LL128", 6400)):
        xml = SMALL_RING.replace("<algo ", f'<algo proto="{protocol}" ')
        plan = schedule(parse_program(xml))
        sizes = [
            set(t.bytes[t.src != t.dst].tolist())
            for t in (
                program_template(plan, Collective.ALL_REDUCE, 12_000, Costs(), flags=flags)
                for flags in (False, True)
            )
        ]
        assert sizes == [{6000}, {whole}]


def test_reductions_and_endpoints_take_what_the_scenario_says(tmp_path: Path) -> None:
    """As our own ring: a delay before each send and exit, a reduction after each reduced receive."""
    path = tmp_path / "ring.xml"
    path.write_text(SMALL_RING)
    text = scenario(path, Collective.ALL_REDUCE, 2, 1 << 20)
    costly = {"collectives.endpoint_delay": "3us", "collectives.reduction_rate": "1TB/s"}
    times = []
    for algorithm in ({}, {"collectives.all_reduce": "ring"}):
        loaded = cosim.loads(text).with_settings({**costly, **algorithm})
        times.append(cosim.run(loaded).summary.jobs[0].iteration_mean_ps)
    assert times[0] == times[1]


def test_the_template_is_proved_too() -> None:
    prove(program_template(schedule(parse_program(SMALL_RING)), Collective.ALL_REDUCE, 64, Costs()))


def test_a_file_for_other_ranks_or_another_collective_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ring.xml"
    path.write_text(SMALL_RING)
    with pytest.raises(AlgorithmError, match=r"small is for 2 GPUs, and this group has 4"):
        cosim.run(cosim.loads(scenario(path, Collective.ALL_REDUCE, 4, 64)))
    with pytest.raises(AlgorithmError, match=r"small is an all_reduce, and is to carry an all_gather"):
        cosim.run(cosim.loads(scenario(path, Collective.ALL_GATHER, 2, 64)))


def test_paths_start_from_the_scenarios_folder(tmp_path: Path) -> None:
    (tmp_path / "ring.xml").write_text(SMALL_RING)
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario(Path("ring.xml"), Collective.ALL_REDUCE, 2, 64))
    assert cosim.run(file).records.num_messages == 4


def test_what_a_file_says_in_vain_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "ring.xml"
    path.write_text(SMALL_RING.replace("<algo ", '<algo colour="red" '))
    loaded = cosim.loads(scenario(path, Collective.ALL_REDUCE, 2, 64))
    run = cosim.run(loaded.with_settings({"collectives.all_reduce.flags": True}))
    told = " | ".join(run.warnings)
    assert "says <algo> colour, which is not read" in told
    assert "is for protocol Simple, which sends no flags" in told
    path.write_text(SMALL_RING)
    assert not cosim.run(loaded).warnings
