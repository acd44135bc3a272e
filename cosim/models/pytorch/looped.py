"""A rank's iteration under a looped schedule of torch.distributed.pipelining: several stages of it on a rank.

``ScheduleInterleaved1F1B`` and ``ScheduleLoopedBFS``, as PyTorch 2.13's ``_PipelineScheduleRuntime`` runs
them: a pass waits for its input alone, what is sent is waited for at the end. Of FSDP's stages those of the
next three to come are gathered, others given up; a stage's gradients are exchanged, waited for and divided by
the number of micro-batches right after its last backward.

Not modelled: how early an input is asked for (it comes when it is sent all the same).
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.models.pytorch.stage import EagerStage
from cosim.models.schedule import IN_ROUNDS, Pass, even_rounds, passes
from cosim.workload.program import Program

MOST_ACTIVE = 3
"""Stages of a rank whose parameters are together at once (``_add_unshard_reshard``)."""


class LoopedStage(EagerStage):
    """Passes through chunks of layers, each with a data parallelism of its own."""

    def program(self) -> Program:
        """The rank's program."""
        training = self.training
        together = None
        if training.schedule in IN_ROUNDS:
            together = even_rounds(training.micro_batches, self.stages)
        order = passes(
            training.schedule, self.stage, self.stages, training.micro_batches, len(self.parts),
            together=together,
        )  # fmt: skip
        left = [training.micro_batches] * len(self.parts)
        active: list[int] = []
        sent: list[int] = []
        for place, one in enumerate(order):
            name = f"micro-batch {one.micro_batch} "
            self.what, self.part = (name, "forward" if one.forward else "backward"), self.parts[one.chunk]
            self._gather(active, next_chunks(order, place))
            posted = self._posted(one)
            self.data.have()
            self.wait(posted)
            left[one.chunk] -= one.ends
            self._pass(one, last=left[one.chunk] == 0)
            self.close()
            sent += self._send(name, one)
            if left[one.chunk] == 0:
                self.layer = "gradients"
                self.data.finish()
                self._average(self.data)
        self.wait(sent)
        self.what, self.layer = ("", "optimizer"), "gradients and optimizer"
        self._finish()
        return Program(f"stage {self.stage}", tuple(self.operations))

    def _pass(self, one: Pass, *, last: bool) -> None:
        """``last``: the chunk's last of the iteration."""
        if one.forward:
            self._forward()
        else:
            self._backward(last=last)

    def _gather(self, active: list[int], wanted: Sequence[int]) -> None:
        """Chunks whose turn comes are fetched, ``active`` ones whose doesn't are given up."""
        for chunk in [each for each in active if each not in wanted]:
            self.parts[chunk].data.give_up()
            active.remove(chunk)
        for chunk in [each for each in wanted if each not in active]:
            self.parts[chunk].data.fetch()
            active.append(chunk)

    def _sum_gradients(self) -> None:
        """That of each chunk is done."""
        self._sum_tied()


def next_chunks(order: Sequence[Pass], place: int) -> list[int]:
    """Chunks of the passes from ``place`` on, each once, the first few."""
    found: list[int] = []
    for one in order[place:]:
        if one.chunk not in found:
            found.append(one.chunk)
        if len(found) == MOST_ACTIVE:
            break
    return found
