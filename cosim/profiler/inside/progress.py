"""What is said while a script runs, and the way round what takes long before the first optimizer step.

Words go into a file of the folder that ranks share, which the command reads. ``skip_evaluation``: until the
first backward, a module's forward without gradients, in ``eval()`` and on inputs of the same shapes, gives
what it gave the first time, unrecorded. What a module changes in itself meanwhile (a cache) isn't changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cosim.profiler.inside import lines

_EVERY = 5_000


class Progress:
    """Counts operators until the first optimizer step."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.file, self.rank = folder / f"said-{rank}", rank
        self.next = _EVERY

    def say(self, text: str) -> None:
        """A line, for the user."""
        with self.file.open("a") as out:
            out.write(f"rank {self.rank}: {text}\n")

    def before_step(self, operators: int, *, gradients: bool) -> None:
        """So many operators, and no optimizer has stepped yet."""
        if operators < self.next:
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
