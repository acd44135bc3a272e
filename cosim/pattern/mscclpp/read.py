"""MSCCL++ execution plans (JSON) to plans. What can't be meant is refused, by GPU, block and step.

The format is that of ``python/mscclpp/language`` and ``src/core/executor`` of github.com/microsoft/mscclpp
(MIT; Shah et al., "MSCCL++: Rethinking GPU Communication Abstractions for AI Inference", arXiv 2504.09014).
Read are: put, get, copy, reductions (re, res, rre, rres), packets (ppkt, rppkt, cpkt, upkt, repkt, respkt,
recpkt, recspkt), multimem (glre, glres, gstore, gstorepkt), signal, wait, their relaxed ones, flush, barrier,
nop, semaphores, pipelines, and thread block groups.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from cosim.errors import AlgorithmError, Location
from cosim.files.text import read_text
from cosim.pattern.mscclpp.plan import (
    KernelPlan,
    Key,
    MemoryMove,
    MemoryPart,
    PlanBlock,
    PlanGpu,
    PlanStep,
    Polled,
)
from cosim.pattern.template import Collective

MAX_GPUS, MAX_BLOCKS, MAX_STEPS, MAX_CELLS = 1 << 10, 1 << 10, 1 << 17, 1 << 16
_MAX_MOVED = 1 << 21
"""Cells that all steps together may touch."""

_COLLECTIVES = {kind.value.replace("_", ""): kind for kind in (
    Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL,
    Collective.BROADCAST, Collective.SEND_RECV,
)}  # fmt: skip
_BUFFERS = ("i", "o", "s")
_KEYS = {"i": "input_chunks", "o": "output_chunks", "s": "scratch_chunks"}

_EACH = {"put", "pws", "pwsf", "get", "copy", "ppkt", "rppkt", "cpkt", "upkt", "gstore", "gstorepkt"}
"""Source k goes to target k."""
_SUM = {"re", "res", "rre", "rres", "repkt", "respkt", "recpkt", "recspkt", "glre", "glres"}
"""All sources are added up, for all targets."""
_PACKET_SOURCES = {"rppkt": 0, "upkt": 0, "gstorepkt": 0, "repkt": 1, "respkt": 1, "recpkt": 1, "recspkt": 1}
"""From this source on they are packets."""
_PACKET_TARGETS = {"ppkt": 0, "rppkt": 0, "cpkt": 0, "gstorepkt": 0, "respkt": 1, "recpkt": 1, "recspkt": 1}
_SIGNALS, _WAITS = {"signal", "rlxsignal", "pws", "pwsf"}, {"wait", "rlxwait"}
_NOTHING = {"nop", "flush"}
_BY_SWITCH = {"glre", "glres", "gstore", "gstorepkt"}
_NAMES = sorted(
    {*_EACH, *_SUM, *_SIGNALS, *_WAITS, *_NOTHING, "barrier", "pipeline", "sem_acquire", "sem_release"}
)


def read_plan(path: Path) -> KernelPlan:
    """The plan of a file.

    Raises
    ------
    AlgorithmError
        A file that can't be read, is no execution plan, or says what can't be meant.
    """
    return parse_plan(read_text(path, AlgorithmError), str(path))


def parse_plan(text: str, file: str = "plan.json") -> KernelPlan:
    """The plan of JSON text; see :func:`read_plan`."""
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        raise AlgorithmError(f"is not JSON: {error.msg}", location=Location(file, error.lineno)) from None
    except (RecursionError, ValueError) as error:
        raise AlgorithmError(f"is not JSON that can be read: {error}", location=Location(file)) from None
    return _PlanReader(file).plan(_JsonNode(root, file, "the plan"))


@dataclass(frozen=True, slots=True)
class _JsonNode:
    """A value of the file, and where it stands."""

    value: Any
    file: str
    where: str

    def wrong(self, what: str) -> NoReturn:
        raise AlgorithmError(f"{self.where}: {what}", location=Location(self.file))

    def get(self, key: str) -> _JsonNode | None:
        if not isinstance(self.value, dict):
            self.wrong(f"should be an object with {key!r}, not {_short(self.value)}")
        return _JsonNode(self.value[key], self.file, self.where) if key in self.value else None

    def need(self, key: str) -> _JsonNode:
        found = self.get(key)
        return found if found is not None else self.wrong(f"has no {key!r}")

    def each(self, key: str, most: int, where: str = "") -> list[_JsonNode]:
        found = self.get(key)
        if found is None:
            return []
        if not isinstance(found.value, list):
            self.wrong(f"{key!r} should be a list, not {_short(found.value)}")
        if len(found.value) > most:
            self.wrong(f"{key!r} has {len(found.value)} entries, and {most} are read at most")
        return [
            _JsonNode(value, self.file, f"{self.where}{where} {k}" if where else self.where)
            for k, value in enumerate(found.value)
        ]

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        found = self.get(key)
        if found is None and default is not None:
            return default
        value = self.need(key).value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.wrong(f"{key!r} should be a whole number from {low} to {high}, not {_short(value)}")
        return int(value)

    def text(self, key: str, default: str | None = None) -> str:
        found = self.get(key)
        if found is None and default is not None:
            return default
        value = self.need(key).value
        if not isinstance(value, str):
            self.wrong(f"{key!r} should be text, not {_short(value)}")
        return str(value)

    def integers(self, key: str, low: int, high: int) -> list[int]:
        return [
            _JsonNode({key: one.value}, one.file, one.where).integer(key, low, high)
            for one in self.each(key, MAX_BLOCKS)
        ]


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 40 else said[:37] + "..."


@dataclass
class _GpuParts:
    """What steps of a GPU refer to."""

    number: int
    chunks: dict[str, int]
    connected: dict[str, list[int]] = field(default_factory=lambda: {"memory": [], "port": []})
    switches: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    remote: list[tuple[int, str]] = field(default_factory=list)
    semaphores: list[int] = field(default_factory=list)


@dataclass
class _BlockParts:
    channels: dict[str, list[int]] = field(default_factory=lambda: {"memory": [], "port": [], "switch": []})
    remote: dict[str, list[int]] = field(default_factory=lambda: {"memory": [], "port": []})


class _PlanReader:
    """Reads one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.gpus: list[_GpuParts] = []
        self.per_chunk = 1
        self.moved = self.num_steps = 0

    def plan(self, root: _JsonNode) -> KernelPlan:
        said = root.text("collective")
        collective = _COLLECTIVES.get(said.replace("_", "").lower())
        if collective is None:
            root.wrong(
                f"'collective' should be one of {', '.join(_COLLECTIVES)}, not {_short(said)}: "
                "of others nobody knows what their result should be"
            )
        nodes = root.each("gpus", MAX_GPUS, ", GPU")
        nodes = [_JsonNode(node.value, self.file, f"GPU {k}") for k, node in enumerate(nodes)]
        if len(nodes) < 2:
            root.wrong(f"has {len(nodes)} GPUs, and a collective needs at least 2")
        by_id = sorted(nodes, key=lambda node: node.integer("id", 0, len(nodes) - 1))
        if [node.integer("id", 0, len(nodes) - 1) for node in by_id] != [*range(len(nodes))]:
            root.wrong("two GPUs have the same 'id'")
        self.gpus = [self._parts(node, number, len(nodes)) for number, node in enumerate(by_id)]
        blocks = [node.each("threadblocks", MAX_BLOCKS) for node in by_id]
        self.per_chunk = self._cells_per_chunk([block for its in blocks for block in its])
        for gpu in self.gpus:
            for buffer, chunks in gpu.chunks.items():
                if chunks * self.per_chunk > MAX_CELLS:
                    by_id[gpu.number].wrong(
                        f"{chunks} chunks of {_KEYS[buffer]}, in {self.per_chunk} parts each, are more than "
                        f"the {MAX_CELLS} that are proved"
                    )
        double = root.get("use_double_scratch_buffer")
        del double  # which half of it a launch takes changes nothing within it
        in_place = root.get("inplace")
        if in_place is not None and not isinstance(in_place.value, bool):
            root.wrong(f"'inplace' should be true or false, not {_short(in_place.value)}")
        return KernelPlan(
            name=root.text("name", "plan"),
            collective=collective,
            in_place=in_place is not None and bool(in_place.value),
            threads=root.integer("num_threads_per_block", 1, 1024, default=1024),
            cells_per_chunk=self.per_chunk,
            gpus=tuple(
                PlanGpu(
                    {buffer: chunks * self.per_chunk for buffer, chunks in gpu.chunks.items()},
                    tuple(self._block(node, gpu, k) for k, node in enumerate(blocks[gpu.number])),
                    tuple(gpu.semaphores),
                )
                for gpu in self.gpus
            ),
            file=self.file,
        )

    def _cells_per_chunk(self, blocks: list[_JsonNode]) -> int:
        """Parts that groups of thread blocks share a chunk by."""
        parts = 1
        for block in blocks:
            for step in _steps_of(block):
                group = step.get("tbg_info")
                if group is not None:
                    parts = math.lcm(parts, group.integer("tbg_size", 1, MAX_BLOCKS))
                    if parts > MAX_CELLS:
                        step.wrong("sizes of thread block groups have no common part that is proved")
        return parts

    def _parts(self, node: _JsonNode, number: int, count: int) -> _GpuParts:
        gpu = _GpuParts(number, {b: node.integer(_KEYS[b], 0, MAX_CELLS, default=0) for b in _BUFFERS})
        for channel in node.each("channels", MAX_BLOCKS):
            kind = channel.text("channel_type")
            if kind == "switch":
                buffer = channel.text("buffer_type", channel.text("buff", "i"))
                if buffer not in _BUFFERS:
                    node.wrong(f"a switch channel of buffer {buffer!r}; known: i, o, s")
                for group in channel.each("rank_groups", MAX_BLOCKS):
                    ranks = tuple(dict.fromkeys(group.integers("ranks", 0, count - 1)))
                    if number not in ranks or len(ranks) < 2:
                        node.wrong(
                            f"is not in the rank group {list(ranks)} of its switch channel, or alone there"
                        )
                    gpu.switches.append((buffer, ranks))
            elif kind in gpu.connected:
                gpu.connected[kind] += channel.integers("connected_to", 0, count - 1)
            else:
                node.wrong(f"a channel of type {_short(kind)}; known: memory, port, switch")
        for remote in node.each("remote_buffers", MAX_BLOCKS):
            buffer = remote.text("type")
            if buffer not in _BUFFERS:
                node.wrong(f"a remote buffer of type {_short(buffer)}; known: i, o, s")
            gpu.remote.append((remote.integer("rank", 0, count - 1), buffer))
        gpu.semaphores = [
            one.integer("init_value", 0, 1 << 20, default=0) for one in node.each("semaphores", MAX_BLOCKS)
        ]
        return gpu

    def _block(self, node: _JsonNode, gpu: _GpuParts, number: int) -> PlanBlock:
        where = f"GPU {gpu.number}, block {number}"
        node = _JsonNode(node.value, self.file, where)
        if node.integer("id", 0, MAX_BLOCKS, default=number) != number:
            node.wrong(f"has 'id' {node.integer('id', 0, MAX_BLOCKS)}; blocks stand in their order")
        parts = _BlockParts()
        for channel in node.each("channels", MAX_BLOCKS):
            kind = channel.text("channel_type")
            if kind not in parts.channels:
                node.wrong(f"a channel of type {_short(kind)}; known: memory, port, switch")
            most = len(gpu.switches if kind == "switch" else gpu.connected[kind]) - 1
            parts.channels[kind] += channel.integers("channel_ids", 0, most)
        for remote in node.each("remote_buffer_refs", MAX_BLOCKS):
            kind = remote.text("access_channel_type")
            if kind not in parts.remote:
                node.wrong(f"remote buffers of channel type {_short(kind)}; known: memory, port")
            parts.remote[kind] += remote.integers("remote_buffer_ids", 0, len(gpu.remote) - 1)
        steps: list[PlanStep] = []
        loop, unit = (0, 0), 0
        for step in node.each("ops", MAX_STEPS):
            name = step.text("name")
            if name != "pipeline":
                steps.append(self._step(step, gpu, parts, f"{where}, step {len(steps)}", name))
                continue
            context = step.need("iter_context")
            if loop != (0, 0):
                step.wrong("has a second pipeline, and one a block is run")
            unit = context.integer("unit_size", 1, 1 << 40)
            first = len(steps)
            for inner in step.each("ops", MAX_STEPS):
                kind = inner.text("name")
                if kind == "pipeline":
                    inner.wrong("is a pipeline within a pipeline, which is not run")
                steps.append(self._step(inner, gpu, parts, f"{where}, step {len(steps)}", kind))
            loop = (first, len(steps))
        return PlanBlock(number, tuple(steps), loop, unit)

    def _step(self, node: _JsonNode, gpu: _GpuParts, block: _BlockParts, where: str, name: str) -> PlanStep:
        node = _JsonNode(node.value, self.file, f"{where} ({name[:20]})")
        self.num_steps += 1
        if self.num_steps > MAX_STEPS:
            node.wrong(f"more than {MAX_STEPS} steps are not proved")
        if name in _NOTHING:
            return PlanStep(name)
        if name == "barrier":
            count = node.integer("num_threadblocks", 1, MAX_BLOCKS)
            return PlanStep(
                name, barrier=("barrier", gpu.number, node.integer("barrier_id", 0, MAX_BLOCKS), count)
            )
        if name in ("sem_acquire", "sem_release"):
            ids = node.integers("semaphore_ids", 0, len(gpu.semaphores) - 1)
            keys = tuple(("semaphore", gpu.number, one, 0) for one in ids)
            return PlanStep(name, waits=keys) if name == "sem_acquire" else PlanStep(name, signals=keys)
        if name in _SIGNALS - _EACH or name in _WAITS:
            keys = self._channel_keys(node, gpu, block, sends=name in _SIGNALS)
            relaxed = name.startswith("rlx")
            if name in _SIGNALS:
                return PlanStep(name, signals=keys, relaxed=relaxed)
            return PlanStep(name, waits=keys, relaxed=relaxed)
        if name not in _EACH | _SUM:
            node.wrong(f"is no operation that is known; known: {', '.join(_NAMES)}")
        signals = self._channel_keys(node, gpu, block, sends=True) if name in _SIGNALS else ()
        moves = self._moves(node, gpu, block, name)
        return PlanStep(name, moves, signals, by_switch=name in _BY_SWITCH)

    def _channel_keys(
        self, node: _JsonNode, gpu: _GpuParts, block: _BlockParts, *, sends: bool
    ) -> tuple[Key, ...]:
        """Channels by the GPUs that they join, and which of those between these two they are."""
        kind = node.text("channel_type", "memory")
        if kind not in gpu.connected:
            node.wrong(f"of channel type {_short(kind)}; signals go by memory or port")
        keys: list[Key] = []
        for one in node.integers("channel_ids", 0, len(block.channels[kind]) - 1):
            number = block.channels[kind][one]
            peer = gpu.connected[kind][number]
            if peer == gpu.number:
                node.wrong("signals its own GPU")
            nth = gpu.connected[kind][:number].count(peer)
            ends = (gpu.number, peer) if sends else (peer, gpu.number)
            keys.append((kind, *ends, nth))
        if not keys:
            node.wrong("names no channel in 'channel_ids'")
        return tuple(keys)

    def _moves(
        self, node: _JsonNode, gpu: _GpuParts, block: _BlockParts, name: str
    ) -> tuple[MemoryMove, ...]:
        sources, targets = (
            [
                self._ranges(one, gpu, block, node, way, packets=k >= firsts.get(name, len(_NAMES)))
                for k, one in enumerate(node.each(way, MAX_BLOCKS))
            ]
            for way, firsts in (("src_buff", _PACKET_SOURCES), ("dst_buff", _PACKET_TARGETS))
        )
        if not sources or not targets:
            node.wrong("needs 'src_buff' and 'dst_buff'")
        counts = {part.count for parts in (*sources, *targets) for part in parts}
        if name in _SUM:
            if len(counts) > 1:
                node.wrong(f"sources and targets have {sorted(counts)} cells, and should have equally many")
            moves = [MemoryMove(sum(sources, ()), sum(targets, ()))]
        else:
            if len(sources) != len(targets) and len(sources) != 1:
                node.wrong(f"has {len(sources)} sources and {len(targets)} targets")
            sources = sources * len(targets) if len(sources) == 1 else sources
            moves = [
                # Packets that a switch stores where they were read stay as they are.
                MemoryMove(one, tuple(part for part in other if part.polled is Polled.NO or part not in one))
                for one, other in zip(sources, targets, strict=True)
            ]
        for move in moves:
            if len({part.count for part in (*move.sources, *move.targets)}) > 1:
                node.wrong("a source and its target differ in 'size'")
            self.moved += move.sources[0].count * (len(move.sources) + len(move.targets))
        if self.moved > _MAX_MOVED:
            node.wrong(f"more than {_MAX_MOVED} cells are moved, which is not proved")
        return tuple(moves)

    def _ranges(
        self, one: _JsonNode, gpu: _GpuParts, block: _BlockParts, step: _JsonNode, way: str, *, packets: bool
    ) -> tuple[MemoryPart, ...]:
        """The cells that an entry of ``src_buff`` or ``dst_buff`` names: of several GPUs, by a switch."""
        one = _JsonNode(one.value, self.file, f"{step.where}, {way}")
        index, size = one.integer("index", 0, MAX_CELLS), one.integer("size", 1, MAX_CELLS)
        if one.get("switch_channel_id") is not None:
            at = one.integer("switch_channel_id", 0, len(block.channels["switch"]) - 1)
            buffer, gpus = gpu.switches[block.channels["switch"][at]]
        elif one.get("buffer_id") is not None:
            kind = step.text("channel_type", "memory")
            if kind not in block.remote:
                step.wrong(f"of channel type {_short(kind)}; remote buffers are reached by memory or port")
            at = one.integer("buffer_id", 0, len(block.remote[kind]) - 1)
            rank, buffer = gpu.remote[block.remote[kind][at]]
            gpus = (rank,)
        else:
            buffer, gpus = one.text("type"), (gpu.number,)
            if buffer not in _BUFFERS:
                one.wrong(f"a buffer of type {_short(buffer)}; known: i, o, s")
        for peer in gpus:
            chunks = self.gpus[peer].chunks[buffer]
            if index + size > chunks:
                has = f"has 0..{chunks - 1}" if chunks else "has none"
                one.wrong(f"chunks {index}..{index + size - 1} of buffer {buffer} of GPU {peer}, which {has}")
        first, count = index * self.per_chunk, size * self.per_chunk
        group = step.get("tbg_info")
        if group is not None:
            members = group.integer("tbg_size", 1, MAX_BLOCKS)
            count //= members
            first += group.integer("tb_id", 0, members - 1) * count
        polled = Polled.PACKET if packets else Polled.NO
        return tuple(MemoryPart(peer, buffer, first, count, polled) for peer in gpus)


def _steps_of(block: _JsonNode) -> list[_JsonNode]:
    """Steps, those of pipelines too."""
    steps = []
    for step in block.each("ops", MAX_STEPS):
        steps.append(step)
        if step.get("ops") is not None:
            steps += step.each("ops", MAX_STEPS)
    return steps
