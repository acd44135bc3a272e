"""Random worlds of processes that change their links: one digest, however they are run.

``python -m tests.processes.worlds [COUNT] [--first SEED] [--kills EVERY]`` runs as many, each in this
process, cut anywhere, with ``release: engine``, on the reference engine, and served; every so many with a
server that is killed at two moments.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import simpy

import cosim
from cosim.context import HERE
from cosim.network.named import made_network
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig

Proc = Generator[simpy.Event, Any, Any]
Seen = list[tuple[object, ...]]
RING = {"kind": "ring", "endpoints": 6, "rate": "80Gbps", "latency": "1us"}
TREE = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "latency": "1us"}
FABRIC = {**TREE, "endpoints_per_leaf": 3, "rate": "80Gbps"}
NVLINK = {"gpus": 2, "nvlink_rate": "400Gbps", "nvlink_latency": "300ns", "nics": 2, "nic_rate": "80Gbps"}
HOSTS = {**TREE, "endpoints_per_leaf": 4, "hosts": NVLINK}
PLAIN = ("congestion_unaware", "congestion_aware", "fair_share")
CONGESTION = {"model": "congestion", "control": "dctcp"}
COSIM = str(Path(sys.executable).parent / "cosim")
US = 1_000_000


class World:
    """What ``seed`` makes: a scenario, and processes in it."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.seed = seed
        self.is_hybrid = draw.random() < 0.25
        # A hybrid's served part has to say when its next completion comes, which congestion doesn't.
        self.network: Any = draw.choice([*PLAIN, "fair_share" if self.is_hybrid else CONGESTION])
        topology: dict[str, Any] = HOSTS if self.is_hybrid else draw.choice([RING, FABRIC])
        self.scenario: dict[str, Any] = {
            "topology": topology,
            "detection": draw.choice(["0ns", "3us", "40us", "1s"]),
        }
        if draw.random() < 0.5:
            self.scenario["jobs"] = [{"name": "first", **self.job(draw)}]
        self.ends = int(topology.get("endpoints", 6)) if not self.is_hybrid else 8
        self.num_traffic, self.steps = draw.randrange(1, 5), draw.randrange(3, 18)

    @staticmethod
    def job(draw: random.Random) -> dict[str, Any]:
        """A job of two ranks."""
        compute, size = draw.choice(["0ns", "5us", "12345ns"]), draw.choice([1000, 100_000])
        work = {"kind": "periodic", "compute": compute, "size": size, "ranks": 2}
        return {"workload": work, "iterations": draw.randrange(1, 8)}

    def named(self, network: Any) -> dict[str, Any]:
        """The scenario, on a network, which of a hybrid carries what is beyond hosts."""
        if self.is_hybrid:
            network = {"model": "hybrid", "scale_up": self.network, "scale_out": network}
        return {**self.scenario, "network": network}

    def traffic(self, sim: Any, draw: random.Random, seen: Seen) -> Proc:
        """Sends, computes, meets, and does what follows from how long that took."""
        lock = sim.locks[draw.randrange(2)]
        for _ in range(self.steps):
            src, dst = draw.sample(range(self.ends), 2)
            size = draw.choice([0, 1, 4096, draw.randrange(1, 300_000)])
            kind = draw.randrange(7)
            event: simpy.Event
            if kind < 2:
                event = sim.transfer(src, dst, size, channel=draw.randrange(2), priority=draw.randrange(2))
            elif kind == 2:
                group = sorted(draw.sample(range(self.ends), draw.randrange(2, self.ends)))
                event = sim.collective(draw.choice(["all_reduce", "all_gather", "all_to_all"]), group, size)
            elif kind == 3:
                event = sim.transfer(src, dst, size) | sim.timeout(draw.randrange(20 * US))
            elif kind == 4:
                event = sim.compute(draw.sample(range(self.ends), 2), draw.choice([0, 1000, 9 * US]))
            elif kind == 5:
                with lock.request() as turn:
                    yield turn
                    yield sim.transfer(src, dst, size)
                event = sim.timeout(0)
            else:
                event = sim.timeout(draw.choice([0, 0, 1, 5 * US]))
            done = yield event
            seen.append((sim.now, kind, done if isinstance(done, cosim.Outcome) else None))
            if isinstance(done, cosim.Outcome) and done.took_ps % 3 == 0:
                yield sim.timeout(done.took_ps % 1000)

    def controls(self, sim: Any, draw: random.Random, seen: Seen, on_step: Callable[[int], None]) -> Proc:
        """Looks at links and changes them; at the end all are as they were."""
        names = list(dict.fromkeys(sim.link_names))
        for step in range(self.steps):
            yield sim.timeout(draw.choice([0, draw.randrange(1, 30 * US)]))
            name = draw.choice(names)
            seen.append((sim.now, round(sim.link(name).use, 9), sim.link(name).sent_bytes))
            on_step(step)
            for _ in range(draw.randrange(3)):
                how: dict[str, Any] = draw.choice(
                    [{"up": False}, {"up": True}, {"rate": "10Gbps"}, {"avoid": True}, {"avoid": False}]
                )
                sim.change(draw.choice(names), **how)
            if self.network == CONGESTION and draw.random() < 0.3:
                sim.change_control(g=draw.choice([0.0625, 0.25, 0.9]))
        for name in names:
            sim.change(name, up=True)

    def jobs(self, sim: Any, draw: random.Random, seen: Seen) -> Proc:
        """Starts a job where there is room, pauses one, resumes it, stops one."""
        for number in range(draw.randrange(3)):
            yield sim.timeout(draw.randrange(20 * US))
            if sim.room(self.job(random.Random(0))) is None:
                continue
            job = sim.start(self.job(draw), name=f"late {number}")
            if draw.random() < 0.5:
                yield job.iteration(0)
                seen.append((sim.now, "iteration"))
            if draw.random() < 0.5:
                yield job.pause()
                seen.append((sim.now, "paused", job.iterations_done))
                yield sim.timeout(draw.randrange(9 * US))
                job.resume()
            if draw.random() < 0.3:
                job.stop()
            done = yield job.ended
            seen.append((sim.now, "ended", done.took_ps))

    def run(
        self,
        network: Any = None,
        *,
        cut: bool = False,
        on_step: Callable[[Any, int], None] = lambda *_: None,
        engine: str = "kernel",
        **more: Any,
    ) -> tuple[str, int, Seen]:
        """The digest, the end, and what processes saw."""
        scenario = {**self.named(self.network if network is None else network), **more}
        seen: Seen = []
        with cosim.open(scenario, changes_links=True, engine=engine) as sim:
            whole: Any = sim
            whole.locks = [simpy.Resource(sim), simpy.Resource(sim)]
            topology = whole._topology
            whole.link_names = [topology.link_name(link) for link in range(topology.num_links)]
            for number in range(self.num_traffic):
                sim.process(self.traffic(sim, random.Random(f"{self.seed} {number}"), seen))
            draw = random.Random(f"{self.seed} controls")
            sim.process(self.controls(sim, draw, seen, lambda step: on_step(sim, step)))
            sim.process(self.jobs(sim, random.Random(f"{self.seed} jobs"), seen))
            cuts = random.Random(self.seed)
            for _ in range(12 if cut else 0):
                sim.run(until=sim.now + cuts.randrange(1, 40 * US))
            run = sim.run()
        return run.digest, run.records.end_ps, seen


class Served:
    """Servers of this process, one for each network."""

    def __init__(self, stack: ExitStack) -> None:
        self._folder = stack.enter_context(tempfile.TemporaryDirectory())
        self._stack = stack
        self._known: dict[str, dict[str, Any]] = {}

    def of(self, network: Any) -> dict[str, Any]:
        """What a scenario says of it."""
        key = str(network)
        if key not in self._known:
            spec = cosim.Scenario(topology=RING, network=network, processes=[]).network
            config = ServerConfig(lambda: made_network(spec, HERE), shares=True)
            server = Server(config, f"unix:{self._folder}/{len(self._known)}")
            self._known[key] = {"address": self._stack.enter_context(server).address}
        return self._known[key]


def kills(world: World) -> Callable[[Any, int], None]:
    """Kills the server at two steps of the controller."""
    when = {*random.Random(world.seed).choices(range(world.steps), k=2)}

    def kill(sim: Any, step: int) -> None:
        if step in when:
            for part in sim._replay.network.parts():
                if part.elsewhere and part.session.process is not None:
                    part.session.process.kill()

    return kill


def differences(seed: int, served: Served | None, *, killed: bool) -> Iterator[str]:
    """Ways in which the world of a seed does not come to what it comes to in this process, at once.

    ``served`` None: only a server that is killed is tried.
    """
    world = World(seed)
    right = world.run()
    ways: dict[str, Callable[[], object]] = {}
    if served is not None:
        elsewhere = served.of(world.network)
        ways["cut"] = lambda: world.run(cut=True)
        ways["engine"] = lambda: world.run(release="engine")
        ways["reference"] = lambda: world.run(engine="reference")
        ways["reference, cut, engine"] = lambda: world.run(engine="reference", cut=True, release="engine")
        ways["served"] = lambda: world.run(elsewhere)
        ways["served, cut, engine"] = lambda: world.run(elsewhere, cut=True, release="engine")
    if killed and isinstance(world.network, str):
        command = {"command": [COSIM, "serve", "--network", world.network], "most_deaths": 9}
        ways["killed"] = lambda: world.run(command, on_step=kills(world))
    for name, run in ways.items():
        if run() != right:
            yield f"seed {seed} ({world.network}{', hybrid' * world.is_hybrid}): {name}"


def main() -> int:
    """Run as many as are asked for; 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kills", type=int, default=10, help="every so many with a server that is killed")
    asked, began, wrong = parser.parse_args(), time.monotonic(), 0
    with ExitStack() as stack:
        served = Served(stack)
        for number in range(asked.count):
            for line in differences(asked.first + number, served, killed=number % asked.kills == 0):
                print(line, flush=True)
                wrong += 1
            if (number + 1) % 100 == 0:
                print(f"{number + 1} so far, in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{asked.count} worlds, {wrong} differ, in {time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
