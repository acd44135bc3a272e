"""What is said while a script runs, and the way round what takes long before the first optimizer step.

Words go into a file of the folder that ranks share, which the command reads. ``skip_evaluation``: until the
first backward, a module's forward without gradients, in ``eval()`` and on inputs of the same shapes, gives
what it gave the first time, unrecorded. What a module changes in itself meanwhile (a cache) isn't changed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cosim.profiler.inside import lines

_EVERY = 5_000
_SILENCE_S = float(os.environ.get("COSIM_PROFILE_SILENCE_S", "60"))


class OperatorCount:
    """Counts operators until the first optimizer step."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.file, self.rank = folder / f"said-{rank}", rank
        self.next = _EVERY
        self.seen = 0
        self.compiling = False
        threading.Thread(target=self._watch, args=(threading.get_ident(),), daemon=True).start()

    def say(self, text: str) -> None:
        """A line, for the user."""
        with self.file.open("a") as out:
            out.write(f"rank {self.rank}: {text}\n")

    def _watch(self, main: int) -> None:
        """Say where the script is when nothing has come of it for a while."""
        last, since = -1, time.monotonic()
        while True:
            time.sleep(1)
            if self.seen != last:
                last, since = self.seen, time.monotonic()
            elif time.monotonic() - since > _SILENCE_S:
                since = time.monotonic()
                where = lines.current(sys._current_frames().get(main))
                why = "torch.compile is at work" if self.compiling else "does it wait for another process?"
                self.say(f"no operator for {_SILENCE_S:.0f} s, at {where}: {why}")

    def before_step(self, operators: int, *, gradients: bool, answering: bool) -> None:
        """So many operators, and no optimizer has stepped yet; a request that is answered needs none."""
        self.seen = operators
        if operators < self.next or answering:
            return
        self.next = operators + _EVERY
        way = "" if gradients else " (without gradients; if it evaluates first, --skip-evaluation is quicker)"
        self.say(f"{operators:,} operators and no optimizer step yet; now at {lines.current()}{way}")


def skip_evaluation(recorder: Any) -> None:
    """Answer forwards of an evaluation from memory."""
    plain = torch.nn.Module.__call__
    answers: dict[Any, Any] = {}
    depth = [0]

    def call(self: torch.nn.Module, *args: Any, **given: Any) -> Any:
        if self.training or torch.is_grad_enabled() or recorder.backwards or depth[0]:
            return plain(self, *args, **given)
        key = (id(self), *(_looks(leaf) for leaf in tree_leaves((args, given))))
        if key not in answers:
            depth[0] += 1
            try:
                answers[key] = plain(self, *args, **given)
            finally:
                depth[0] -= 1
        return answers[key]

    torch.nn.Module.__call__ = call  # type: ignore[method-assign,assignment]


def _looks(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.dtype, leaf.device
    return leaf if isinstance(leaf, int | float | str | bool | None) else id(leaf)
