"""What is built of a model's settings, and what it needs of each GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosim.models.issuer import Issuer
from cosim.models.parts import Layer
from cosim.models.stage import StageBuilder
from cosim.models.training import Training

if TYPE_CHECKING:
    from cosim.models.catalogue.memory import Memory


@dataclass(frozen=True, eq=False)
class ModelJob:
    """A job of a model.

    Attributes
    ----------
    stages
        ``stages[s][c]`` are the layers of chunk c of pipeline stage s, in order.
    training
        How an iteration is done: its mesh, micro-batches, schedule, what is exchanged.
    memory
        Bytes of the fullest GPU.
    builder
        What writes a stage's program.
    assumed
        What was assumed, for the report.
    """

    name: str
    stages: list[list[list[Layer]]]
    training: Training
    memory: Memory
    builder: type[Issuer] = StageBuilder
    assumed: tuple[str, ...] = ()
