"""What a served run holds while it goes on: ``python -m tests.benchmarks.served_log [MESSAGES]``.

Closed loop: rank 0 sends to rank 1, which answers, so each message waits for the one before, and has an
exchange with ``cosim serve`` of its own. After each tenth of so many messages (100,000 unless said): bytes of
the log by which a server that dies would be replaced, resident bytes and open files of both processes.
"""

from __future__ import annotations

import dataclasses
import os
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
from tests.benchmarks.sessions import resident
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


class _Told(ForwardingNetwork):
    """Tells of a remote network, once in so many messages."""

    def __init__(self, inner: RemoteNetwork, every: int) -> None:
        super().__init__(inner)
        self._remote, self._every, self._sent = inner, every, 0

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self._sent += len(flows.start_index)
        if len(flows.start_index) and self._sent % self._every == 0:
            self._tell()
        return self.inner.advance(flows, horizon_ps)

    def _tell(self) -> None:
        session = self._remote.session
        assert session.process is not None
        assert session._path is not None
        log = session._path.stat().st_size
        pids = os.getpid(), session.process.pid
        held = [(resident(pid) / 1e6, len([*Path(f"/proc/{pid}/fd").iterdir()])) for pid in pids]
        told = "  ".join(f"{size:7.1f} MB {files:3} files" for size, files in held)
        print(f"{self._sent:9,}  {log / 1e6:6.1f} MB  {log / self._sent:5.0f} B  {told}", flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    scenario = loads(SCENARIO.replace("ITERATIONS", str(count // 2)), {"release": "engine"})
    network = _Told(RemoteNetwork(Target(command=GOOD), policy=patient()), max(count // 10, 1))
    print(" messages        log  a message             client                server")
    simulate(scenario, dataclasses.replace(build(scenario), network=network))


if __name__ == "__main__":
    main()
