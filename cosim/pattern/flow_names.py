"""Telling a person which message of a template something is wrong with."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from cosim.errors import AlgorithmError
from cosim.kernel import kernel
from cosim.pattern.template import NO_DATA, Template


class FlowNames:
    """Names flows by rank, chunk and step; steps count blocks' repetitions, the entries being step 0."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.name = f"{template.name} {template.collective.value} over {template.num_ranks} ranks"

    def place(self, flow: int) -> tuple[int, int, int]:
        """(block, repetition, row) of a flow."""
        t = self.template
        block = int(np.searchsorted(t.block_base, flow, side="right")) - 1
        count = int(t.block_row[block + 1] - t.block_row[block])
        repetition, offset = divmod(flow - int(t.block_base[block]), count)
        return block, repetition, int(t.block_row[block]) + offset

    def flow(self, flow: int) -> str:
        """``the message 2 -> 3 with chunk 5 in step 4 (block 2, repetition 2)``."""
        t = self.template
        if not 0 <= flow < t.num_flows:
            return f"a flow that doesn't exist (number {flow})"
        block, repetition, row = self.place(flow)
        src, dst = int(t.src[row]), int(t.dst[row])
        if block == 0:
            return f"rank {src}'s arrival"
        if block == len(t.block_repeat) - 1:
            return f"rank {src}'s exit"
        step = int(t.block_repeat[:block].sum()) + repetition
        where = f"in step {step} (block {block}, repetition {repetition})"
        what = f"rank {src}'s mark" if src == dst else f"the message {src} -> {dst}"
        if t.action[row] == NO_DATA or not t.num_chunks:
            return f"{what} {where}"
        first = (int(t.chunk[row]) + repetition * int(t.chunk_step[row])) % t.num_places
        count = int(t.chunk_count[row])
        chunks = self.chunk(first)
        if count > 1:
            chunks = f"chunks {first}..{(first + count - 1) % t.num_places}"
        to = (first + int(t.shift[row])) % t.num_places
        into = f" into {self.chunk(to)}" if to != first else ""
        return f"{what} with {chunks}{into} {where}"

    def chunk(self, place: int) -> str:
        """``chunk 5``, or ``scratch 0`` for the first place after the chunks."""
        first = self.template.num_chunks
        return f"chunk {place}" if place < first else f"scratch {place - first}"

    def refuse_flow(self, code: int, flow: int, before: int) -> NoReturn:
        """Raise for what the replay found at a flow."""
        rank = int(self.template.src[self.place(flow)[2]])
        if code == kernel.NEVER_RELEASED:
            raise AlgorithmError(
                f"{self.name} deadlocks: {self.flow(flow)} waits for nothing, so nothing ever starts it"
            )
        if code == kernel.BEFORE_FIRST:
            raise AlgorithmError(f"{self.name} deadlocks: {self.flow(flow)} waits for {self.flow(before)}")
        raise AlgorithmError(
            f"{self.name}: {self.flow(flow)} waits for {self.flow(before)}, which rank {rank} can't see: "
            "a rank sees what arrives at it, and its own messages"
        )

    def refuse_cycle(self) -> NoReturn:
        """Raise for dependencies that point forward: a deadlock, or rows in an order that can't be used."""
        t = self.template
        if t.num_flows > 1 << 20:
            row = int(np.searchsorted(t.dep_ptr, np.flatnonzero(t.dep_distance < 1)[0], side="right")) - 1
            raise AlgorithmError(f"{self.name}: row {row} waits for itself or a later flow")
        left = []
        followers: dict[int, list[int]] = {}
        for flow in range(t.num_flows):
            row = self.place(flow)[2]
            waits = flow - t.dep_distance[t.dep_ptr[row] : t.dep_ptr[row + 1]]
            left.append(len(waits))
            for wait in waits.tolist():
                followers.setdefault(wait, []).append(flow)
        ready = [flow for flow in range(t.num_flows) if left[flow] == 0]
        for flow in ready:
            for follower in followers.get(flow, ()):
                left[follower] -= 1
                if left[follower] == 0:
                    ready.append(follower)
        stuck = [flow for flow in range(t.num_flows) if left[flow]]
        if not stuck:
            row = int(np.searchsorted(t.dep_ptr, np.flatnonzero(t.dep_distance < 1)[0], side="right")) - 1
            raise AlgorithmError(
                f"{self.name}: row {row} waits for a later flow; rows must come after what they wait for"
            )
        shown = "\n".join(f"  {self.flow(flow)}" for flow in stuck[:4])
        more = f"\n  and {len(stuck) - 4} more" if len(stuck) > 4 else ""
        raise AlgorithmError(f"{self.name} deadlocks: these wait for each other for ever\n{shown}{more}")
