"""A rank's iteration under a schedule whose backward is parted (``torch.distributed.pipelining``).

A pass of inputs' gradients runs what lies between a part's output and its input; what came in where weights
are read is kept, of which a later pass makes weights' gradients: a product's other half, a norm's kernel once
more. The model's first part has no inputs that ask for gradients: all of its backward is in the later pass.
Gradients of weights are not FSDP's to see: they add up in their own type, until a pass backward through their
layer, or the exchange at the end, takes them over in the type of the reduction.

Not modelled: launches of the search for what to keep, which is the host's alone.
"""

from __future__ import annotations

from cosim.models.pytorch.looped import LoopedStage
from cosim.models.schedule import Pass


class PartedStage(LoopedStage):
    """Passes forward, of inputs, of weights, and whole ones backward."""

    def _pass(self, one: Pass, *, last: bool) -> None:
        if one.part == "whole" or (one.part == "weights" and self.part.first):
            super()._pass(one, last=last)
        elif one.part == "weights" or not self.part.first:
            weights = one.part == "weights"
            for place in reversed(range(len(self.layers))):
                layer = self.layers[place]
                self.layer = f"{layer.name} {one.part}"
                self._pieces(layer.backward_weights if weights else layer.backward_inputs, place)
            (self.data.weights_end if weights else self.data.inputs_end)()

    def _posted(self, one: Pass) -> tuple[int, ...]:
        return () if one.part == "weights" else super()._posted(one)

    def _send(self, name: str, one: Pass) -> tuple[int, ...]:
        return () if one.part == "weights" else super()._send(name, one)
