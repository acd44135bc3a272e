"""Checks of what a network shows at an instant: queues of links, connections that send."""

from __future__ import annotations

import numpy as np

from cosim.network.simulator import QueueSample
from cosim.testing.conformance.cases import LATENCY_PS, RATE_BPS, flows
from cosim.testing.conformance.kit import Kit, Probe, check
from cosim.testing.conformance.report import expect
from cosim.units import NEVER

_PAIRS = [(1, 0), (2, 0), (3, 0)]
_SIZE = 100_000
_EVERY_PS = 10 * LATENCY_PS
_SAMPLES = 24
_SLACK_BYTES = 50_000
"""Packets on their way and headers; a third of what waits where senders don't slow down."""
_SECOND_PS = 10**12


def _incast(probe: Probe) -> None:
    """Three messages to one endpoint, from :data:`_EVERY_PS` on; nothing has started when this returns."""
    probe.advance(flows(0, _PAIRS, _SIZE, _EVERY_PS, reaction=NEVER), _EVERY_PS)


def _settle(probe: Probe) -> None:
    """Until long after all has arrived."""
    while probe.advance(horizon_ps=_SECOND_PS).granted_ps < _SECOND_PS:
        pass
    expect(
        len(probe.times()) == len(_PAIRS), f"of {len(_PAIRS)} messages {len(probe.times())} came in a second"
    )


@check("queues", "bytes that wait came in and have not gone out; looking changes nothing")
def queues(kit: Kit[Probe]) -> None:
    kit.needs("queues")
    links = np.arange(kit.topology.num_links)
    firsts = [kit.links(src, dst)[0] for src, dst in _PAIRS]
    last = kit.links(*_PAIRS[0])[-1]
    with kit.probe() as probe:
        _incast(probe)
        before = probe.queues(links, _EVERY_PS)
        expect(not any(column.any() for column in before), "before anything started, counters are not 0")
        for k in range(2, _SAMPLES):
            now = k * _EVERY_PS
            granted = probe.advance(horizon_ps=now).granted_ps
            sample = probe.queues(links, granted)
            _check_counters(before, sample, granted)
            came, went = sample.sent_bytes[firsts].sum(), sample.sent_bytes[last]
            waits, lost = sample.queue_bytes[last], sample.drops.any()
            expect(waits <= came - went + 1, f"{waits:.0f} bytes wait where {came:.0f} came, {went:.0f} went")
            expect(
                bool(lost) or came - went - waits <= _SLACK_BYTES,
                f"{came:.0f} bytes came to a link, {went:.0f} went, {waits:.0f} wait there at {granted} ps",
            )
            before = sample
        _settle(probe)
        end = probe.queues(links, probe.answers[-1].granted_ps)
        expect(not end.queue_bytes.any(), f"with all arrived, {end.queue_bytes.max():.0f} bytes still wait")
        told = probe.statistics().link_bytes
        expect(
            bool((np.abs(end.sent_bytes - told) <= 1 + 0.01 * told).all()),
            f"a link sent {end.sent_bytes[last]:.0f} bytes; the statistics say {told[last]}",
        )
        looked_at = probe.times()
    if kit.capabilities.deterministic:
        with kit.probe() as probe:
            _incast(probe)
            unseen = probe.finish()
        expect(unseen == looked_at, f"arrivals {looked_at} where it was looked at, {unseen} where not")


def _check_counters(before: QueueSample, now: QueueSample, granted: int) -> None:
    for name, column in now._asdict().items():
        wrong = ~np.isfinite(column) | (column < 0)
        expect(not wrong.any(), f"{name} is {column[wrong][:1]}; it is a number, 0 at least")
        if name != "queue_bytes":
            expect(bool((column >= getattr(before, name)).all()), f"{name} went back by {granted} ps")
    most = 1.01 * RATE_BPS * granted / 8e12 + 1
    sent = now.sent_bytes.max()
    expect(sent <= most, f"a link sent {sent:.0f} bytes by {granted} ps; line rate is {most:.0f}")


@check(
    "rates", "connections that send are told while they do, and no others; there is work until all arrived"
)
def rates(kit: Kit[Probe]) -> None:
    kit.needs("rates")
    with kit.probe() as probe:
        _incast(probe)
        told = probe.rates()
        expect(not len(told.src), f"{len(told.src)} connections send before anything started")
        expect(probe.has_work(), "three messages will start, but there is no work")
        probe.advance(horizon_ps=2 * _EVERY_PS)
        told = probe.rates()
        pairs = sorted(zip(told.src.tolist(), told.dst.tolist(), strict=True))
        expect(pairs == _PAIRS, f"{_PAIRS} send; told are {pairs}")
        expect(
            bool(np.isfinite(told.rate_bps).all() and (told.rate_bps >= 0).all()), f"rates {told.rate_bps}"
        )
        window = told.window_bytes
        expect(bool((np.isnan(window) | (window >= 0)).all()), f"windows of {window} bytes")
        marked = (told.marked >= 0) & (told.marked <= 1)
        expect(bool(marked.all()), f"parts that were marked: {told.marked}; they are from 0 to 1")
        expect(probe.has_work(), "three messages are under way, but there is no work")
        _settle(probe)
        told = probe.rates()
        expect(not len(told.src), f"with all arrived, {len(told.src)} connections still send")
        expect(not probe.has_work(), "a second after all arrived there is still work")
