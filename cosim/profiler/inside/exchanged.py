"""What comes out of a collective, where it is known: flags, counts and shapes that ranks tell each other.

A broadcast gives what its source has: the source leaves it in the shared folder, under the group's shape, so
that it also is what another group of that shape gets. Else every rank is taken to give what this one gives:
an all-reduce of n ranks sums n of them, an all-gather repeats it. Messages carry whole numbers from rank to
rank. Anything else is unknown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch

from cosim.profiler.inside import host
from cosim.profiler.inside.shared_folder import SharedFolder

MOST_SENT = 1024
"""Elements of a tensor that is left for other ranks."""
MOST_BROADCAST = 1 << 16
"""The same of whole numbers in a broadcast: lists that ranks compare, with a number for each parameter."""
_ALIKE = frozenset({"avg", "max", "min", "band", "bor"})


class ValueExchange:
    """Values across ranks; ``assume(text)`` notes what was taken for granted."""

    def __init__(self, mode: Any, folder: SharedFolder, assume: Any) -> None:
        self.mode, self.folder, self.assume = mode, folder, assume
        self._times: Counter[str] = Counter()

    def pass_on(
        self, kind: str, inputs: list[Any], outputs: list[Any], ranks: tuple[int, ...], *, root: int = 0,
        peer: int = -1, tag: int = 0, how: str = "",
    ) -> None:  # fmt: skip
        """Let ``outputs`` have what they get from ``inputs``; ``how``: the reduction's name."""
        if kind in ("send", "recv"):
            self._message(kind, inputs, outputs, peer, tag)
            return
        values = [host.values_of(t) for t in inputs]
        if kind == "broadcast":
            values = self._broadcast(values, outputs, ranks, root)
        elif any(v is None for v in values):
            values = []
        found = self._results(kind, [v for v in values if v is not None], outputs, len(ranks), how)
        for place, tensor in enumerate(outputs):
            self._set(tensor, found[place] if place < len(found) else None)

    def _results(
        self, kind: str, values: list[torch.Tensor], outputs: list[Any], count: int, how: str
    ) -> list[torch.Tensor]:
        with no_dispatch():
            if kind == "broadcast" or not values:
                return values
            if kind == "all_reduce":
                found = [_reduced(v, count, how) for v in values]
                return [v for v in found if v is not None]
            if kind != "all_gather":
                return []
            if count > 1:
                self.assume(
                    "what other ranks give to an all-gather of known numbers is taken for this rank's"
                )
            if len(values) == len(outputs) and outputs[0].numel() == values[0].numel() * count:
                return [
                    v.reshape(-1).repeat(count).reshape(tuple(o.shape))
                    for v, o in zip(values, outputs, strict=True)
                ]
            if len(values) == 1 and all(o.shape == values[0].shape for o in outputs):
                return [values[0]] * len(outputs)
            return []

    def _set(self, tensor: Any, values: torch.Tensor | None) -> None:
        if values is None or not isinstance(tensor, FakeTensor) or values.numel() > host.MOST_ON_GPU:
            host.forget(self.mode, tensor)
            return
        with no_dispatch():
            # In place, as the collective does it: views of the tensor share what is known.
            if tensor.constant is not None:
                tensor.constant.copy_(values)
                return
            own = values.to(tensor.dtype).reshape(tuple(tensor.shape)).clone()
        if _is_whole(tensor):
            host.tell(self.mode, tensor, own)

    def _broadcast(
        self, values: list[Any], outputs: list[Any], ranks: tuple[int, ...], root: int
    ) -> list[Any]:
        if len(ranks) < 2 or any(_is_long(t) for t in outputs):
            return values if ranks[root] == self.folder.rank else [None] * len(values)
        # Groups of one shape do the same in the same order: the n-th broadcast of one is the n-th of another.
        step = ranks[1] - ranks[0]
        place = f"broadcast-{step}x{len(ranks)}-{root}"
        self._times[place] += 1
        name = f"{place}-{self._times[place]}"
        if ranks[root] == self.folder.rank:
            with no_dispatch():
                self.folder.put(name, _plain(values))
            return values
        said = _tensors(self.folder.get(name, ranks[root]))
        return said if len(said) == len(values) else values

    def _message(self, kind: str, inputs: list[Any], outputs: list[Any], peer: int, tag: int) -> None:
        tensors = inputs or outputs
        # Activations: large, and nobody's decision depends on them. Whole numbers are shapes and counts.
        if any(t.numel() > MOST_SENT or t.is_floating_point() for t in tensors):
            for tensor in outputs:
                host.forget(self.mode, tensor)
            return
        place = f"{kind}-{peer}-{tag}"
        self._times[place] += 1
        name = f"{tag}-{self._times[place]}"
        with no_dispatch():
            if kind == "send":
                self.folder.put_message(peer, name, _plain([host.values_of(t) for t in inputs]))
                return
        said = _tensors(self.folder.get_message(peer, name)) or [None] * len(outputs)
        for tensor, values in zip(outputs, said, strict=True):
            self._set(tensor, values)


def _is_long(tensor: torch.Tensor) -> bool:
    return tensor.numel() > (MOST_SENT if tensor.is_floating_point() else MOST_BROADCAST)


def _plain(values: list[torch.Tensor | None]) -> list[Any]:
    """Numbers, as they are left in a file."""
    return [None if v is None else (v.dtype, tuple(v.shape), v.reshape(-1).tolist()) for v in values]


def _tensors(said: Any) -> list[torch.Tensor | None]:
    with no_dispatch():
        return [None if v is None else torch.tensor(v[2], dtype=v[0]).reshape(v[1]) for v in said or ()]


def _reduced(values: torch.Tensor, count: int, how: str) -> torch.Tensor | None:
    if how == "sum":
        return values * count if values.dtype is not torch.bool else values
    if how == "product":
        return values**count
    return values if how in _ALIKE else None


def _is_whole(tensor: torch.Tensor) -> bool:
    """Its memory is nobody else's part: whoever writes there writes through it."""
    return tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
