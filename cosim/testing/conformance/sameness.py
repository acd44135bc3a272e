"""Checks that the same comes out again: twice, cut otherwise, and after the server was killed."""

from __future__ import annotations

from cosim.protocol.flat_flows import FlatFlows, join
from cosim.testing.conformance.cases import LATENCY_PS, flows, long_run
from cosim.testing.conformance.kit import Kit, Probe, check
from cosim.testing.conformance.report import CheckSkipped, expect
from cosim.testing.conformance.server import ServerKit
from cosim.units import NEVER

_PAIRS = [(0, 1), (2, 1), (3, 1), (1, 4), (5, 4), (6, 7), (7, 6), (4, 0)]
_SIZE = 60_000


def _mesh(reaction: int) -> FlatFlows:
    starts = [k * 700_001 for k in range(len(_PAIRS))]
    return flows(0, _PAIRS, [_SIZE + 977 * k for k in range(len(_PAIRS))], starts, reaction=reaction)


@check("determinism", "the same session twice: the same completions")
def determinism(kit: Kit[Probe]) -> None:
    kit.needs_determinism()
    seen = []
    for _ in range(2):
        with kit.probe() as probe:
            long_run(probe)
            seen.append(probe.times())
    different = [one for one in seen[0] if seen[0][one] != seen[1].get(one)]
    expect(seen[0] == seen[1], f"flows {different[:5]} completed at other times")


@check("cuts", "where advances are cut does not change completions")
def cuts(kit: Kit[Probe]) -> None:
    kit.needs_determinism()
    with kit.probe() as probe:
        probe.advance(_mesh(NEVER))
        whole = probe.finish()
    with kit.probe() as probe:
        probe.advance(_mesh(0), 100_000)
        now = 100_000
        while len(probe.times()) < len(_PAIRS) and now < 1000 * LATENCY_PS:
            now += 33_333_333
            while probe.answers[-1].granted_ps < now:
                probe.advance(horizon_ps=now)
        cut = probe.times()
    expect(whole == cut, f"whole: {whole}; cut every 33 us: {cut}")


@check("replay", "killed (or broken off) and replayed in one advance: the same completions, the same digest")
def replay(kit: Kit[Probe]) -> None:
    kit.needs_determinism()
    given: list[FlatFlows] = []
    rounds = 14
    with kit.probe() as probe:
        now = 0
        for k in range(rounds):
            pair = (k % 8, (k + 1 + k % 3) % 8)
            given.append(flows(k, [pair], _SIZE + k, now, reaction=NEVER))
            now += 9_000_000
            probe.advance(given[-1], now)
        live, digest, granted = probe.times(), probe.answers[-1].digest, probe.answers[-1].granted_ps
        kit.crash(probe)
    with kit.probe() as probe:
        answer = probe.advance(join(given), granted)
        while answer.granted_ps < granted:
            answer = probe.advance(horizon_ps=granted)
        again = probe.times()
    expect(again == live, f"{_differs(live, again)} differ after a replay")
    expect(answer.digest == digest, "the completions are the same after a replay, the digest is not")


@check("socket", "over the socket beside the stream: the same as over the stream", of=["server"])
def socket(kit: ServerKit) -> None:
    kit.needs("socket")
    kit.needs_determinism()
    seen: list[tuple[dict[int, int], tuple[int, int]]] = []
    for beside in (False, False, True):
        with kit.probe(opened=False) as probe:
            if beside:
                if seen[0] != seen[1]:
                    raise CheckSkipped("two sessions over the stream differ, too: see determinism")
                probe.connection.describe()
                if not probe.connection.address.startswith("unix:"):
                    raise CheckSkipped("it is not at a Unix socket, so it may be on another machine")
            probe.open()
            expect(probe.connection.has_socket == beside, "it doesn't connect to the socket that is named")
            long_run(probe)
            seen.append((probe.times(), probe.answers[-1].digest))
    expect(seen[0] == seen[2], f"{_differs(seen[0][0], seen[2][0])} differ, or the digest does")


def _differs(one: dict[int, int], other: dict[int, int]) -> list[int]:
    return [k for k in sorted({*one, *other}) if one.get(k) != other.get(k)]
