"""What is built of a model's settings, and what it needs of each GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cosim.files.import_report import ImportReport
from cosim.models.issuer import Issuer
from cosim.models.parts import Layer
from cosim.models.stage import StageBuilder
from cosim.models.training import Timer, Training
from cosim.workload.program import Workload

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


def build_training(
    name: str,
    stages: Sequence[Sequence[Sequence[Layer]]],
    training: Training,
    timer: Timer,
    report: ImportReport,
    builder: type[Issuer] = StageBuilder,
) -> Workload:
    """The workload; ``stages[s][c]`` are the layers of chunk c on stage s, along the mesh's axis ``pp``."""
    programs = tuple(
        builder(stage, len(stages), chunks, training, timer).program() for stage, chunks in enumerate(stages)
    )
    mesh = training.mesh
    ranks = np.arange(mesh.world_size)
    axes = list(mesh.axes)
    below = int(np.prod([mesh.axes[axis] for axis in axes[axes.index("pp") + 1 :]], dtype=np.int64))
    program_of = (ranks // below % mesh.axes["pp"]).astype(np.int32)
    return Workload(name, mesh, programs, program_of, report)
