"""``cosim fit --nccl-tests``: a fabric's numbers from such text, and text that can't be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cosim.errors import InputError
from cosim.experiment.fit_fabric import NcclTest, fit_fabric
from cosim.experiment.scenario import Scenario
from cosim.formats.nccl_tests.text import read_test
from cosim.pattern.template import Collective
from cosim.topology.contract import TopologySpec
from cosim.topology.host_shape import FabricCosts
from tests.lab.validation.internode import rows

US = 1e-6
HEAD = """# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20
#
# Using devices
"""
COLUMNS = """#
#                                               out-of-place                   in-place
#       size    count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
#        (B)  (elements)                  (us)  (GB/s)  (GB/s)       (us)  (GB/s)  (GB/s)
"""
NAMED = "# Collective test starting: all_reduce_perf\n"
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100\n#\n"


def text(
    times: list[tuple[int, float]], factor: float = 1.875, hosts: int = 2, reduction: str = "sum", **more: str
) -> str:
    """As ``all_reduce_perf`` prints it, of hosts of eight; times in seconds."""
    ranks = [
        f"#  Rank {n:2d} Group  0 Pid {900 + n} on host-{n // 8} device {n % 8:2d} [0x53] NVIDIA H100\n"
        for n in range(8 * hosts)
    ]
    lines = []
    for size, seconds in times:
        rate = size / seconds / 1e9
        cells = f"{seconds * 1e6:8.1f} {rate:7.2f} {rate * factor:7.2f}      0"
        lines.append(f"{size:12d} {size // 4:12d}   float {reduction:>7s}      -1 {cells} {cells}\n")
    return more.get("head", HEAD) + "".join(ranks) + COLUMNS + "".join(lines) + more.get("tail", TAIL)


@pytest.fixture
def perf(tmp_path: Path) -> Path:
    return tmp_path / "perf.txt"


P5 = [(row.size_bytes, row.seconds) for row in rows() if row.system == "p5 2x8"]


def hosts(count: int = 2, **fabric: object) -> Scenario:
    """DGX H100s."""
    workload = {"kind": "collective", "collective": "all_reduce", "ranks": 8 * count, "size": 1024}
    topology = {"kind": "dgx-h100", "hosts": count, **({"fabric": fabric} if fabric else {})}
    return Scenario.model_validate(
        {"topology": topology, "network": "fair_share", "jobs": [{"workload": workload}]}
    )


def test_a_test_is_read_as_it_is_printed(perf: Path) -> None:
    perf.write_text(text(P5[:4] + P5[10:11]))
    found = read_test(perf)
    assert (found.collective, found.ranks, found.hosts) == (Collective.ALL_REDUCE, 16, 2)
    assert found.times[0][0] == 1024
    assert found.times[0][1] == pytest.approx(69.2 * US)
    perf.write_text(text([(1 << 30, 3e-3)], 15 / 16))
    assert read_test(perf).collective is Collective.REDUCE_SCATTER
    head = HEAD + "# Collective test starting: all_gather_perf\n"
    perf.write_text(text([(1 << 30, 3e-3)], 15 / 16, reduction="none", head=head))
    assert read_test(perf).collective is Collective.ALL_GATHER
    perf.write_text(text(P5).replace("      -1 ", " "))  # older: without a root
    assert read_test(perf).times[-1][0] == P5[-1][0]
    perf.write_text(NAMED + text([(8, 24e-6)]))  # its rates are printed as 0.00
    ((size, took),) = read_test(perf).times
    assert size == 8
    assert took == pytest.approx(24 * US)


def test_p5s_published_text_gives_a_step_as_aws_says_it(perf: Path) -> None:
    """aws-ofi-nccl's ``net_lat`` is 20 us; the text is awsome-distributed-training's."""
    perf.write_text(text(P5[:11:2]))
    found = fit_fabric(hosts(declared="75us"), [read_test(perf)])
    assert 15 * US < found.fabric.step / 1e12 < 30 * US
    assert found.untold == ()
    again = re.search(r"fabric: (\{.*\})", str(found))
    assert again is not None
    before, after = re.findall(r"([\d.]+)%", str(found))
    assert float(after) < 12 < float(before)


@pytest.mark.parametrize("known", [{"rate": 0.8, "step": "30us"}, {"rate": 0.95, "step": "5us"}])
def test_numbers_that_made_the_times_are_found_again(known: dict[str, object]) -> None:
    from cosim.experiment.fit_fabric import _seconds

    made, costs = hosts(2), FabricCosts.model_validate(known)
    assert isinstance(made.topology, TopologySpec)
    sizes = (1024, 1 << 28)
    test = NcclTest(Collective.REDUCE_SCATTER, 16, 2, ())
    times = tuple((size, _seconds(made, made.topology, costs, test, size)) for size in sizes)
    found = fit_fabric(made, [NcclTest(Collective.REDUCE_SCATTER, 16, 2, times)]).fabric
    assert found.rate == pytest.approx(costs.rate, rel=0.01)
    assert found.step == pytest.approx(costs.step, abs=1e6)


def test_what_large_sizes_dont_tell_is_said(perf: Path) -> None:
    perf.write_text(text([(1 << 34, 48000 * US)], 15 / 16))
    found = fit_fabric(hosts(2), [read_test(perf)])
    assert found.untold == ("step: no size is small enough",)
    assert found.fabric.step == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.replace(TAIL, ""), "the text ends before its last line, '# Avg bus bandwidth'"),
        (lambda t: t[: t.rindex("float")], "the text ends before its last line|columns"),
        (lambda t: re.sub(r"-1 +\S+ +\S+ +\S+ +0", "-1 N/A N/A N/A N/A", t), "no time out of place"),
        (lambda t: re.sub(r"(?m)^#  Rank.*\n", "", t), "no line of a rank"),
        (lambda t: t[:20] + TAIL, "no row of sizes and times"),
        (lambda t: HEAD + "# Collective test starting: broadcast_perf\n" + t, "a test of broadcast; fabrics"),
        (lambda t: t.replace("    sum", "   none"), "busbw is 1.8[78] of algbw"),
        (lambda t: re.sub(r"sum +-1 +\S+", "sum -1 fast", t, count=1), "has no number where one is expected"),
        (lambda t: re.sub(r"sum +-1 +\S+", "sum -1 -3.0", t, count=1), "a time of -3 us"),
        (lambda t: re.sub(r"sum +-1 +\S+", "sum -1 nan", t, count=1), "a time of nan us"),
        (lambda t: t.replace("      -1 ", "       0 "), "a test with a root"),
        (lambda t: t + t, "perf.txt:40: 2 tests are in it"),
        (lambda t: t.replace("0 OK", "7 FAILED"), "7 FAILED': data came wrong"),
        (lambda t: NAMED + t.replace("host-1", "host-0", 1).replace("Rank 15", "Rank 14"), "other ranks"),
        (lambda _: text(P5[:2]), "its rates are too small"),
        (lambda _: text([(1 << 30, 3e-3)], 1.0, 8), "busbw is 1.00 of algbw: with 64 ranks"),
    ],
)
def test_text_that_cant_be_used_says_why(perf: Path, change: object, said: str) -> None:
    assert callable(change)
    perf.write_text(change(text(P5)))
    with pytest.raises(InputError, match=said):
        read_test(perf)


@pytest.mark.parametrize(
    ("on", "ranks", "count", "said"),
    [
        (4, 64, 8, "the test has 64 ranks, and the topology 32 GPUs"),
        (4, 16, 4, "16 ranks on 4 hosts; on hosts of 8 GPUs, as the topology has them, it would be 32"),
        (4, 8, 1, "8 ranks are in one host of 8 GPUs"),
    ],
)
def test_tests_of_other_hosts_are_refused(on: int, ranks: int, count: int, said: str) -> None:
    test = NcclTest(Collective.ALL_REDUCE, ranks, count, ((1024, 5e-5),))
    with pytest.raises(InputError, match=said):
        fit_fabric(hosts(on), [test])
