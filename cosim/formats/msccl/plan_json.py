"""A program as MSCCL++ execution plan (JSON), which :mod:`cosim.pattern.mscclpp` reads back and proves.

MSCCL's receivers say where a message goes; MSCCL++ puts it there without asking. So each receive has chunks
of its own in the receiver's scratch: a send puts its data there and signals, a receive waits, and copies or
reduces from there. A plan that runs again finds that scratch free: each receiver says so when it begins
(relaxed signals). What waits for a step of another thread block acquires a semaphore that this step releases.
``nop`` is a barrier of a thread block's threads, before each signal and after each wait.

The format is that of ``src/core/executor`` of github.com/microsoft/mscclpp (Shah et al., "MSCCL++: Rethinking
GPU Communication Abstractions for AI Inference", arXiv 2504.09014). Only memory channels are written.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from cosim.formats.msccl.program import RECEIVES, SENDS, MscclProgram, Place, Step, ThreadBlock
from cosim.pattern.template import Collective

_Op = dict[str, Any]
_Connection = tuple[int, int, int]
"""Source, destination, channel."""
_NOP: _Op = {"name": "nop"}


def write_plan(program: MscclProgram, collective: Collective) -> str:
    """JSON text of a program that does ``collective``."""
    return json.dumps(_PlanWriter(program, collective).plan(), indent=1) + "\n"


class _PlanWriter:
    """Writes one program."""

    def __init__(self, program: MscclProgram, collective: Collective) -> None:
        self._program, self._collective = program, collective
        self._slots: dict[_Connection, list[int]] = defaultdict(list)
        """By connection: where in its receiver's scratch each message goes."""
        self._peers: list[list[int]] = [[] for _ in program.gpus]
        self._channel: dict[tuple[_Connection, int], int] = {}
        """The number of a connection's channel on the GPU of either end."""
        self._acquires: dict[tuple[int, int, int], int] = {}
        self._releases: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        """Semaphores of (GPU, block, step): one for each step that waits for another."""
        self._semaphores = [0] * len(program.gpus)
        self._scratch = [gpu.s_chunks for gpu in program.gpus]
        for rank, gpu in enumerate(program.gpus):
            for block in gpu.blocks:
                for place, step in enumerate(block.steps):
                    if step.kind in RECEIVES:
                        self._slots[block.recv, rank, block.channel].append(self._scratch[rank])
                        self._scratch[rank] += step.count
                    if step.waits_for is not None:
                        number = self._semaphores[rank]
                        self._acquires[rank, block.number, place] = number
                        self._releases[rank, *step.waits_for].append(number)
                        self._semaphores[rank] += 1
        for connection in sorted(self._slots):
            for one, other in (connection[:2], connection[1::-1]):
                self._channel[connection, one] = len(self._peers[one])
                self._peers[one].append(other)

    def plan(self) -> dict[str, Any]:
        """The whole file."""
        program = self._program
        return {
            "name": program.name,
            "collective": self._collective.value.replace("_", ""),
            "protocol": "Simple",
            "inplace": program.in_place,
            "reuse_resources": False,
            "gpus": [self._gpu(rank) for rank in range(len(program.gpus))],
            "num_threads_per_block": 1024,
            "use_double_scratch_buffer": False,
            "buffer_alignment": 16,
            "min_message_size": 0,
            "max_message_size": 2**64 - 1,
        }

    def _gpu(self, rank: int) -> dict[str, Any]:
        gpu = self._program.gpus[rank]
        inputs, outputs = gpu.i_chunks, gpu.o_chunks
        if self._program.in_place:
            inputs = outputs = self._program.num_chunks
            if self._collective is Collective.ALL_GATHER:
                inputs //= len(self._program.gpus)
            elif self._collective is Collective.REDUCE_SCATTER:
                outputs //= len(self._program.gpus)
        peers = sorted({block.send for block in gpu.blocks if block.send >= 0})
        return {
            "id": rank,
            "input_chunks": inputs,
            "output_chunks": outputs,
            "scratch_chunks": self._scratch[rank],
            "threadblocks": [
                self._block(rank, number, block, peers) for number, block in enumerate(gpu.blocks)
            ],
            "channels": [{"channel_type": "memory", "connected_to": self._peers[rank]}],
            "remote_buffers": [
                {"rank": peer, "type": "s", "access_channel_types": ["memory"]} for peer in peers
            ],
            "semaphores": [{"init_value": 0}] * self._semaphores[rank],
        }

    def _block(self, rank: int, number: int, block: ThreadBlock, peers: list[int]) -> dict[str, Any]:
        receives: _Connection = (block.recv, rank, block.channel)
        sends: _Connection = (rank, block.send, block.channel)
        channels: list[int] = []
        ops: list[_Op] = []
        if receives in self._slots:
            channels.append(self._channel[receives, rank])
            ops.append(self._signal("rlxsignal", 0))
        if sends in self._slots:
            ops.append(self._signal("rlxwait", len(channels)))
            channels.append(self._channel[sends, rank])
        arrive = iter(self._slots.get(receives, ()))
        leave = iter(self._slots.get(sends, ()))
        for place, step in enumerate(block.steps):
            ops += self._step((rank, block.number, place), step, arrive, leave, len(channels) - 1)
        remote = [peers.index(block.send)] if block.send >= 0 else []
        return {
            "id": number,
            "ops": ops,
            "channels": [{"channel_type": "memory", "channel_ids": channels}],
            "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": remote}],
        }

    def _step(
        self, at: tuple[int, int, int], step: Step, arrive: Iterator[int], leave: Iterator[int], out: int
    ) -> list[_Op]:
        """Its operations; channel 0 of its block receives, ``out`` sends."""
        ops: list[_Op] = []
        if at in self._acquires:
            ops += [{"name": "sem_acquire", "semaphore_ids": [self._acquires[at]]}, _NOP]
        came = None
        if step.kind in RECEIVES:
            came = _local(("s", next(arrive)), step.count)
            ops += [self._signal("wait", 0), _NOP]
        remote = None
        if step.kind in SENDS:
            remote = {"buffer_id": 0, "index": next(leave), "size": step.count}
        src, dst = (_local(one, step.count) if one[1] >= 0 else None for one in (step.src, step.dst))
        ops += _moves(step.kind, src, dst, came, remote)
        if remote is not None:
            ops += [_NOP, self._signal("signal", out)]
        if at in self._releases:
            ops += [_NOP, {"name": "sem_release", "semaphore_ids": self._releases[at]}]
        return [*ops, _NOP] if step.kind != "nop" else ops

    @staticmethod
    def _signal(name: str, channel: int) -> _Op:
        return {"name": name, "channel_ids": [channel], "channel_type": "memory"}


def _local(place: Place, count: int) -> _Op:
    return {"type": place[0], "index": place[1], "size": count}


def _moves(kind: str, src: _Op | None, dst: _Op | None, came: _Op | None, remote: _Op | None) -> list[_Op]:
    """What a step copies and adds up: ``came`` is what it received, ``remote`` where it sends to."""

    def copy(one: _Op | None, other: _Op | None) -> _Op:
        return {"name": "copy", "src_buff": [one], "dst_buff": [other]}

    def put(one: _Op | None) -> _Op:
        return {"name": "put", "src_buff": [one], "dst_buff": [remote], "channel_type": "memory"}

    def add(name: str, *into: _Op | None) -> _Op:
        both = [dst, src] if kind == "re" else [src, came]
        return {
            "name": name, "src_buff": both, "dst_buff": [*into], "channel_type": "memory", "reduce_op": "sum"
        }  # fmt: skip

    if kind in ("s", "r", "cpy", "nop"):
        return {"s": [put(src)], "r": [copy(came, dst)], "cpy": [copy(src, dst)], "nop": []}[kind]
    if kind == "rcs":
        return [copy(came, dst), put(came)]
    if kind in ("rrc", "re"):
        return [add("re", dst)]
    return [add("res", came if kind == "rrs" else dst, remote)]
