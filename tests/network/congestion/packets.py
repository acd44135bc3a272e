"""DCQCN and TIMELY packet by packet, written from their papers: what the fluid network is held against.

Ports serve packets in order and mark each as it leaves, by RED on the queue (seeded dice); a port pauses one
that feeds it while what came from there reaches the threshold, as 802.1Qbb's switches count by link in; a
source paces packets of its one flow; receivers answer marked packets with notifications, at most one in
``cnp_ps``; acknowledgements and notifications meet no queues.
Nothing here is shared with the model but the numbers of its parameters. Times in ps, rates in bits/s.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.timely import Timely
from cosim.topology.graph import Topology


@dataclass(eq=False)
class Port:
    """One direction of a link."""

    rate: float
    latency_ps: int
    marking: tuple[float, float, float]
    pause: float
    resume: float
    queue: deque[tuple[Flow, int, int, int, bool]] = field(default_factory=deque)
    bytes: int = 0
    most: int = 0
    busy: bool = False
    paused_by: set[int] = field(default_factory=set)
    came: dict[int, int] = field(default_factory=dict)
    flow: Flow | None = None


@dataclass(eq=False)
class Flow:
    """Bytes from one host to another, and its sender's state; ``path`` begins with the host's own port."""

    path: list[Port]
    left: int
    rate: float
    sender: Any
    line: float
    back_ps: int
    last_ps: int = -(10**15)
    last_bytes: int = 0
    wakes_ps: int = -1
    unseen: int = 0
    cnp_ps: int = 0
    owed: bool = False
    done_ps: int = -1


class World:
    """The event loop."""

    def __init__(self, mtu: int, seed: int) -> None:
        self.mtu, self.now, self.count = mtu, 0, 0
        self.events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.dice = random.Random(seed)

    def at(self, time_ps: float, what: Callable[..., None], *args: Any) -> None:
        self.count += 1
        heapq.heappush(self.events, (round(time_ps), self.count, what, args))

    def kick(self, port: Port) -> None:
        """Let a port send its next packet if it may."""
        if port.busy or port.paused_by:
            return
        if (flow := port.flow) is not None:
            if flow.left <= 0:
                return
            next_ps = flow.last_ps + round(flow.last_bytes * 8e12 / flow.rate)
            if self.now < next_ps:
                if next_ps != flow.wakes_ps:
                    flow.wakes_ps = next_ps
                    self.at(next_ps, self.kick, port)
                return
            size = min(self.mtu, flow.left)
            flow.left -= size
            flow.last_ps, flow.last_bytes = self.now, size
            self.send(port, (flow, size, self.now, 0, False))
            flow.sender.sent(flow, size)
        elif port.queue:
            flow, size, sent_ps, hop, marked = port.queue.popleft()
            low, high, most = port.marking
            if not marked and port.bytes > low:
                marked = port.bytes > high or self.dice.random() < most * (port.bytes - low) / (high - low)
            port.bytes -= size
            before = flow.path[hop - 1]
            port.came[id(before)] -= size
            if id(port) in before.paused_by and port.came[id(before)] <= port.resume:
                before.paused_by.discard(id(port))
                self.kick(before)
            self.send(port, (flow, size, sent_ps, hop, marked))

    def send(self, port: Port, packet: tuple[Flow, int, int, int, bool]) -> None:
        port.busy = True
        took = packet[1] * 8e12 / port.rate
        self.at(self.now + took, self.free, port)
        self.at(self.now + took + port.latency_ps, self.arrive, packet)

    def free(self, port: Port) -> None:
        port.busy = False
        self.kick(port)

    def tell(self, flow: Flow, what: Callable[..., None], *args: Any) -> None:
        """Something that may change a flow's rate, and so when its next packet goes."""
        what(self, flow, *args)
        self.kick(flow.path[0])

    def pay(self, flow: Flow) -> None:
        flow.owed = False
        flow.cnp_ps = self.now + flow.sender.cnp_ps
        self.at(self.now + flow.back_ps, self.tell, flow, flow.sender.notified)

    def arrive(self, packet: tuple[Flow, int, int, int, bool]) -> None:
        flow, size, sent_ps, hop, marked = packet
        if hop + 1 == len(flow.path):
            flow.unseen -= size
            if flow.unseen <= 0:
                flow.done_ps = self.now
            self.at(self.now + flow.back_ps, self.tell, flow, flow.sender.acked, size, sent_ps)
            if marked and self.now >= flow.cnp_ps:  # at once, or when the time since the last one is over
                flow.cnp_ps = self.now + flow.sender.cnp_ps
                self.at(self.now + flow.back_ps, self.tell, flow, flow.sender.notified)
            elif marked and not flow.owed:
                flow.owed = True
                self.at(flow.cnp_ps, self.pay, flow)
            return
        port = flow.path[hop + 1]
        port.queue.append((flow, size, sent_ps, hop + 1, marked))
        port.bytes += size
        port.most = max(port.most, port.bytes)
        before = flow.path[hop]
        port.came[id(before)] = port.came.get(id(before), 0) + size
        if port.came[id(before)] >= port.pause:
            before.paused_by.add(id(port))
        self.kick(port)


class DcqcnSender:
    """Zhu et al., SIGCOMM 2015, section 3 and figure 7, with every timer of its own."""

    def __init__(self, p: Dcqcn, line: float) -> None:
        self.p, self.cnp_ps, self.target, self.alpha = p, p.cnp_interval, line, 1.0
        self.times = self.counts = self.bytes = self.epoch = self.alpha_epoch = 0
        self.r_ai = p.r_ai * line / 40e9
        self.r_hai = (10 * p.r_ai if p.r_hai is None else p.r_hai) * line / 40e9
        self.cut_before = False

    def notified(self, world: World, flow: Flow) -> None:
        if self.p.clamp_target or self.times or self.counts or not self.cut_before:
            self.target = flow.rate
        self.cut_before = True
        flow.rate = max(flow.rate * (1 - self.alpha / 2), 1e7)
        self.alpha = (1 - self.p.g) * self.alpha + self.p.g
        self.times = self.counts = self.bytes = 0
        self.epoch += 1
        self.alpha_epoch += 1
        world.at(world.now + self.p.timer, world.tell, flow, self.timer, self.epoch)
        world.at(world.now + self.p.alpha_timer, self.decay, world, self.alpha_epoch)

    def decay(self, world: World, epoch: int) -> None:
        if epoch == self.alpha_epoch:
            self.alpha *= 1 - self.p.g
            world.at(world.now + self.p.alpha_timer, self.decay, world, epoch)

    def timer(self, world: World, flow: Flow, epoch: int) -> None:
        if epoch == self.epoch:
            self.times += 1
            self.increase(flow)
            world.at(world.now + self.p.timer, world.tell, flow, self.timer, epoch)

    def sent(self, flow: Flow, size: int) -> None:
        self.bytes += size
        if self.cut_before and self.bytes >= self.p.byte_counter:
            self.bytes -= self.p.byte_counter
            self.counts += 1
            self.increase(flow)

    def increase(self, flow: Flow) -> None:
        if min(self.times, self.counts) > self.p.f:
            self.target += self.r_hai
        elif max(self.times, self.counts) > self.p.f:
            self.target += self.r_ai
        self.target = min(self.target, flow.line)
        flow.rate = (flow.rate + self.target) / 2

    def acked(self, world: World, flow: Flow, size: int, sent_ps: int) -> None:
        pass


class TimelySender:
    """Mittal et al., SIGCOMM 2015, algorithm 1, when the first packet sent after the update before is
    acknowledged, as in the simulator of HPCC's authors (SIGCOMM 2019); patched: Zhu et al., CoNEXT 2016,
    section 4.3.
    """

    cnp_ps = 1 << 62

    def __init__(self, p: Timely, line: float) -> None:
        self.p, self.before, self.gradient, self.rounds = p, -1.0, 0.0, 0
        self.back = self.gone = 0
        self.until = -1
        self.delta = p.delta * line / 10e9

    def sent(self, flow: Flow, size: int) -> None:  # noqa: ARG002
        self.gone += size

    def notified(self, world: World, flow: Flow) -> None:  # noqa: ARG002
        raise AssertionError("nobody asked")

    def acked(self, world: World, flow: Flow, size: int, sent_ps: int) -> None:
        self.back += size
        if self.back <= self.until:
            return
        self.until = self.gone
        rtt, before = float(world.now - sent_ps), self.before
        self.before = rtt
        if before < 0:
            return
        self.gradient = (1 - self.p.ewma) * self.gradient + self.p.ewma * (rtt - before)
        slope = self.gradient / self.p.min_rtt
        if rtt < self.p.t_low or (not self.p.patched and slope <= 0 and rtt <= self.p.t_high):
            flow.rate += (5 if self.rounds >= self.p.rounds else 1) * self.delta
            self.rounds += 1
        else:
            self.rounds = 0
            if rtt > self.p.t_high:
                flow.rate *= 1 - self.p.beta * (1 - self.p.t_high / rtt)
            elif self.p.patched:
                weight = min(max(2 * slope + 0.5, 0), 1)
                error = (rtt - self.p.t_low) / self.p.t_low
                flow.rate = self.delta * (1 - weight) + flow.rate * (1 - self.p.patched_beta * weight * error)
            else:
                flow.rate *= max(1 - self.p.beta * slope, 0)
        flow.rate = min(max(flow.rate, self.p.min_rate * flow.line / 10e9), flow.line)


def simulate(
    topology: Topology,
    control: Dcqcn | Timely,
    flows: Sequence[tuple[int, int, int]],
    *,
    mtu: int,
    pause: float,
    seed: int = 0,
    starts_ps: Sequence[int] = (),
) -> tuple[list[int], int]:
    """Completion times (ps) and the most bytes that any port held."""
    import numpy as np

    world = World(mtu, seed)
    ports = [
        Port(
            rate,
            int(late),
            control.marking(rate, mtu) or (1e18, 1e18, 0.0),
            pause,
            max(pause - 2 * mtu, pause / 2),
        )
        for rate, late in zip(topology.link_rate_bps.tolist(), topology.link_latency_ps.tolist(), strict=True)
    ]
    kind = DcqcnSender if isinstance(control, Dcqcn) else TimelySender
    made = []
    for src, dst, size in flows:
        ptr, links = topology.routing.paths(
            topology, np.array([src], np.int32), np.array([dst], np.int32), np.zeros(1, np.int32)
        )
        del ptr
        path = [ports[k] for k in links.tolist()]
        line = path[0].rate
        back = sum(port.latency_ps for port in path)
        flow = Flow(path, size, line, kind(control, line), line, back, unseen=size)  # type: ignore[arg-type]
        assert path[0].flow is None
        path[0].flow = flow
        made.append(flow)
    for k, flow in enumerate(made):
        world.at(starts_ps[k] if starts_ps else 0, world.kick, flow.path[0])
    while any(flow.done_ps < 0 for flow in made):
        for _ in range(1000):
            if not world.events:
                break
            world.now, _, what, args = heapq.heappop(world.events)
            what(*args)
    return [flow.done_ps for flow in made], max(port.most for port in ports)
