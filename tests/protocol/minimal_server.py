"""A network simulator behind cosim's protocol: a link sends whole messages, one after another, as they come.

Its session is here, whole; what any server needs beside it is in ``serving.py``. Nothing of cosim is used but
the messages generated from the .proto. Paths are the client's. No other feature is claimed: no dependencies,
peek, cancel or budget.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.protocol.serving import add_to, check_open, links_of, paths_of, require, rows, serve

MAX_BYTES, MAX_FLOWS = 1 << 22, 1 << 16
DESCRIPTION = pb.DescribeResponse(
    version=pb.Version(major=1), simulator="minimal", build="1", deterministic=True, quantum_ps=1,
    features=[pb.FEATURE_GIVEN_PATHS],
    limits=pb.Limits(max_message_bytes=MAX_BYTES, max_open_flows=MAX_FLOWS, max_sessions=4),
)  # fmt: skip
COLUMNS = ("key_high", "key_low", "src", "dst", "channel", "size_bytes", "reaction_delay_ps")
Key = tuple[int, int]


class Session:
    """One simulation."""

    def __init__(self, asked: pb.Open) -> None:
        check_open(asked, DESCRIPTION)
        self.links = links_of(asked.topology)
        self.free, self.link_bytes = [0] * len(self.links), [0] * len(self.links)  # free: from this time on
        self.endpoints, self.most_bytes = asked.topology.num_endpoints, asked.max_message_bytes or MAX_BYTES
        self.paths: dict[tuple[int, int, int], list[int]] = {}
        self.flows: list[tuple[Key, int, list[int], int]] = []  # key, bytes, links, reaction delay
        self.start: dict[int, int] = {}
        self.hops: list[tuple[int, int, Key, int, int]] = []  # a heap: time, cause, key, id, links gone by
        self.ends: list[tuple[int, Key, int]] = []  # a heap: time, key, id
        self.granted, self.completed, self.digest = 0, 0, pb.Digest()

    @property
    def credit(self) -> int:
        return MAX_FLOWS - len(self.flows) + self.completed

    def advance(self, asked: pb.Advance) -> Iterator[pb.SessionResponse]:
        self.paths.update(paths_of(asked.paths, self.links))
        self.take(asked.flows)
        for row in rows(asked.starts, len(asked.starts.id), id=None, start_ps=None, cause_ps=-1):
            self.begin(*row)
        if not asked.more:
            require(asked.horizon_ps >= self.granted, "CAUSALITY", f"the grant is {self.granted} ps")
            yield from self.answer(asked.sequence, self.run(asked.horizon_ps))

    def take(self, given: pb.Flows) -> None:
        first, count = len(self.flows), given.count
        require(count <= self.credit, "OVERLOADED", f"{count} flows; room for {self.credit}")
        require(not count or given.first_id == first, "INVALID_FLOWS", f"first_id is not {first}")
        require(not given.dependency_id, "INVALID_FLOWS", "dependencies are not claimed")
        for high, low, src, dst, channel, size, delay in rows(given, count, **dict.fromkeys(COLUMNS, 0)):
            require(max(src, dst) < self.endpoints, "INVALID_FLOWS", f"no endpoints {src}, {dst}")
            require(min(size, delay) >= 0, "INVALID_FLOWS", f"a size of {size} bytes, a delay of {delay} ps")
            path = self.paths.get((src, dst, channel)) if src != dst else []  # a mark is there at once
            require(path is not None, "NO_PATH", f"{src} to {dst}")
            self.flows.append(((high, low), size, path or [], delay))
        for one, (start, cause) in enumerate(rows(given, count, start_ps=-1, cause_ps=-1), first):
            if start >= 0:
                self.begin(one, start, cause)

    def begin(self, one: int, start: int, cause: int) -> None:
        is_new = one < len(self.flows) and one not in self.start
        require(is_new, "INVALID_FLOWS", f"flow {one} is not there, or was started")
        require(start >= self.granted, "CAUSALITY", f"a start at {start} ps; the grant is {self.granted} ps")
        self.start[one] = start
        heapq.heappush(self.hops, (start, start if cause < 0 else cause, self.flows[one][0], one, 0))

    def run(self, horizon: int) -> list[tuple[int, int, int]]:
        """(id, start, time) of what completes up to where the client may react, or to the horizon."""
        done = []
        while self.hops or self.ends:
            now = min(heap[0][0] for heap in (self.hops, self.ends) if heap)
            if now > horizon:
                break
            while self.ends and self.ends[0][0] == now:  # an instant: first all completions ...
                _, key, one = heapq.heappop(self.ends)
                done.append((one, self.start[one], now))
                horizon = min(horizon, now + self.flows[one][3])
                add_to(self.digest, *key, now)
            if now == horizon:  # ... then all starts; those at the grant come with the next advance
                break
            while self.hops and self.hops[0][0] == now:
                self.send(*heapq.heappop(self.hops))
        self.granted, self.completed = horizon, self.completed + len(done)
        return done

    def send(self, time: int, sent: int, key: Key, one: int, hop: int) -> None:
        """Over the next link; a mark has none."""
        _, size, path, _ = self.flows[one]
        for link in path[hop : hop + 1]:
            sent = max(time, self.free[link]) + -(-size * 8 * 10**12 // int(self.links[link][2]))
            self.free[link], time = sent, sent + self.links[link][3]
            self.link_bytes[link] += size
        if hop + 1 < len(path):
            heapq.heappush(self.hops, (time, sent, key, one, hop + 1))
        else:
            heapq.heappush(self.ends, (time, key, one))

    def answer(self, sequence: int, done: list[tuple[int, int, int]]) -> Iterator[pb.SessionResponse]:
        size = max(1, (min(self.most_bytes, MAX_BYTES) - 256) // 24)  # completions in a part
        for at in range(0, max(1, len(done)), size):
            answer = pb.Advanced(sequence=sequence, more=at + size < len(done), granted_ps=self.granted)
            for one, start, time in done[at : at + size]:
                answer.id.append(one)
                answer.start_ps.append(start)
                answer.time_ps.append(time)
            answer.credit = self.credit
            answer.digest.CopyFrom(self.digest)
            yield pb.SessionResponse(advanced=answer)

    def statistics(self, _: pb.StatisticsRequest) -> Iterator[pb.SessionResponse]:
        found = pb.Statistics(link_bytes=self.link_bytes, flows_completed=self.completed)
        yield pb.SessionResponse(statistics=found)


if __name__ == "__main__":
    serve(DESCRIPTION, Session)
