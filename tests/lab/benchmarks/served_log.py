"""What a served run holds as it goes on: ``python -m tests.lab.benchmarks.served_log [MESSAGES [RELEASE]]``.

Closed loop: rank 0 sends to rank 1, which answers, so each message waits for the one before, and has an
exchange with ``cosim serve`` of its own. With a RELEASE, ``engine`` or ``network``: rings of 16 ranks, where
16 messages share an exchange. After each tenth of so many messages (100,000 unless said): bytes of the log,
resident bytes and open files of both processes. After seven tenths the server is killed by SIGKILL. The
digest has to be that of a run in one process.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import sys
from pathlib import Path

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.experiment.simulate import simulate
from cosim.network.flows import FlowBatch
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.settings import Target
from tests.lab.benchmarks.sessions import resident
from tests.protocol.small_run import GOOD, patient

SCENARIO = """
topology: {kind: ring, endpoints: 2, rate: 100Gbps, latency: 1us}
network: congestion_aware
jobs:
  - iterations: ITERATIONS
    workload:
      kind: operations
      mesh: {dp: 2}
      programs:
        - {ranks: [0], operations: [{name: ask, kind: send, size: 4KiB, peer: 1, tag: 0},
                                    {name: hear, kind: recv, size: 4KiB, peer: 1, tag: 1, deps: [ask]}]}
        - {ranks: [1], operations: [{name: hear, kind: recv, size: 4KiB, peer: 0, tag: 0},
                                    {name: say, kind: send, size: 4KiB, peer: 0, tag: 1, deps: [hear]}]}
"""
RINGS = """
topology: {kind: ring, endpoints: 16, rate: 100Gbps, latency: 1us}
network: congestion_aware
collectives: {all_reduce: ring}
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 16, size: 64KiB}
    iterations: ITERATIONS
"""


class _Told(ForwardingNetwork):
    """Tells of a remote network, once in so many completions, and kills its server once."""

    def __init__(self, inner: RemoteNetwork, every: int) -> None:
        super().__init__(inner)
        self._remote, self._every, self._done = inner, every, 0

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        before = self._done // self._every
        granted, done = self.inner.advance(flows, horizon_ps)
        self._done += len(done)
        if self._done // self._every > before:
            self._tell()
            if before == 6:
                self._kill()
        return Advance(granted, done)

    def _kill(self) -> None:
        process = self._remote.session.process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)

    def _tell(self) -> None:
        session = self._remote.session
        assert session.process is not None
        assert session._path is not None
        log = session._path.stat().st_size
        pids = os.getpid(), session.process.pid
        held = [(resident(pid) / 1e6, len([*Path(f"/proc/{pid}/fd").iterdir()])) for pid in pids]
        told = "  ".join(f"{size:7.1f} MB {files:3} files" for size, files in held)
        print(f"{self._done:9,}  {log / 1e6:6.2f} MB  {log / self._done:5.2f} B  {told}", flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    text, messages, release = (RINGS, 480, sys.argv[2]) if len(sys.argv) > 2 else (SCENARIO, 2, "engine")
    scenario = loads(text.replace("ITERATIONS", str(-(-count // messages))), {"release": release})
    network = _Told(RemoteNetwork(Target(command=GOOD), policy=patient()), max(count // 10, 1))
    print("completed        log  a message             client                server")
    over = simulate(scenario, dataclasses.replace(build(scenario), network=network))
    session = network._remote.session
    print(f"{session.deaths} death, replayed in {session.replays} calls; most memory {_most()} MB")
    here = simulate(scenario, build(scenario))
    print("the digest of a run in one process" if here.digest == over.digest else "ANOTHER DIGEST")


def _most() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


if __name__ == "__main__":
    main()
