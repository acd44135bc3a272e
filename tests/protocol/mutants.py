"""Wrong servers: the README's example with one mistake each, and the check that notices it.

A mutant is a piece of ``minimal_server.py`` or ``serving.py`` replaced by another. It is run in this process,
as one module of both. ``python -m tests.protocol.mutants`` prints a table: each check, and what it notices.
"""

from __future__ import annotations

import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cosim.testing import check_server
from cosim.testing.conformance.kit import check_names
from tests.protocol import minimal_server, serving

_EXAMPLE = Path(minimal_server.__file__).read_text(encoding="utf-8").partition("import heapq\n")
_OWN = [line for line in _EXAMPLE[2].splitlines(True) if not line.startswith("from tests.protocol.serving ")]
SOURCE = "".join([Path(serving.__file__).read_text(encoding="utf-8"), _EXAMPLE[1], *_OWN])


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
        "(start, start if cause < 0 else cause, self.flows[one][0], one, 0)",
        "(start, 0, (0, one), one, 0)",
    ),
    Mutant(
        "key before cause",
        "ties",
        "(start, start if cause < 0 else cause, self.flows[one][0], one, 0)",
        "(start, 0, self.flows[one][0], one, 0)",
    ),
    Mutant(
        "cause without key",
        "ties",
        "(start, start if cause < 0 else cause, self.flows[one][0], one, 0)",
        "(start, start if cause < 0 else cause, (0, one), one, 0)",
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
        "for one, start, time in done[at : at + size]:",
        "for one, start, time in (row for row in done[at : at + size] if row[0] != 5):",
    ),
    Mutant(
        "digest of ids",
        "digest",
        "add_to(self.digest, *key, now)",
        "add_to(self.digest, 0, one + 1, now)",
    ),
    Mutant("digest without time", "digest", " + time_ps + G & M64)\n", " + G & M64)\n"),
    Mutant("a constant sequence", "sequence", "pb.Advanced(sequence=sequence,", "pb.Advanced(sequence=7,"),
    Mutant(
        "one part whatever its size",
        "limits",
        "size = max(1, (min(self.most_bytes, MAX_BYTES) - 256) // 24)",
        "size = 1 << 30",
    ),
    # What is taken.
    Mutant(
        "any sequence",
        "sequence",
        'require(said == sequence, "SEQUENCE"',
        'require(True, "SEQUENCE"',
    ),
    Mutant(
        "Advance taken for Open",
        "states",
        """require(kind == "open", "STATE", f"{kind} before open")""",
        "pass",
    ),
    Mutant("a second Open", "states", 'known = kind != "open" and hasattr(', "known = (lambda *_: True)("),
    Mutant("a start before the grant", "causality", "require(start >= self.granted, ", "require(True, "),
    Mutant(
        "a horizon before the grant",
        "causality",
        "require(asked.horizon_ps >= self.granted, ",
        "require(True, ",
    ),
    Mutant(
        "no path",
        "paths",
        'require(path is not None, "NO_PATH"',
        'require(True, "NO_PATH"',
    ),
    Mutant("NO_PATH by another name", "paths", '"NO_PATH", f"', '"INVALID_FLOWS", f"'),
    Mutant("broken paths", "paths", 'sound, "INVALID_FLOWS", f', 'True, "INVALID_FLOWS", f'),
    Mutant(
        "unknown endpoints",
        "invalid_flows",
        'require(max(src, dst) < self.endpoints, "INVALID_FLOWS"',
        'require(True, "INVALID_FLOWS"',
    ),
    Mutant("column lengths", "invalid_flows", "require(len(values) == count, ", "require(True, "),
    Mutant(
        "ids out of order",
        "invalid_flows",
        "require(not count or given.first_id == first, ",
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
    Mutant("negative sizes", "invalid_flows", "min(size, delay) >= 0", "delay >= 0"),
    Mutant("negative delays", "invalid_flows", "min(size, delay) >= 0", "size >= 0"),
    Mutant(
        "dependencies ignored",
        "unclaimed",
        'require(not given.dependency_id, "INVALID_FLOWS"',
        'require(True, "INVALID_FLOWS"',
    ),
    Mutant(
        "Peek answered by nothing",
        "unclaimed",
        "    def statistics(self",
        "    def peek(self, _):\n        yield pb.SessionResponse(peeked=pb.Peeked())\n\n"
        "    def statistics(self",
    ),
    Mutant(
        "a sample of nothing",
        "unclaimed",
        "    def statistics(self",
        "    def sample(self, _):\n        yield pb.SessionResponse(sampled=pb.Sampled())\n\n"
        "    def statistics(self",
    ),
    Mutant(
        "Cancel ends it",
        "unclaimed",
        'elif kind != "cancel" or hasattr(state, kind):',
        "else:",
    ),
    # Credit, limits, the process.
    Mutant("credit that never falls", "credit", " - len(self.flows) + self.completed", ""),
    Mutant(
        "credit that never rises",
        "credit",
        "len(self.flows) + self.completed",
        "len(self.flows)",
    ),
    Mutant(
        "no limit of flows",
        "limits",
        'require(count <= self.credit, "OVERLOADED"',
        'require(True, "OVERLOADED"',
    ),
    Mutant(
        "a receive limit below the one announced",
        "receives",
        '"grpc.max_receive_message_length": limits.max_message_bytes + 65536',
        '"grpc.max_receive_message_length": 1 << 20',
    ),
    Mutant(
        "SIGTERM ignored",
        "sigterm",
        "signal.signal(signal.SIGTERM, lambda *_: server.stop(0))",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    ),
    # Open.
    Mutant(
        "any version", "handshake", "require(asked.version.major == there.version.major, ", "require(True, "
    ),
    Mutant(
        "required features ignored",
        "handshake",
        'require(one in there.features, "FEATURE_MISSING"',
        'require(True, "FEATURE_MISSING"',
    ),
    Mutant(
        "options ignored",
        "handshake",
        '        "options": all(key in there.options for key in asked.options),\n',
        "",
    ),
    Mutant(
        "queue ignored",
        "settings",
        '"queue": asked.queue.discipline in there.queue_disciplines',
        '"queue": True',
    ),
    Mutant("ECN ignored", "settings", '"ecn": pb.FEATURE_ECN in there.features', '"ecn": True'),
    Mutant(
        "transport ignored",
        "settings",
        '"transport": asked.transport.name in there.transports',
        '"transport": True',
    ),
    Mutant(
        "link events ignored",
        "settings",
        '"link_events": pb.FEATURE_LINK_EVENTS in there.features',
        '"link_events": True',
    ),
    Mutant(
        "link events claimed and ignored",
        "link_events",
        "[pb.FEATURE_GIVEN_PATHS]",
        "[pb.FEATURE_GIVEN_PATHS, pb.FEATURE_LINK_EVENTS]",
    ),
    Mutant(
        "routing ignored",
        "settings",
        "require(routing.get(kind) in there.features, ",
        "require(True, ",
    ),
    Mutant("any topology", "topology", 'require(sound, "INVALID_OPEN"', 'require(True, "INVALID_OPEN"'),
    # Statistics and physics.
    Mutant(
        "statistics of NaN",
        "statistics",
        "completed=self.completed)",
        "completed=self.completed, columns=[pb.LinkColumn(values=[math.nan] * 16)])",
    ),
    Mutant(
        "negative statistics",
        "statistics",
        "link_bytes=self.link_bytes,",
        "link_bytes=[one - (one == 0) for one in self.link_bytes],",
    ),
    Mutant(
        "statistics of half of the links",
        "statistics",
        "link_bytes=self.link_bytes,",
        "link_bytes=self.link_bytes[: len(self.links) // 2],",
    ),
    Mutant(
        "busy for longer than there is time",
        "statistics",
        "completed=self.completed)",
        "completed=self.completed, bin_ps=1000, busy_ps=[2000] * 16)",
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
        "-(-size * 8 * 10**12 // int(self.links[link][2]))",
        "-(-size * 10**12 // int(self.links[link][2]))",
    ),
    Mutant(
        "64 bits overflow",
        "line_rate",
        "-(-size * 8 * 10**12 // int(self.links[link][2]))",
        "(size * 8 * 10**12 & (1 << 64) - 1) // int(self.links[link][2])",
    ),
    Mutant("no latency", "latency", "time = sent, sent + self.links[link][3]", "time = sent, sent"),
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
        "heapq.heappush(self.ends, (time, key, one))",
        "heapq.heappush(self.ends, (time + (0 if path else 1000), key, one))",
    ),
    Mutant("quantum claimed", "quantum", "quantum_ps=1,", "quantum_ps=1000,"),
)


@contextmanager
def served(mutant: Mutant, address: str) -> Iterator[None]:
    """The mutant, at an address, while the context lasts."""
    module = types.ModuleType("mutant")
    exec(compile(mutant.text, "mutant", "exec"), module.__dict__)
    server, _ = module.made(module.DESCRIPTION, module.Session, address)
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()


def noticed(mutant: Mutant, folder: Path) -> tuple[str, ...]:
    """The checks that fail, of the one that has to."""
    if mutant.check == "sigterm":  # only a process can be sent a signal
        server = folder / "server.py"
        server.write_text(mutant.text)
        return check_server([sys.executable, str(server)], only=[mutant.check]).failed
    address = f"unix:{folder}/s"
    with served(mutant, address):
        return check_server(address, only=[mutant.check], deadline_s=10.0).failed


def main() -> None:
    """The table."""
    of = {name: [one for one in MUTANTS if one.check == name] for name in check_names("server")}
    missed = 0
    for name, mutants in of.items():
        told = []
        for one in mutants:
            with tempfile.TemporaryDirectory() as folder:
                caught = noticed(one, Path(folder)) == (name,)
            missed += not caught
            told.append(one.name if caught else f"NOT NOTICED: {one.name}")
        print(f"{name:18}{'; '.join(told)}", flush=True)
    print(f"{len(MUTANTS) - missed} of {len(MUTANTS)} mutants are noticed")


if __name__ == "__main__":
    main()
