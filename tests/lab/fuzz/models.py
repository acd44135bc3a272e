"""Models of traces, and the traces that they are learned from, damaged: read and used, or refused."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from cosim.synthesis.draw import Scale, synthesise
from cosim.synthesis.learn import learn
from cosim.synthesis.model import read_model
from cosim.synthesis.sources import read_sources
from tests.inputs import ROOT
from tests.lab.fuzz.damage import damaged
from tests.lab.fuzz.tally import Target, drawn

TRACES = ROOT / "scenarios" / "files" / "synthetic"


@cache
def models() -> dict[int, bytes]:
    """A model as it is, and one that hides, as files."""
    workload = read_sources([TRACES], world_size=None, gpu=None, dependencies="all")
    return {hide: learn(workload, hide=hide).model_dump_json().encode() for hide in (1, 20)}


class _ModelFile:
    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="cosim-fuzz-"))
        weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)
        self._path = self._place / "model.json"

    def __call__(self, body: bytes) -> None:
        self._path.write_bytes(body)
        model = read_model(self._path)
        synthesise(model, scale=Scale(layers=2 if model.hide == 1 else 1, bytes=1.5))


class _TraceFile:
    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="cosim-fuzz-"))
        weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)
        shutil.copytree(TRACES, self._place / "traces")

    def __call__(self, body: bytes) -> None:
        (self._place / "traces" / "trace.0.et").write_bytes(body)
        learn(read_sources([self._place / "traces"], world_size=None, gpu=None, dependencies="all"), hide=20)


def targets() -> list[Target]:
    """Both sorts of models, and one rank's trace."""
    trace = (TRACES / "trace.0.et").read_bytes()

    def of(name: str, body: bytes, judge: Callable[[bytes], None]) -> Target:
        def draw(random: Random) -> bytes:
            return damaged(random, [body])

        return Target(name, drawn(draw), judge)

    return [
        of("model", models()[1], _ModelFile()),
        of("hidden", models()[20], _ModelFile()),
        of("trace", trace, _TraceFile()),
    ]
