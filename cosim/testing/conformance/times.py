"""Checks of times: physics first, then the rules of the seam that decide which time is right."""

from __future__ import annotations

import numpy as np

from cosim.network.flows import ON_START
from cosim.protocol.flat_flows import LATER
from cosim.testing.conformance.cases import HOPS, LATENCY_PS, flows, ideal_ps
from cosim.testing.conformance.kit import Kit, Probe, check
from cosim.testing.conformance.report import expect
from cosim.units import NEVER

_LARGE = 8_000_000
_SLACK = 1.25
"""What headers, start-up and control may cost a large message."""


@check("line_rate", "a large message takes its bytes over the line rate, little more and never less")
def line_rate(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], _LARGE, 0))
        took, ideal = probe.finish()[0], ideal_ps(_LARGE) - HOPS * LATENCY_PS
    # Store-and-forward of whole messages, as some models have it, pays the transfer on each link.
    expect(ideal <= took, f"{_LARGE} bytes took {took} ps; at line rate they take {ideal} ps at least")
    most = round(HOPS * ideal * _SLACK)
    expect(took <= most, f"{_LARGE} bytes took {took} ps; {most} ps would be a lot already")


@check("latency", "a small message takes the latencies of its links, at least")
def latency(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], 100, 0))
        took = probe.finish()[0]
    expect(
        took >= HOPS * LATENCY_PS, f"100 bytes took {took} ps over links of {HOPS * LATENCY_PS} ps latency"
    )
    expect(took <= 50 * LATENCY_PS, f"100 bytes took {took} ps on an idle network")


@check("shares", "three messages on one link take as long as their bytes together")
def shares(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        probe.advance(flows(0, [(k, 0) for k in range(1, 4)], _LARGE, 0, reaction=NEVER))
        last = max(probe.finish().values())
        ideal = ideal_ps(3 * _LARGE) - HOPS * LATENCY_PS
    expect(ideal <= last, f"{3 * _LARGE} bytes crossed one link in {last} ps; line rate needs {ideal} ps")
    expect(last <= round(ideal * 1.6), f"{3 * _LARGE} bytes crossed one link in {last} ps; ideal {ideal} ps")


@check("order", "messages of one channel arrive in the order of their starts")
def order(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)] * 3, [400_000, 1_000, 200_000], [0, 0, 1000], reaction=NEVER))
        found = probe.finish()
    times = [found[k] for k in range(3)]
    expect(times == sorted(times), f"messages 0, 1, 2 of one channel arrived at {times} ps")


@check("ties", "flows that start at one instant are taken in the order of their causes, then of their keys")
def ties(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        when = 2 * LATENCY_PS
        given = flows(0, [(0, 1)] * 3, 100_000, when, cause_ps=[when, LATENCY_PS, LATENCY_PS], reaction=NEVER)
        given.columns["key_low"] = np.array([0, 5, 3], np.int64)
        probe.advance(given)
        found = probe.finish()
    came = sorted(found, key=lambda one: found[one])
    expect(
        came == [2, 1, 0], f"flows must arrive in the order 2, 1, 0; they did in the order {came}: {found}"
    )


@check("merge", "what starts at the grant waits for the next advance, and goes in order with what it brings")
def merge(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        when = 4 * LATENCY_PS
        given = flows(0, [(0, 1)], 100_000, when, reaction=NEVER)
        granted = probe.advance(given, when).granted_ps
        expect(granted == when, f"granted {granted} ps of a horizon of {when} ps, with nothing before it")
        probe.advance(flows(1, [(0, 1)], 100_000, when, cause_ps=LATENCY_PS, reaction=NEVER))
        found = probe.finish()
    expect(
        found[1] < found[0],
        f"a flow whose start became certain earlier goes first, though it was given after the grant: {found}",
    )


@check("marks", "a flow to oneself completes when it starts, whatever its bytes")
def marks(kit: Kit[Probe]) -> None:
    with kit.probe() as probe:
        given = [0, LATENCY_PS, LATENCY_PS + 7]
        probe.advance(flows(0, [(0, 0), (1, 1), (2, 2)], [0, 1 << 20, 5], given, reaction=NEVER))
        found = probe.finish()
    for k, when in enumerate(given):
        _near(kit, found[k], when, f"a mark given for {when} ps")


@check("one_instant", "all that completes at the grant is told with it; what starts there comes after")
def one_instant(kit: Kit[Probe]) -> None:
    quantum = kit.capabilities.quantum_ps
    when = 4 * LATENCY_PS // quantum * quantum
    with kit.probe() as probe:
        first = probe.advance(flows(0, [(k, k) for k in range(4)], 0, when))
        expect(first.granted_ps == when, f"marks at {when} ps; granted {first.granted_ps} ps")
        told = sorted(first.ids.tolist())
        expect(told == [0, 1, 2, 3], f"four flows complete at {when} ps, the grant; told were {told}")
        # At the grant nothing has started: a start there is taken, and its completion told at the same time.
        second = probe.advance(flows(4, [(5, 5)], 0, when))
        expect(
            second.times().get(4) == when and second.granted_ps == when,
            f"a mark at the grant of {when} ps gave {second.times()} with a grant of {second.granted_ps} ps",
        )


@check("lookahead", "the grant stops at completion + reaction delay, and not before it must")
def lookahead(kit: Kit[Probe]) -> None:
    for reaction in (0, 5 * LATENCY_PS):
        with kit.probe() as probe:
            probe.advance(flows(0, [(0, 1), (2, 3)], [1_000, 4_000_000], 0, reaction=reaction))
            probe.finish()
            for answer in probe.answers:
                if len(answer.ids):
                    bound = int(answer.time_ps.min()) + reaction
                    expect(
                        answer.granted_ps <= bound,
                        f"granted {answer.granted_ps} ps, but the client may start flows from {bound} ps on",
                    )


@check("dependents", "flows that wait, released by the network: the same times as released by the client")
def dependents(kit: Kit[Probe]) -> None:
    kit.needs("dependent_flows")
    delay = 3 * LATENCY_PS
    pairs = [(0, 1), (2, 1), (1, 3), (1, 4), (3, 0)]
    sizes = [50_000, 80_000, 30_000, 30_000, 10_000]
    waits: list[list[int]] = [[], [], [0, 1], [1], [2, 3]]
    starts = [0, 1000, LATER, LATER, LATER]
    with kit.probe() as probe:
        probe.advance(flows(0, pairs, sizes, starts, waits_for=waits, delay_ps=delay, reaction=NEVER))
        by_network = probe.finish()
    with kit.probe() as probe:
        now = 0
        done: dict[int, int] = {}
        number: dict[int, int] = {}
        for _ in range(64):
            ready = [k for k, w in enumerate(waits) if k not in number and all(d in done for d in w)]
            columns = None
            if ready:
                when = [max([starts[k], *(done[d] + delay for d in waits[k])]) for k in ready]
                cause = [max([0, *(done[d] for d in waits[k])]) if waits[k] else starts[k] for k in ready]
                columns = flows(
                    probe.next_id, [pairs[k] for k in ready], [sizes[k] for k in ready], when, cause_ps=cause
                )
                columns.columns["key_low"] = np.array(ready, np.int64)
                for place, k in enumerate(ready):
                    number[k] = columns.first_id + place
            answer = probe.advance(columns)
            now = max(now, answer.granted_ps)
            done = {k: probe.times()[one] for k, one in number.items() if one in probe.times()}
            if len(done) == len(pairs):
                break
    expect(by_network == done, f"released by the network {by_network}, by the client {done}")


@check("start_dependents", "a flow may wait for the start of another")
def start_dependents(kit: Kit[Probe]) -> None:
    kit.needs("dependent_flows", "start_dependencies")
    with kit.probe() as probe:
        given = flows(
            0,
            [(0, 1), (2, 2)],
            [1_000_000, 0],
            [LATENCY_PS, LATER],
            waits_for=[[], [0]],
            kinds=[[], [ON_START]],
            delay_ps=5000,
            reaction=NEVER,
        )
        probe.advance(given, 2 * LATENCY_PS)
        _near(kit, probe.times().get(1, -1), LATENCY_PS + 5000, "a mark 5000 ps after the start of a flow")


@check("past_dependents", "a flow may wait for flows of earlier advances", of=["server"])
def past_dependents(kit: Kit[Probe]) -> None:
    kit.needs("dependent_flows")
    with kit.probe() as probe:
        probe.advance(flows(0, [(0, 1)], 1_000_000, LATENCY_PS, reaction=NEVER), 2 * LATENCY_PS)
        probe.advance(flows(1, [(3, 3)], 0, LATER, waits_for=[[0]], delay_ps=7000, reaction=NEVER))
        found = probe.finish()
        _near(kit, found[1], found[0] + 7000, "a mark 7000 ps after a completion")


def _near(kit: Kit[Probe], got: int, right: int, what: str) -> None:
    expect(
        right <= got < right + kit.capabilities.quantum_ps, f"{what} came at {got} ps; {right} ps is right"
    )


@check("given_later", "flows given without a start wait for it, and so does what depends on them")
def given_later(kit: Kit[Probe]) -> None:
    kit.needs("dependent_flows")
    when = 6 * LATENCY_PS
    with kit.probe() as probe:
        given = flows(0, [(0, 0), (0, 1)], [0, 1000], LATER, waits_for=[[], [0]], reaction=NEVER)
        idle = probe.advance(given, 5 * LATENCY_PS)
        expect(not len(idle.ids), f"{idle.ids} completed before anything was started")
        expect(idle.granted_ps == 5 * LATENCY_PS, f"granted {idle.granted_ps} ps of {5 * LATENCY_PS} ps")
        one = np.array([when], np.int64)
        probe.advance(starts=(np.array([0], np.int64), one, one))
        found = probe.finish()
        _near(kit, found[0], when, "a mark that was started later")
        expect(found[1] > found[0], f"its dependent arrived at {found[1]} ps, not after {found[0]} ps")
