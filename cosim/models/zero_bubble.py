"""Orders of schedules whose backward is parted: gradients of inputs first, of weights when there is time.

``interleaved_zero_bubble``: ZB1P with several chunks of layers on a stage; ``zbv``: two chunks that form a V,
the second on the way back (Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, sections 2
and 6). ``dualpipev``: DualPipe cut in half, its V folded once (DeepSeek-V3, arXiv 2412.19437, section 3.2.1;
github.com/deepseek-ai/DualPipe); pairs of a forward and a backward pass that a script may run side by side
are run one after the other, as PyTorch does unless it is told otherwise.

The orders are those of PyTorch 2.13's ``ScheduleInterleavedZeroBubble``, ``ScheduleZBVZeroBubble`` and
``ScheduleDualPipeV`` (``torch/distributed/pipelining/schedules.py``), without the slots in which a stage
waits.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from cosim.models.schedule import Part, Pass, in_rounds


def interleaved_zero_bubble(
    stage: int, stages: int, micro_batches: int, chunks: int, together: int
) -> list[Pass]:
    """As interleaved, a stage begins earlier by a pass for each after it; from the ``stage``-th backward on
    each is followed by a pass of weights, the oldest that is left.
    """
    count = micro_batches * chunks
    forward = [in_rounds(True, number, together, chunks) for number in range(count)]
    backward = [in_rounds(False, number, together, chunks, part="inputs") for number in range(count)]
    weights = [in_rounds(False, number, together, chunks, part="weights") for number in range(count)]
    ahead = min(stages - stage - 1 + (chunks - 1) * together, count)
    order, left = forward[:ahead], deque(weights)
    for number, one in enumerate(backward):
        if ahead + number < count:
            order.append(forward[ahead + number])
        order.append(one)
        if number >= stage:
            order.append(left.popleft())
    return [*order, *left]


def zbv(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """Chunk 1 begins when a micro-batch has come back; passes of weights fill what is left at the end.

    Fewer micro-batches than fill a pipeline leave the places of others empty.
    """
    made = _PassOrder()
    made.add("F0", 2 * (stages - stage) - 1)
    made.add("F1 F0", stage)
    made.add("F1 I1 W1", stages - stage)
    count = max(2 * stages - 1, micro_batches)
    while made.done["F1"] < made.done["F0"] or made.done["F0"] < count:
        if made.done["F0"] < count:
            made.add("F0")
        made.add("I0 W0 F1 I1 W1")
    made.add("I0 I1", stage)
    made.add("I0 W0", stages - stage)
    for chunk in ("1", "0"):
        made.add(f"W{chunk}", made.done[f"I{chunk}"] - made.done[f"W{chunk}"])
    return [one for one in made.order if one.micro_batch < micro_batches]


def dualpipev(stage: int, stages: int, micro_batches: int) -> list[Pass]:
    """Forward of one chunk beside backward of the other; weights apart only where a stage would wait."""
    made = _PassOrder()
    after = stages - stage - 1
    made.add("F0", 2 * after)
    made.add("F0 F1", stage + 1)
    made.add("I1 W F1", after)
    made.add("F0 B1 F1 B0", micro_batches - 2 * stages + stage + 1)
    made.add("B1 F1 B0", after)
    whole = stage + 1  # of 2 x (stage + 1) passes backward, the second half are parted
    for number in range(2 * (stage + 1)):
        made.add(f"{'B' if number < whole else 'I'}{1 - number % 2}")
    made.add("W I0", after)
    made.add("W", stage + 1)
    return made.order


_PARTS: dict[str, Part] = {"F": "whole", "B": "whole", "I": "inputs", "W": "weights"}


@dataclass
class _PassOrder:
    """Passes as they are added; ``done``: how many of each kind and chunk."""

    order: list[Pass] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    left: deque[Pass] = field(default_factory=deque)
    """Passes of inputs whose weights' are to come."""

    def add(self, kinds: str, times: int = 1) -> None:
        """``F1``: chunk 1's next pass forward; B: backward, I: of inputs, W: of weights, the oldest if of no
        chunk.
        """
        for _ in range(times):
            for kind in kinds.split():
                self._add(kind)

    def _add(self, kind: str) -> None:
        if kind == "W":
            if self.left:
                oldest = self.left.popleft()
                self.order.append(Pass(False, oldest.micro_batch, oldest.chunk, "weights"))
            return
        way, chunk = kind[0], kind[1]
        counted = kind.replace("B", "I")
        one = Pass(way == "F", self.done[counted], int(chunk), _PARTS[way])
        self.done[counted] += 1
        self.order.append(one)
        if way == "I":
            self.left.append(one)
