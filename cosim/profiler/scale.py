"""Small profiles that predict a large one, and the proof that they do.

A parameter of the script (layers, hidden size, ranks, micro-batches) is swept. Profiles of two sizes,
without the largest, say how a program grows: steps that a larger size has more of are found as blocks, so
many for each unit of the parameter, and every number (FLOPs, bytes, shapes, sizes, mesh) follows a law, the
simplest of a + b x, a + b / x, a x + b x^2, a + b x^2, with three sizes also a + b x + c x^2 and a + b x + c
/ x, in exact fractions. The largest size is held out: what is predicted for it must be its profile, step by
step, to the last byte. Otherwise nothing is predicted, and the difference is said. Several parameters are
swept one inside the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from cosim.errors import InputError, WorkloadError
from cosim.profiler.file import ClassProgram, Profile
from cosim.profiler.growth import Growth, StructureError
from cosim.profiler.launch import ProfileRequest, ProfilingCost, profile
from cosim.profiler.laws import law_of
from cosim.profiler.lower import KernelRow, ProfiledOperation, merged

_WORLD = "world_size"


def profile_scaled(
    request: ProfileRequest, sweeps: Sequence[str], predict: Sequence[str], say: Callable[[str], None]
) -> tuple[Profile, ProfilingCost]:
    """A profile, of the script as it is or of the size to predict; steps merged unless all are kept.

    Raises
    ------
    InputError
        A sweep that can't be read, without a prediction, or of too few sizes.
    WorkloadError
        As :func:`cosim.profiler.launch.profile`; a law that doesn't hold on the held-out size.
    """
    swept = _read(sweeps, predict)
    costs: list[ProfilingCost] = []

    def one(values: dict[str, int]) -> Profile:
        made, cost = profile(_with(request, values), say)
        costs.append(cost)
        return made

    made = _scaled(list(swept), swept, {}, one, say)
    if swept:
        wanted = _with(request, {name: target for name, (_, target) in swept.items()})
        made = replace(made, made={**made.made, "arguments": list(wanted.arguments)})
    if not request.keep_all:
        programs = tuple(ClassProgram(p.at, merged(p.steps)) for p in made.programs)
        made = without_unused(replace(made, programs=programs))
    cost = ProfilingCost(
        sum(c.seconds for c in costs),
        max(c.peak_bytes for c in costs),
        sum(c.kernels for c in costs),
        read={path: state for c in costs for path, state in c.read.items()},
        unclear=next((c.unclear for c in costs if c.unclear), ""),
    )
    return made, cost


def _read(sweeps: Sequence[str], predict: Sequence[str]) -> dict[str, tuple[list[int], int]]:
    """Sizes to profile and the size to predict, by parameter."""
    sizes: dict[str, list[int]] = {}
    for text in sweeps:
        name, equals, values = text.partition("=")
        try:
            sizes[name.lstrip("-")] = sorted({int(v) for v in values.split(",")})
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(
                f"--sweep {text}: not a parameter with sizes", hint="write it as in --sweep layers=2,4,6"
            )
    wanted: dict[str, int] = {}
    for text in predict:
        name, equals, value = text.partition("=")
        if not equals or not value.isdigit():
            raise InputError(
                f"--predict {text}: not a parameter with a size", hint="write it as in --predict layers=126"
            )
        wanted[name.lstrip("-")] = int(value)
    for name in sorted({*sizes} ^ {*wanted}):
        other = "--predict" if name in sizes else "--sweep"
        raise InputError(
            f"{name} has no {other}",
            hint="each parameter needs both: --sweep layers=2,4,6 --predict layers=126",
        )
    for name, each in sizes.items():
        if len(each) < 3 or each[0] < 1:
            raise InputError(
                f"--sweep {name} has the sizes {', '.join(map(str, each))}",
                hint="it takes three or four: the largest proves the law that the others give",
            )
    return {name: (each, wanted[name]) for name, each in sizes.items()}


def _with(request: ProfileRequest, values: dict[str, int]) -> ProfileRequest:
    """The script called with a size: in place of ``{name}`` in its arguments, else as ``--name=value``."""
    arguments = list(request.arguments)
    for name, value in values.items():
        if name == _WORLD:
            request = replace(request, world_size=value)
        elif any(f"{{{name}}}" in argument for argument in arguments):
            arguments = [argument.replace(f"{{{name}}}", str(value)) for argument in arguments]
        else:
            arguments.append(f"--{name}={value}")
    return replace(request, arguments=tuple(arguments))


def _scaled(
    names: list[str], swept: dict[str, tuple[list[int], int]], fixed: dict[str, int],
    one: Callable[[dict[str, int]], Profile], say: Callable[[str], None],
) -> Profile:  # fmt: skip
    if not names:
        return one(fixed)
    name, rest = names[0], names[1:]
    sizes, target = swept[name]

    def at(size: int) -> Profile:
        say(f"{name} {size}")
        return _scaled(rest, swept, {**fixed, name: size}, one, say)

    with ThreadPoolExecutor(len(sizes)) as pool:  # they wait; what works are the processes that they start
        found = list(pool.map(at, sizes))
    return extrapolate(name, sizes, found, target)


def extrapolate(name: str, sizes: Sequence[int], profiles: Sequence[Profile], target: int) -> Profile:
    """The profile at ``target`` from those at ``sizes`` (ascending); the last is what proves the law.

    Raises
    ------
    WorkloadError
        No law gives the held-out size exactly; says what differs.
    """
    held, proof = sizes[-1], profiles[-1]
    try:
        laws = _Laws(sizes, profiles)
        _must_equal(laws.at(held), proof)
        made = laws.at(target)
    except StructureError as problem:
        raise WorkloadError(
            f"{name} = {', '.join(map(str, sizes))} give no law that holds at {held}: {problem}",
            hint=_BUCKETS
            if _talks_in_buckets(profiles)
            else "profile the size itself, or sweep sizes at which the script does the same things",
        ) from None
    arguments = dict(proof.made)
    arguments["scaled"] = [
        *proof.made.get("scaled", []),
        f"{name} = {target} predicted from {', '.join(map(str, sizes[:-1]))}; proved on {held}, held out:"
        f" {sum(len(p.steps) for p in proof.programs)} steps equal",
    ]
    if name == _WORLD:
        arguments["world_size"] = target
    return replace(made, made=arguments)


_BUCKETS = (
    "these gradients are exchanged in buckets, which fill up differently at each size: profile the size"
    " itself, or sweep what leaves them as they are (world_size, micro-batches)"
)


def _talks_in_buckets(profiles: Sequence[Profile]) -> bool:
    """Backward's all-reduces as DDP has them: not in proportion to the parameter, or large."""
    each = [
        [
            s.size_bytes
            for p in made.programs
            for s in p.steps
            if s.kind == "all_reduce" and s.phase == "backward"
        ]
        for made in profiles
    ]
    more = {len(later) - len(earlier) for earlier, later in pairwise(each)}
    return bool(each[-1]) and (len(more) > 1 or max(each[-1]) > 2**20)


class _Laws:
    """How profiles grow: blocks of steps and laws of numbers, from all sizes but the last."""

    def __init__(self, sizes: Sequence[int], profiles: Sequence[Profile]) -> None:
        self.sizes, self.profiles = list(sizes), list(profiles)
        first = profiles[0]
        for other in profiles[1:]:
            if [p.at for p in other.programs] != [p.at for p in first.programs]:
                raise StructureError("the classes of ranks differ")
            if list(other.mesh) != list(first.mesh):
                raise StructureError(f"the mesh is {first.mesh} and then {other.mesh}")
        self.mesh = {
            axis: law_of(self.sizes, [p.mesh[axis] for p in profiles], f"mesh axis {axis}")
            for axis in first.mesh
        }
        self.growth = []
        for place in range(len(first.programs)):
            keyed = [_Keyed(p, place) for p in profiles[:-1]]
            grown = Growth(
                self.sizes[:-1], [k.keys for k in keyed], [k.numbers for k in keyed], [k.deps for k in keyed]
            )
            self.growth.append((grown, keyed, _Keyed(profiles[-1], place)))
        self._known: dict[tuple[tuple[int, ...], int | None], Callable[[int], int]] = {}

    def at(self, size: int) -> Profile:
        """The profile at a size."""
        proof = self.profiles[-1]
        table: dict[KernelRow, int] = {}
        programs = []
        for place, (grown, keyed, held) in enumerate(self.growth):
            rows = grown.at(size)
            # Where the held-out profile has the row, so that a law can be chosen by it.
            in_proof = {row.identity: number for number, row in enumerate(grown.at(self.sizes[-1]))}
            steps = []
            for row in rows:
                samples = [k.numbers[n] for k, n in zip(keyed, row.samples, strict=True) if n is not None]
                known = [s for s, n in zip(self.sizes, row.samples, strict=False) if n is not None]
                number = in_proof.get(row.identity)
                if (
                    number is not None
                    and number < len(held.numbers)
                    and len(held.numbers[number]) == len(samples[0])
                ):
                    samples, known = [*samples, held.numbers[number]], [*known, self.sizes[-1]]
                values = [
                    self._value(
                        known, [s[k] for s in samples], size, f"{_field(k)} of {keyed[-1].keys[row.source]}"
                    )
                    for k in range(len(samples[0]))
                ]
                steps.append(_filled(keyed[-1].steps[row.source], keyed[-1].profile, values, row.deps, table))
            programs.append(ClassProgram(proof.programs[place].at, tuple(steps)))
        mesh = {axis: law(size) for axis, law in self.mesh.items()}
        return replace(proof, mesh=mesh, kernels=tuple(table), programs=tuple(programs))

    def _value(self, known: list[int], values: list[int], size: int, what: str) -> int:
        if len(set(values)) == 1:
            return values[0]
        key = (tuple(values), len(known))
        if key not in self._known:
            self._known[key] = law_of(known, values, what)
        return self._known[key](size)


class _StepKey(NamedTuple):
    """What a step is, whatever its numbers."""

    phase: str
    stream: str
    kind: str
    group: Any
    root: int
    peer: tuple[str, bool] | None
    tag: int
    graphed: bool
    kernels: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        """In words: backward's all_reduce over dp."""
        if self.kernels:
            return f"{self.phase}'s {', '.join(name for name, _, _ in self.kernels[:2])}"
        over = self.group if self.peer is None else self.peer[:1]
        return f"{self.phase}'s {self.kind} over {' '.join(map(str, over))}"


def _field(place: int) -> str:
    """What a number of a step is."""
    if place < 2:
        return ("bytes", "distance of the peer")[place]
    return ("number of times", "FLOPs", "bytes", "batch", "rows", "inner size", "columns")[(place - 2) % 7]


class _Keyed:
    """A program taken apart: what a step is (``keys``), what it runs after, and its numbers."""

    def __init__(self, profile: Profile, place: int) -> None:
        self.profile = profile
        self.steps = profile.programs[place].steps
        self.keys: list[object] = []
        self.deps = [step.deps for step in self.steps]
        self.numbers: list[tuple[int, ...]] = []
        for step in self.steps:
            names = tuple(profile.kernels[k][:3] for k, _ in step.kernels)
            peer = None if step.peer is None else (step.peer[0], step.peer[1] > 0)
            self.keys.append(
                _StepKey(
                    step.phase,
                    step.stream,
                    step.kind,
                    step.group,
                    step.root,
                    peer,
                    step.tag,
                    step.graphed,
                    names,
                )
            )
            self.numbers.append(
                (
                    step.size_bytes,
                    0 if step.peer is None else step.peer[1],
                    *(v for k, times in step.kernels for v in (times, *profile.kernels[k][3:])),
                )
            )


def _filled(
    step: ProfiledOperation,
    profile: Profile,
    values: Sequence[int],
    deps: tuple[int, ...],
    table: dict[KernelRow, int],
) -> ProfiledOperation:
    kernels = []
    for place, (number, _) in enumerate(step.kernels):
        times, *numbers = values[2 + 7 * place : 9 + 7 * place]
        flops, moved, batch, rows, inner, columns = numbers
        kernel: KernelRow = (*profile.kernels[number][:3], flops, moved, batch, rows, inner, columns)
        kernels.append((table.setdefault(kernel, len(table)), times))
    peer = None if step.peer is None else (step.peer[0], values[1])
    return replace(step, deps=deps, kernels=tuple(kernels), size_bytes=values[0], peer=peer)


def _must_equal(predicted: Profile, actual: Profile) -> None:
    for mine, theirs in zip(predicted.programs, actual.programs, strict=True):
        if len(mine.steps) != len(theirs.steps):
            raise StructureError(f"{len(mine.steps)} steps are predicted, there are {len(theirs.steps)}")
        for number, (a, b) in enumerate(zip(mine.steps, theirs.steps, strict=True)):
            kernels = [
                [(p.kernels[k], times) for k, times in s.kernels] for p, s in ((predicted, a), (actual, b))
            ]
            if replace(a, kernels=()) != replace(b, kernels=()) or kernels[0] != kernels[1]:
                raise StructureError(
                    f"step {number} is predicted as {_show(predicted, a)}, but is {_show(actual, b)}"
                )


def _show(profile: Profile, step: ProfiledOperation) -> str:
    what = ", ".join(f"{times} x {profile.kernels[k]}" for k, times in step.kernels[:2])
    return f"{step.phase} {step.kind} {step.size_bytes or ''} {what} after {list(step.deps)}"


def without_unused(profile: Profile) -> Profile:
    """Kernels renumbered in the order in which steps use them."""
    table: dict[int, int] = {}
    programs = []
    for program in profile.programs:
        steps = []
        for step in program.steps:
            kernels = tuple(sorted((table.setdefault(k, len(table)), times) for k, times in step.kernels))
            steps.append(replace(step, kernels=kernels))
        programs.append(ClassProgram(program.at, tuple(steps)))
    return replace(profile, kernels=tuple(profile.kernels[k] for k in table), programs=tuple(programs))
