"""Wrong servers: the README's example with one mistake each, and the check that notices it.

A mutant is a piece of ``minimal_server.py`` replaced by another. It is run in this process, as a module.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.protocol import minimal_server

SOURCE = Path(minimal_server.__file__).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Mutant:
    """``old`` becomes ``new`` in the server; ``check`` must fail."""

    name: str
    check: str
    old: str
    new: str

    @property
    def text(self) -> str:
        """The whole server."""
        assert SOURCE.count(self.old) == 1, (
            f"{self.name}: {self.old!r} is there {SOURCE.count(self.old)} times"
        )
        return SOURCE.replace(self.old, self.new)


MUTANTS = (
    # One instant, and its order.
    Mutant(
        "starts in the order given",
        "ties",
        "(start, cause, self.flows[one][0], one, 0)",
        "(start, 0, (0, one), one, 0)",
    ),
    Mutant(
        "key before cause",
        "ties",
        "(start, cause, self.flows[one][0], one, 0)",
        "(start, 0, self.flows[one][0], one, 0)",
    ),
    Mutant(
        "cause without key",
        "ties",
        "(start, cause, self.flows[one][0], one, 0)",
        "(start, cause, (0, one), one, 0)",
    ),
    Mutant(
        "unsigned keys, low first",
        "ties",
        "flows.append(((high, low), size",
        "flows.append(((high, -low), size",
    ),
    Mutant("starts at the grant", "merge", "            if now == horizon:  #", "            if False:  #"),
    Mutant(
        "one completion an answer",
        "one_instant",
        "while self.ends and self.ends[0][0] == now:",
        "if self.ends and self.ends[0][0] == now:",
    ),
    Mutant("no lookahead", "lookahead", "horizon = min(horizon, now + self.flows[one][3])", "pass"),
    Mutant(
        "reaction delays of zero",
        "grant",
        "self.granted, self.completed = horizon, ",
        "self.granted, self.completed = max(0, horizon - 1), ",
    ),
    Mutant("horizon left out", "grant", "            if now > horizon:\n                break\n", ""),
    Mutant(
        "idle grants nothing",
        "grant",
        "self.granted, self.completed = horizon, ",
        "self.granted, self.completed = horizon if done else self.granted, ",
    ),
    # What is answered.
    Mutant(
        "start_ps is the end",
        "starts",
        "done.append((one, self.start[one], now))",
        "done.append((one, now, now))",
    ),
    Mutant(
        "start_ps of zero", "starts", "done.append((one, self.start[one], now))", "done.append((one, 0, now))"
    ),
    Mutant("no start_ps", "starts", "                answer.start_ps.append(start)\n", ""),
    Mutant(
        "completed twice",
        "ids",
        "done.append((one, self.start[one], now))",
        "done += [(one, self.start[one], now)] * 2",
    ),
    Mutant(
        "a completion lost",
        "ids",
        "for one, start, time in part:",
        "for one, start, time in (row for row in part if row[0] != 5):",
    ),
    Mutant(
        "digest of ids",
        "digest",
        "mix(mix((high + G) & M64) + low + G & M64)",
        "mix(mix((high + G) & M64) + one + 1 + G & M64)",
    ),
    Mutant("digest without time", "digest", " + now + G & M64)\n", " + G & M64)\n"),
    Mutant(
        "a constant sequence", "sequence", "pb.Advanced(sequence=self.sequence,", "pb.Advanced(sequence=7,"
    ),
    Mutant(
        "one part whatever its size",
        "limits",
        "size = max(1, (self.most_bytes - 256) // 24)",
        "size = 1 << 30",
    ),
    # What is taken.
    Mutant(
        "any sequence",
        "sequence",
        'require(message.sequence == expected, "SEQUENCE"',
        'require(True, "SEQUENCE"',
    ),
    Mutant("Advance before Open", "states", '(kind == "open") != state.is_open and', ""),
    Mutant("a start before the grant", "causality", "require(start >= self.granted, ", "require(True, "),
    Mutant("a horizon before the grant", "causality", "require(horizon >= self.granted, ", "require(True, "),
    Mutant(
        "no path",
        "paths",
        'require(src == dst or (src, dst, channel) in simulation.paths, "NO_PATH"',
        'require(True, "NO_PATH"',
    ),
    Mutant("NO_PATH by another name", "paths", '"NO_PATH", f"', '"INVALID_FLOWS", f"'),
    Mutant("broken paths", "paths", 'whole, "INVALID_FLOWS", f', 'True, "INVALID_FLOWS", f'),
    Mutant(
        "unknown endpoints",
        "invalid_flows",
        'require(max(src, dst) < simulation.endpoints, "INVALID_FLOWS"',
        'require(True, "INVALID_FLOWS"',
    ),
    Mutant(
        "column lengths", "invalid_flows", "require(len(values) in (0, 1, flows.count), ", "require(True, "
    ),
    Mutant(
        "ids out of order",
        "invalid_flows",
        "require(not flows.count or flows.first_id == first, ",
        "require(True, ",
    ),
    Mutant(
        "double starts",
        "invalid_flows",
        "one < len(self.flows) and one not in self.start",
        "one < len(self.flows)",
    ),
    Mutant(
        "starts of what isn't there",
        "invalid_flows",
        'require(is_new, "INVALID_FLOWS"',
        'require(one in self.start or is_new or one > 2, "INVALID_FLOWS"',
    ),
    Mutant("negative sizes", "invalid_flows", "min(size, reaction) >= 0", "reaction >= 0"),
    Mutant("negative delays", "invalid_flows", "min(size, reaction) >= 0", "size >= 0"),
    Mutant(
        "dependencies ignored",
        "unclaimed",
        'require(not flows.dependency_id, "INVALID_FLOWS"',
        'require(True, "INVALID_FLOWS"',
    ),
    Mutant(
        "Peek answered by nothing",
        "unclaimed",
        'raise Refused("STATE", "peek is not claimed here")',
        "yield pb.SessionResponse(peeked=pb.Peeked())",
    ),
    Mutant(
        "a sample of nothing",
        "unclaimed",
        'raise Refused("STATE", "samples are not claimed here")',
        "yield pb.SessionResponse(sampled=pb.Sampled())",
    ),
    Mutant(
        "Cancel ends it",
        "unclaimed",
        "yield from ()  # not claimed: ignored",
        'raise Refused("STATE", "cancel")',
    ),
    # Credit, limits, the process.
    Mutant(
        "credit that never falls", "credit", " - len(self.simulation.flows) + self.simulation.completed", ""
    ),
    Mutant(
        "credit that never rises",
        "credit",
        "len(self.simulation.flows) + self.simulation.completed",
        "len(self.simulation.flows)",
    ),
    Mutant(
        "no limit of flows",
        "limits",
        'require(flows.count <= self.credit(), "OVERLOADED"',
        'require(True, "OVERLOADED"',
    ),
    Mutant(
        "a receive limit below the one announced", "receives", "room = MAX_BYTES + 65536", "room = 1 << 20"
    ),
    Mutant(
        "SIGTERM ignored",
        "sigterm",
        "signal.signal(signal.SIGTERM, lambda *_: server.stop(0))",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    ),
    # Open.
    Mutant("any version", "handshake", "require(message.version.major == 1, ", "require(True, "),
    Mutant(
        "required features ignored",
        "handshake",
        'require(feature in DESCRIPTION.features, "FEATURE_MISSING"',
        'require(True, "FEATURE_MISSING"',
    ),
    Mutant("options ignored", "handshake", "        asked += message.options\n", ""),
    Mutant("queue ignored", "settings", '("queue", "ecn"', '("ecn"'),
    Mutant("ECN ignored", "settings", '"ecn", "transport"', '"transport"'),
    Mutant("transport ignored", "settings", '"transport", "link_events")', '"link_events")'),
    Mutant("link events ignored", "settings", ', "link_events")', ")"),
    Mutant(
        "link events claimed and ignored",
        "link_events",
        "[pb.FEATURE_GIVEN_PATHS]",
        "[pb.FEATURE_GIVEN_PATHS, pb.FEATURE_LINK_EVENTS]",
    ),
    Mutant(
        "routing ignored",
        "settings",
        "require(message.routing.kind == pb.ROUTING_KIND_GIVEN, ",
        "require(True, ",
    ),
    Mutant("any topology", "topology", 'require(sound, "INVALID_OPEN"', 'require(True, "INVALID_OPEN"'),
    # Statistics and physics.
    Mutant(
        "statistics of NaN",
        "statistics",
        "completed=simulation.completed)",
        "completed=simulation.completed, columns=[pb.LinkColumn(values=[math.nan] * 16)])",
    ),
    Mutant(
        "negative statistics",
        "statistics",
        "link_bytes=simulation.link_bytes,",
        "link_bytes=[one - (one == 0) for one in simulation.link_bytes],",
    ),
    Mutant(
        "statistics of half of the links",
        "statistics",
        "link_bytes=simulation.link_bytes,",
        "link_bytes=simulation.link_bytes[: len(simulation.rate) // 2],",
    ),
    Mutant(
        "busy for longer than there is time",
        "statistics",
        "completed=simulation.completed)",
        "completed=simulation.completed, bin_ps=1000, busy_ps=[2000] * 16)",
    ),
    Mutant(
        "bytes counted as bits",
        "statistics",
        "self.link_bytes[link] += size",
        "self.link_bytes[link] += 8 * size",
    ),
    Mutant(
        "rates in bytes",
        "line_rate",
        "-(-size * 8 * 10**12 // int(self.rate[link]))",
        "-(-size * 10**12 // int(self.rate[link]))",
    ),
    Mutant(
        "64 bits overflow",
        "line_rate",
        "-(-size * 8 * 10**12 // int(self.rate[link]))",
        "(size * 8 * 10**12 & (1 << 64) - 1) // int(self.rate[link])",
    ),
    Mutant("no latency", "latency", "sent, sent + self.latency[link]", "sent, sent"),
    Mutant("links for everyone", "shares", "sent = max(time, self.free[link]) + ", "sent = time + "),
    Mutant(
        "the last first",
        "order",
        "sent = max(time, self.free[link]) + ",
        "sent = max(time, self.free[link] if size > 50_000 else 0) + ",
    ),
    Mutant(
        "marks wait",
        "marks",
        "(time, key, one))\n            return",
        "(time + 1000, key, one))\n            return",
    ),
    Mutant("quantum claimed", "quantum", "quantum_ps=1,", "quantum_ps=1000,"),
)


@contextmanager
def served(mutant: Mutant, address: str) -> Iterator[None]:
    """The mutant, at an address, while the context lasts."""
    module = types.ModuleType("mutant")
    exec(compile(mutant.text, "mutant", "exec"), module.__dict__)
    server, _ = module.made(address)
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()
