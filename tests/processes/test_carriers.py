"""Code that carries collectives: the same everywhere, proved as it runs, and its mistakes in a line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import simpy

import cosim
from cosim.network.fair_share import FairShareNetwork
from cosim.plugins import AlgorithmError, Carried, Carrier, Collective
from cosim.processes.in_network import InNetwork
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig

Proc = Generator[simpy.Event, Any, Any]
NETWORKS: list[Any] = [
    "congestion_unaware", "congestion_aware", "fair_share", {"model": "congestion", "control": "dctcp"}
]  # fmt: skip


GRID = {
    "kind": "astra_sim", "topology": ["Ring", "Switch"], "npus_count": [2, 2], "bandwidth": [50, 50],
    "latency": [1, 1],
}  # fmt: skip


class Star(Carrier):
    """All-reduce over the first rank: it gathers what all have, then sends everybody the sum"""

    name: ClassVar[str] = "star"
    carries: ClassVar[frozenset[Collective]] = frozenset({Collective.ALL_REDUCE})
    checks_data: ClassVar[bool] = True

    def carry(self, sim: Any, collective: Carried) -> Proc:
        first, *others = range(collective.num_ranks)
        ends, whole = collective.endpoints, (0, collective.size_bytes)
        come = []
        for rank in others:
            yield collective.arrival(rank)
            come.append(collective.send(ends[rank], ends[first], whole, adds=True))
        yield sim.all_of([collective.arrival(first), *come])
        collective.through(first)
        for rank in others:
            yield collective.send(ends[first], ends[rank], whole)
            collective.through(rank)


def made(carry: Callable[[Any, Carried], Any], *kinds: Collective, checks: bool = True) -> Carrier:
    """A carrier of a function."""

    class Made(Carrier):
        name: ClassVar[str] = "made"
        carries: ClassVar[frozenset[Collective]] = frozenset(kinds or {Collective.ALL_REDUCE})
        checks_data: ClassVar[bool] = checks

        def carry(self, sim: Any, collective: Carried) -> Any:
            return carry(sim, collective)

    return Made()


def world(carrier: Any, network: Any = "fair_share", kind: str = "all_reduce", **more: Any) -> dict[str, Any]:
    work = {"kind": "collective", "collective": kind, "ranks": 4, "size": "1MB"}
    return {
        "topology": {"kind": "switch", "endpoints": 4, "rate": "80Gbps", "latency": "1us"},
        "network": network,
        "collectives": {kind: carrier},
        "jobs": [{"workload": work, "iterations": 2}],
        **more,
    }


def run(carrier: Any, network: Any = "fair_share", kind: str = "all_reduce", **more: Any) -> cosim.Run:
    return cosim.run(cosim.Scenario(**world(carrier, network, kind, **more)))


def test_a_star_takes_what_its_links_take() -> None:
    found = run(Star()).records
    # Three of 1 MB into 80 Gbps, then three out one after another, over two links of 1 us each time.
    first = found.collectives[0]
    assert first.end_ps - first.start_ps == (300 + 2 + 3 * (100 + 2)) * 10**6
    assert [one.messages for one in found.collectives] == [6, 6]
    assert found.num_messages == 12


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_when_each_rank_of_a_star_is_through_and_after_how_many_messages(engine: str) -> None:
    """As above. A rank that waits alone hears how many had been sent by then."""
    found: list[cosim.Outcome] = []

    def train(sim: Any) -> Proc:
        found.append((yield sim.all_reduce(range(4), "1MB", algorithm=Star())))
        for event in [sim.all_reduce(range(4), "1MB", algorithm=Star(), rank=rank) for rank in range(4)]:
            done = yield event
            found.append(done)

    bare = {key: value for key, value in world("ring").items() if key != "jobs"}
    with cosim.open(bare, engine=engine) as sim:
        sim.process(train(sim))
        sim.run()
    times = [(302 + 102 * later) * 10**6 for later in range(4)]
    assert found[0] == (0, times[-1], tuple(times), 6)
    assert [(one.times, one.messages) for one in found[1:]] == [
        ((times[-1] + time,), sent) for time, sent in zip(times, (3, 4, 5, 6), strict=True)
    ]


@pytest.mark.parametrize("carrier", [Star(), InNetwork(slots=16)], ids=["star", "in_network"])
@pytest.mark.parametrize("network", NETWORKS)
def test_it_is_the_same_by_a_job_by_a_process_and_cut_anywhere(carrier: Carrier, network: Any) -> None:
    digest = run(carrier, network).digest
    assert digest == run(carrier, network, release="engine").digest
    assert digest == run(carrier, network).digest

    def train(sim: Any) -> Proc:
        yield sim.all_reduce(range(4), "1MB", algorithm=carrier)

    bare = {key: value for key, value in world("ring", network).items() if key != "jobs"}
    once = world(carrier, network)
    once["jobs"][0]["iterations"] = 1
    with cosim.open(bare) as sim:
        sim.process(train(sim))
        for cut in range(1, 30):
            sim.run(until=f"{cut * 7}us")
        assert sim.run().digest == cosim.run(cosim.Scenario(**once)).digest


def test_it_is_the_same_behind_grpc(tmp_path: Path) -> None:
    with Server(ServerConfig(FairShareNetwork), f"unix:{tmp_path / 'served'}") as server:
        remote = {"model": "remote", "address": server.address}
        for carrier in (Star(), InNetwork(slots=16)):
            here = run(carrier).digest
            assert here == run(carrier, remote).digest == run(carrier, remote, release="engine").digest


@pytest.mark.slow
def test_a_server_that_is_killed_under_it_comes_back_to_the_same() -> None:
    """At a time at which messages of the carrier are under way."""
    command = [str(Path(sys.executable).parent / "cosim"), "serve", "--network", "fair_share"]
    bare = {key: value for key, value in world("ring").items() if key != "jobs"}

    def digest(network: Any, kills: bool) -> str:
        def train(sim: Any) -> Proc:
            for _ in range(3):
                yield sim.all_reduce(range(4), "1MB", algorithm=InNetwork(slots=16))

        def breaks(sim: Any) -> Proc:
            yield sim.timeout("70us")
            if kills:
                sim._replay.network.session.process.kill()

        with cosim.open({**bare, "network": network}) as sim:
            sim.process(train(sim))
            sim.process(breaks(sim))
            run: cosim.Run = sim.run()
        return run.digest

    elsewhere = {"command": command, "most_deaths": 2}
    assert digest("fair_share", kills=False) == digest(elsewhere, kills=True)


def everybody(*, late: int = -1) -> Callable[[Any, Carried], Proc]:
    """Each rank sends each other one its part, of whatever the collective is; ``late`` is never sent to."""

    def carry(sim: Any, collective: Carried) -> Proc:
        kind, size, ends = collective.kind, collective.size_bytes, collective.endpoints
        ranks = range(collective.num_ranks)
        yield sim.all_of([collective.arrival(rank) for rank in ranks])
        sent = []
        for src in ranks:
            for dst in ranks:
                share = dst * size // len(ranks), (dst + 1) * size // len(ranks)
                mine = (src * size, (src + 1) * size)
                part = {
                    Collective.ALL_GATHER: mine,
                    Collective.BROADCAST: (0, size),
                    Collective.ALL_TO_ALL: (mine[0] + share[0], mine[0] + share[1]),
                }.get(kind, share)
                wanted = kind is not Collective.BROADCAST or src == collective.root
                if src != dst and dst != late and wanted:
                    adds = kind is Collective.REDUCE_SCATTER
                    sent.append(collective.send(ends[src], ends[dst], part, adds=adds))
        yield sim.all_of(sent)
        for rank in ranks:
            collective.through(rank)

    return carry


KINDS = [Collective.ALL_GATHER, Collective.BROADCAST, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_what_messages_carry_is_proved_as_it_runs(kind: Collective) -> None:
    done = run(made(everybody(), *KINDS), kind=kind.value)
    assert not done.warnings
    with pytest.raises(AlgorithmError, match=r"made: \w+: rank 2 is through, but its bytes \d+ to \d+ lack"):
        run(made(everybody(late=2), *KINDS), kind=kind.value)


def forgets(sim: Any, collective: Carried) -> Proc:
    less: Any = _Less(collective)
    yield from Star().carry(sim, less)


class _Less:
    """A collective of which the second rank's data isn't sent, but somebody else's twice."""

    def __init__(self, collective: Carried) -> None:
        self._of = collective

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def send(self, src: int, dst: int, part: tuple[int, int], **how: Any) -> Any:
        return self._of.send(3 if src == 1 and how else src, dst, part, **how)


def never(sim: Any, collective: Carried) -> Proc:
    yield collective.arrival(0)


def early(sim: Any, collective: Carried) -> Proc:
    yield sim.timeout(0)
    collective.through(3)


def twice(sim: Any, collective: Carried) -> Proc:
    yield sim.all_of([collective.arrival(rank) for rank in range(4)])
    collective.through(0)
    collective.through(0)


def nowhere(sim: Any, collective: Carried) -> Proc:
    yield collective.send(0, 17, (0, 1))


def backwards(sim: Any, collective: Carried) -> Proc:
    yield collective.send(0, 1, (5, 1))


def nothing(sim: Any, collective: Carried) -> Any:
    del sim, collective
    return 5


def after(sim: Any, collective: Carried) -> Proc:
    yield sim.all_of([collective.arrival(rank) for rank in range(4)])
    for rank in range(4):
        collective.through(rank)
    collective.send(0, 1, (0, 1))


@pytest.mark.parametrize(
    ("carry", "checks", "says"),
    [
        (forgets, True, "rank 0 is through, but bytes 0 to 1000000 of position 3 were added twice"),
        (twice, True, "rank 0 is through, but its bytes 0 to 1000000 lack what position 1 and 2 more had"),
        (never, False, "all arrived, but its messages do not complete"),
        (early, False, r"rank 3 is done with all_reduce .* before it came"),
        (twice, False, "made: position 0 is through twice"),
        (nowhere, False, "made: sends from node 0 to node 17; nodes are 0 to 4"),
        (backwards, False, "made: there are no bytes 5 to 1"),
        (after, False, "made: sends after all its ranks were through"),
        (nothing, False, "Made.carry gave 5, no process"),
    ],
)
def test_mistakes_are_said_in_a_line(carry: Any, checks: bool, says: str) -> None:
    late = {"name": "late", "kind": "compute", "duration": "1ms"}
    first = {"name": "sum", "kind": "collective", "collective": "all_reduce", "size": "1MB"}
    programs = [
        {"ranks": [0, 1, 2], "operations": [first]},
        {"ranks": [3], "operations": [late, {**first, "deps": ["late"]}]},
    ]
    work = {"kind": "operations", "world_size": 4, "programs": programs}
    with pytest.raises(cosim.CosimError, match=says):
        run(made(carry, checks=checks), jobs=[{"workload": work}])


def test_what_is_not_proved_is_said() -> None:
    [said] = run(made(everybody(), Collective.ALL_GATHER, checks=False), kind="all_gather").warnings
    assert "of made nothing was checked, so that it may not be an all_gather at all" in said


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"scheduler": "crux"}, "beside collectives that code carries there is no scheduler"),
        ({"fold": "always"}, "beside collectives that code carries every rank is simulated"),
        ({"collectives": {"all_reduce": [Star()]}}, ""),
        ({"topology": GRID, "collectives": {"all_reduce": ["ring", Star()]}}, "no list of them beforehand"),
        ({"collectives": {"all_reduce": made(everybody(), Collective.ALL_GATHER)}}, "can't carry all_reduce"),
    ],
)
def test_where_there_is_none(more: dict[str, Any], says: str) -> None:
    if not says:
        assert run(Star(), **more).digest == run(Star()).digest
        return
    with pytest.raises(cosim.CosimError, match=says):
        run(Star(), **more)


def test_no_translation_has_them(tmp_path: Path) -> None:
    with pytest.raises(cosim.CosimError, match="code carries a collective while a run"):
        cosim.translate(cosim.Scenario(**world(Star())), "msccl", tmp_path / "there")
    with pytest.raises(cosim.CosimError, match="while a run goes on"):
        cosim.prove("in_network", "all_reduce", ranks=4)
