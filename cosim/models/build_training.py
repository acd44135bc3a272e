"""Layers on stages made a workload: one program for each stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.files.import_report import ImportReport
from cosim.models.issuer import Issuer
from cosim.models.parts import Layer
from cosim.models.stage import StageBuilder
from cosim.models.training import Timer, Training
from cosim.workload.program import Workload


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
