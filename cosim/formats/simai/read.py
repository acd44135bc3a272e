"""SimAI's workload files (those of AICB, after ASTRA-sim 1.0's text format). Kind ``simai``.

A header (policy, sizes of the parallel groups), the number of layers, a line for each layer::

    name dependency forward_ns type bytes input_gradient_ns type bytes weight_gradient_ns type bytes update_ns

Every rank goes through all layers: forward, each with its computation and then its collective; then back,
each with the input gradient's computation and collective, and the weight gradient's. Forward and
input-gradient collectives are waited for; a weight gradient's runs beside what follows, and the update
follows it. With checkpoints, forward is computed again from the last of them when a layer is reached that
initiates it. Forward and input-gradient collectives run over the tensor-parallel group, weight-gradient ones
over the data-parallel group; ``_EP`` says the expert-parallel group, ``_DP_EP`` the data-parallel group of
one expert.

Sizes: an all-gather's bytes are what each rank has afterwards, a reduce-scatter's what each had before.
Source: SimAI (X. Wang et al., NSDI 2025), ``astra-sim/workload/{Workload,Layer}.cc``. Not modelled, for the
file doesn't say it: sends between pipeline stages and the pipeline's bubble (the report works it out).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import Field

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ImportReport
from cosim.units import PS_PER_NS, format_size, format_time
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import DeviceMesh, Operation, OpKind, Program, Workload

_TRANSFORMER = ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER")
_KINDS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
    "BROADCAST": "broadcast",
}
_TYPE = re.compile(rf"({'|'.join(_KINDS)})(_EP|_DP_EP)?$")
_NUMBERS = {
    "model_parallel_NPU_group": "tp",
    "ep": "ep",
    "pp": "pp",
    "vpp": "vpp",
    "ga": "ga",
    "all_gpus": "gpus",
    "pp_comm": "pp_comm",
}
_MOST_LAYERS = 1_000_000


@dataclass(frozen=True, slots=True)
class _LayerPass:
    """A computation and the collective after it; ``kind`` is empty where there is none."""

    compute_ns: int
    kind: str
    group: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _SimaiLayer:
    name: str
    forward: _LayerPass
    input_gradient: _LayerPass
    weight_gradient: _LayerPass
    update_ns: int


@dataclass(slots=True)
class _File:
    """What the file says, as it says it."""

    sizes: dict[str, int] = field(default_factory=dict)
    checkpoints: frozenset[int] = frozenset()
    initiates: frozenset[int] = frozenset()
    layers: list[_SimaiLayer] = field(default_factory=list)


class SimAIWorkload(WorkloadSpec):
    """A SimAI / AICB workload file: layers with measured computation times and collectives"""

    path: str = Field(description="the file")
    gpus: int | None = Field(None, ge=1, description="ranks; needed where the file's header has no all_gpus")

    def build(self, context: Context) -> Workload:
        """One program that every rank runs, on a mesh of pp, dp, ep, tp (tp fastest).

        Raises
        ------
        WorkloadError
            Not such a file, or sizes that don't fit; with the line.
        """
        path = context.base / self.path
        said = _read(path)
        mesh = self._mesh(said, Location(str(path), 1))
        return _SimaiProgram(path.stem, said, mesh).workload()

    def _mesh(self, said: _File, place: Location) -> DeviceMesh:
        sizes = {"tp": 1, "ep": 1, "pp": 1, **said.sizes}
        gpus = self.gpus if self.gpus is not None else sizes.get("gpus")
        if gpus is None:
            raise WorkloadError(
                "the header doesn't say how many GPUs there are", location=place, hint="give gpus: NUMBER"
            )
        # The header has no word for data parallelism: it is what the others leave.
        inner = sizes["tp"] * sizes["ep"] * sizes["pp"]
        if gpus % inner:
            raise WorkloadError(
                f"{gpus} GPUs are not a multiple of tp {sizes['tp']} x ep {sizes['ep']} x pp {sizes['pp']}",
                location=place,
                hint=f"give gpus: a multiple of {inner}",
            )
        return DeviceMesh({"pp": sizes["pp"], "dp": gpus // inner, "ep": sizes["ep"], "tp": sizes["tp"]})


def _read(path: Path) -> _File:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"can't be read: {error}", location=Location(str(path))) from None
    if len(lines) < 2:
        raise WorkloadError("a header and a number of layers are missing", location=Location(str(path), 1))
    said = _header(lines[0], Location(str(path), 1))
    count = _number(lines[1].strip(), "the number of layers", Location(str(path), 2))
    if count > _MOST_LAYERS:
        raise WorkloadError(f"{count} layers; at most {_MOST_LAYERS}", location=Location(str(path), 2))
    for number, line in enumerate(lines[2:], 3):
        if line.strip():
            said.layers.append(_layer(line.split(), Location(str(path), number)))
    if len(said.layers) != count:
        raise WorkloadError(
            f"line 2 says {count} layers, and {len(said.layers)} follow", location=Location(str(path), 2)
        )
    wrong = sorted(layer for layer in said.checkpoints | said.initiates if layer >= count)
    if wrong:
        raise WorkloadError(
            f"checkpoint layer {wrong[0]}: there are layers 0 to {count - 1}", location=Location(str(path), 1)
        )
    return said


def _header(line: str, place: Location) -> _File:
    words = line.replace(":", " ").split()
    if not words or words[0] not in _TRANSFORMER:
        found = words[0] if words else "nothing"
        raise WorkloadError(
            f"the header begins with {found!r}", location=place, hint=f"read are: {', '.join(_TRANSFORMER)}"
        )
    said, at = _File(), 1
    while at < len(words):
        key, at = words[at], at + 1
        if key in ("checkpoints", "checkpoint_initiates"):
            count = _number(words[at] if at < len(words) else "", key, place)
            listed = [_number(word, key, place) for word in words[at + 1 : at + 1 + count]]
            if len(listed) < count:
                raise WorkloadError(
                    f"{key}: {count} layers are announced, {len(listed)} follow", location=place
                )
            at += 1 + count
            if key == "checkpoints":
                said.checkpoints = frozenset(listed)
            else:
                said.initiates = frozenset(listed)
        elif key in _NUMBERS:
            said.sizes[_NUMBERS[key]] = value = _number(words[at] if at < len(words) else "", key, place)
            if value < 1:
                raise WorkloadError(f"{key} is {value}; it should be at least 1", location=place)
            at += 1
        else:
            raise WorkloadError(
                f"the header says {key!r}",
                location=place,
                hint=f"known are: {', '.join([*_NUMBERS, 'checkpoints', 'checkpoint_initiates'])}",
            )
    return said


def _layer(words: list[str], place: Location) -> _SimaiLayer:
    if len(words) != 12:
        raise WorkloadError(f"a layer has 12 entries, this one {len(words)}", location=place)
    return _SimaiLayer(
        words[0],
        _step(words[2:5], "forward", "tp", place),
        _step(words[5:8], "input gradient", "tp", place),
        _step(words[8:11], "weight gradient", "dp", place),
        _number(words[11], "update time", place),
    )


def _step(words: list[str], what: str, group: str, place: Location) -> _LayerPass:
    compute = _number(words[0], f"{what} time", place)
    size = _number(words[2], f"{what} bytes", place)
    if words[1] == "NONE" or size == 0:
        return _LayerPass(compute, "", "", 0)
    match = _TYPE.match(words[1])
    if match is None:
        raise WorkloadError(
            f"{what} collective {words[1]!r}",
            location=place,
            hint=f"known are: NONE, {', '.join(_KINDS)}, each also with _EP or _DP_EP",
        )
    return _LayerPass(
        compute, _KINDS[match[1]], {None: group, "_EP": "ep", "_DP_EP": "dp_ep"}[match[2]], size
    )


def _number(word: str, what: str, place: Location) -> int:
    if not re.fullmatch(r"\d{1,18}", word):
        raise WorkloadError(f"{what} is {word!r}", location=place, hint="it should be a whole number")
    return int(word)


class _SimaiProgram:
    """The one program: what follows what."""

    def __init__(self, name: str, said: _File, mesh: DeviceMesh) -> None:
        self.name, self.said, self.mesh = name, said, mesh
        # Gradients of what all experts share go over dp and ep; DP_EP is the replicas of one expert.
        self.groups = {"tp": ("tp",), "dp": ("dp", "ep"), "ep": ("ep",), "dp_ep": ("dp",)}
        self.operations: list[Operation] = []
        self.last: tuple[int, ...] = ()
        self.collectives: Counter[str] = Counter()
        self.alone: Counter[str] = Counter()
        self.compute_ps = 0

    def workload(self) -> Workload:
        layers = self.said.layers
        for number, layer in enumerate(layers):
            self._wait_for(layer.forward, f"{layer.name} {number} forward", "forward")
        for number in range(len(layers) - 1, -1, -1):
            for again in self._recomputed(number):
                self._wait_for(layers[again].forward, f"{layers[again].name} {again} again", "recomputation")
            self._backward(layers[number], f"{layers[number].name} {number}")
        program = Program("every rank", tuple(self.operations))
        ranks = np.zeros(self.mesh.world_size, np.int32)
        return Workload(self.name, self.mesh, (program,), ranks, self._report())

    def _recomputed(self, number: int) -> Iterator[int]:
        """Layers whose forward is computed again before this one's backward."""
        if number in self.said.initiates:
            since = max((c for c in self.said.checkpoints if c <= number), default=0)
            yield from range(since, number + 1)

    def _backward(self, layer: _SimaiLayer, name: str) -> None:
        self._wait_for(layer.input_gradient, f"{name} input gradient", "backward")
        step = layer.weight_gradient
        self._compute(step.compute_ns, f"{name} weight gradient", "backward")
        reduced = self._collective(step, f"{name} weight gradient", "dp", "backward")
        if reduced is not None and layer.update_ns:
            duration = layer.update_ns * PS_PER_NS
            self.operations.append(
                Operation(f"{name} update", OpKind.MEMORY, "update", (reduced,), duration, phase="optimizer")
            )

    def _wait_for(self, step: _LayerPass, name: str, phase: str) -> None:
        self._compute(step.compute_ns, name, phase)
        done = self._collective(step, name, "comm", phase)
        if done is not None:
            self.last = (done,)

    def _compute(self, compute_ns: int, name: str, phase: str) -> None:
        if compute_ns:
            duration = compute_ns * PS_PER_NS
            self.compute_ps += duration
            self.operations.append(
                Operation(name, OpKind.COMPUTE, deps=self.last, duration_ps=duration, phase=phase)
            )
            self.last = (len(self.operations) - 1,)

    def _collective(self, step: _LayerPass, name: str, stream: str, phase: str) -> int | None:
        if not step.kind:
            return None
        axes = self.groups[step.group]
        ranks = int(np.prod([self.mesh.axes[axis] for axis in axes]))
        what = f"{step.kind} over {step.group} ({ranks} ranks)"
        if ranks == 1:
            self.alone[what] += 1
            return None
        self.collectives[what] += 1
        # SimAI says what a rank has after an all-gather; here it is what a rank brings.
        size = -(-step.size_bytes // ranks) if step.kind == "all_gather" else step.size_bytes
        self.operations.append(
            Operation(
                name,
                OpKind.COLLECTIVE,
                stream,
                self.last,
                collective=step.kind,
                axes=axes,
                size_bytes=size,
                phase=phase,
            )
        )
        return len(self.operations) - 1

    def _report(self) -> ImportReport:
        sizes = {"pp": 1, "vpp": 1, "ga": 1, **self.said.sizes}
        mesh = " x ".join(f"{axis} {size}" for axis, size in self.mesh.axes.items())
        read = [
            f"{len(self.said.layers)} layers, computing for {format_time(self.compute_ps)}, on {mesh}",
            *(f"{count} {what}" for what, count in self.collectives.items()),
        ]
        ignored = [f"{count} {what}: nobody to talk to" for what, count in self.alone.items()]
        nothing = sum(
            step.compute_ns == 0 and not step.kind
            for layer in self.said.layers
            for step in (layer.forward, layer.input_gradient, layer.weight_gradient)
        )
        if nothing:
            ignored.append(f"{nothing} steps that neither compute nor send")
        assumed = []
        if sizes["pp"] > 1:
            bubble = (sizes["pp"] - 1) / (sizes["vpp"] * sizes["ga"])
            ignored.append(
                f"pp {sizes['pp']}, vpp {sizes['vpp']}, ga {sizes['ga']}, pp_comm "
                f"{format_size(sizes.get('pp_comm', 0))}: stages run side by side, as in the file"
            )
            assumed.append(f"no pipeline bubble; (pp - 1) / (vpp ga) would add {100 * bubble:.1f} %")
        return ImportReport(tuple(read), tuple(ignored), tuple(assumed))
