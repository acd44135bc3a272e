"""``cosim profile``: one rank of each class, each in a process of its own; the answers become one profile.

Rank 0 goes first and shows the groups, from which the mesh is inferred; the last rank goes beside it, to be
compared with the one that stands for it. Ranks that send each other messages
(the stages of a pipeline) do different things, so one rank at each place of such an axis is profiled; along
the other axes ranks do the same and are bound to their peers by the mesh.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cosim.errors import InputError, Location, WorkloadError, install_extra
from cosim.profiler import distributions, verify, workers
from cosim.profiler.file import ClassProgram, Profile
from cosim.profiler.lower import KernelRow, unmerged
from cosim.profiler.rank_classes import class_axes, mesh_of, representatives
from cosim.profiler.workload import named_gpu
from cosim.workload.program import DeviceMesh

UNKNOWNS = ("routing", "lengths", "acceptance")
"""What no profile can know."""
PARALLELISMS = ("ddp", "zero1", "zero2", "zero3", "hsdp")
"""What a script's data parallelism can be exchanged for (:mod:`cosim.profiler.inside.parallelism`)."""
OWN_VARIABLES = {"PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore"}
"""Variables of the environment that a script runs in, whatever this one has."""
_GLANCE_S = 0.5
_KILLED = {
    "SIGKILL": "it is sent for want of memory mostly (`dmesg` says so): free some, or take a smaller model"
}
"""What to do, by the signal that ended a rank's process; of others, ``_SHOW``."""
_SHOW = "`--show-output` shows what the script prints on its way"


@dataclass(frozen=True)
class ProfileRequest:
    """What to profile: ``iteration`` counts from 0; ``script`` is a file, or a module's name with
    ``module``. ``routing``, ``lengths`` and ``acceptance`` are words of
    :mod:`cosim.profiler.distributions`, or files; empty: as the script would go by itself. It runs in
    ``folder`` (empty: this process's), with variables of ``environment`` beside this one's. ``note_reads``:
    which files it reads is told with the cost. ``parallelism``: one of ``PARALLELISMS`` in place of the
    script's own, empty as it is. ``every_layer``: none is a copy of another that is alike.
    """

    script: str
    arguments: tuple[str, ...] = ()
    world_size: int = 1
    gpu: str = "h100-sxm"
    per_node: int = 8
    iteration: int = 1
    module: bool = False
    imbalance: float = 1.0
    routing: str = "even"
    lengths: str = ""
    acceptance: str = ""
    seed: int = 0
    keep_all: bool = False
    verify: bool = False
    show_output: bool = False
    skip_evaluation: bool = False
    compile: bool = True
    ranks: tuple[int, ...] = ()
    folder: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    note_reads: bool = False
    parallelism: str = ""
    every_layer: bool = False

    def by_itself(self) -> ProfileRequest | None:
        """The same without what was said of what no profile can know; None: nothing was."""
        plain = replace(self, routing="even", lengths="", acceptance="", seed=0, verify=False)
        return None if plain == replace(self, seed=0, verify=False) else plain

    def as_order(self) -> dict[str, Any]:
        """Plain values, for the process that runs the script, wherever that does."""
        here = Path.cwd()
        files = {name: distributions.placed(getattr(self, name), here) for name in UNKNOWNS}
        return {**asdict(self), **files}


@dataclass(frozen=True)
class ProfilingCost:
    """What profiling took: seconds (of the clock, of the CPU) in all, peak memory of the largest process; not
    part of the file. ``read``: files and variables that the script read, and hashes of their contents, if
    asked for; ``unclear``: what it did after which nobody knows what it read.
    """

    seconds: float
    peak_bytes: int
    kernels: int
    cpu_seconds: float = 0.0
    read: Mapping[str, str] = field(default_factory=dict)
    unclear: str = ""


def profile(
    request: ProfileRequest, say: Callable[[str], None] = lambda _: None
) -> tuple[Profile, ProfilingCost]:
    """Profile a script; each kernel is a step of its own.

    Raises
    ------
    InputError
        No torch, a script that isn't there, numbers that make no sense.
    WorkloadError
        A script that fails or never steps an optimizer: its own frames, and a hint.
    """
    check(request)
    try:
        with tempfile.TemporaryDirectory(prefix="cosim-profile-") as folder:
            return _profile(request, Path(folder), say)
    except _UnlikeLayersError as why:
        say(f"every layer is recorded now: {why}")
    with tempfile.TemporaryDirectory(prefix="cosim-profile-") as folder:
        return _profile(replace(request, every_layer=True), Path(folder), say)


class _UnlikeLayersError(Exception):
    """What was copied for layers alike (:mod:`cosim.profiler.inside.layers`) can't be kept; why."""


def check(request: ProfileRequest) -> None:
    """Refuse what can't be profiled, before anything is started."""
    check_numbers(request)
    if not request.module and not Path(request.script).is_file():
        raise InputError("no such script", location=Location(request.script))


def check_numbers(request: ProfileRequest) -> None:
    """No torch, or numbers that make no sense.

    Raises
    ------
    InputError
        Which, and what would be right.
    """
    if importlib.util.find_spec("torch") is None:
        raise InputError(
            "profiling needs PyTorch", hint=install_extra("profile") + " (a CPU build is enough)"
        )
    if request.world_size < 1 or request.per_node < 1:
        raise InputError(
            f"world size {request.world_size}, {request.per_node} ranks a node: both need at least 1"
        )
    if request.imbalance < 1:
        raise InputError(
            f"imbalance is {request.imbalance}",
            hint="it is the busiest expert's load over the mean: 1 is balanced, 1.25 has a quarter more",
        )
    if request.parallelism not in ("", *PARALLELISMS):
        raise InputError(f"parallelism is {request.parallelism!r}", hint=f"one of {', '.join(PARALLELISMS)}")
    distributions.check(request.routing, request.lengths, request.acceptance)
    named_gpu(request.gpu, "--gpu")


def _profile(
    request: ProfileRequest, folder: Path, say: Callable[[str], None]
) -> tuple[Profile, ProfilingCost]:
    (folder / "shared").mkdir()
    answers: dict[int, dict[str, Any]] = {}
    told = _ScriptMessages(folder / "shared", say)

    def run(*ranks: int, spare: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Answers of ranks that run at the same time; of a ``spare`` one maybe that it failed."""
        for rank in ranks:
            say(f"rank {rank} of {request.world_size}")
        inductor = any(answer["inductor"] for answer in answers.values())
        pending = [_begin(request, folder, rank, ranks[:place], inductor) for place, rank in enumerate(ranks)]
        try:
            ended = [_awaited(each, told) for each in pending]
        except BaseException:  # Ctrl-C: nothing goes on behind the user's back
            workers.stop()
            raise
        found = [_ended(request, folder, rank, *each) for rank, each in zip(ranks, ended, strict=True)]
        for rank, answer in zip(ranks, found, strict=True):
            if answer.get("unlike") and rank not in spare:
                raise _UnlikeLayersError(answer["unlike"])
            if answer.get("copied"):
                say(f"rank {rank}: {answer['copied']:,} calls of layers are copies of others alike")
        for rank, answer in zip(ranks, found, strict=True):
            if rank not in spare:
                _refuse_failure(request, rank, answer)
        return found

    last = request.world_size - 1
    answers[0], *beside = run(0, *([last] if request.verify and last else []), spare=[last] if last else [])
    beside = [
        answer for answer in beside if not answer.keys() & {"error", "unlike"}
    ]  # others may leave what it lacked
    mesh = mesh_of(request.world_size, answers.values())
    along = class_axes(answers.values(), mesh)
    others = [rank for rank in representatives(mesh, along) if rank not in answers]
    if beside and last in others:  # nobody else stands for it
        others.remove(last)
        answers[last] = beside.pop()
    answers.update(zip(others, run(*others), strict=True))
    for rank in _wrong_guesses(answers):
        say(f"rank {rank} again: its stage's input has another shape than was guessed")
        answers[rank] = run(rank)[0]
    done, cost = assemble(request, answers)
    if request.verify:
        mesh = DeviceMesh(done.mesh)
        last, stands = verify.counterpart(mesh, class_axes(answers.values(), mesh))
        if last != stands:
            guessed = beside and last in _wrong_guesses({**answers, last: beside[0]})
            found = beside[0] if beside and not guessed else run(last)[0]
            differs = verify.compare(request.script, mesh, answers[stands], found)
            done = replace(done, made={**done.made, "verified": last})
            done = replace(done, assumed=(*done.assumed, *([differs] if differs else [])))
    return done, cost


def assemble(request: ProfileRequest, answers: dict[int, dict[str, Any]]) -> tuple[Profile, ProfilingCost]:
    """The profile of the answers of one rank of each class; ``request.ranks`` says which, if not the usual.

    Raises
    ------
    WorkloadError
        A script that failed, or groups that fit no mesh.
    """
    for rank, answer in answers.items():
        _refuse_failure(request, rank, answer)
    mesh = mesh_of(request.world_size, answers.values())
    along = class_axes(answers.values(), mesh)
    ranks = request.ranks or tuple(representatives(mesh, along))
    if request.ranks and along and len(representatives(mesh, along)) > len(ranks):
        raise WorkloadError(
            f"ranks send messages along {', '.join(along)}: each place there does something else",
            hint="`cosim profile SCRIPT` runs one rank of each",
        )
    table: dict[KernelRow, int] = {}
    programs = []
    for rank in sorted(ranks):
        where = mesh.coordinates(rank)
        steps = unmerged(answers[rank], mesh, table)
        programs.append(ClassProgram({axis: where[axis] for axis in along}, steps))
    unknown: Counter[str] = Counter()
    for answer in answers.values():
        unknown.update(answer["unknown"])
    done = Profile(
        Path(request.script).name,
        request.gpu,
        dict(mesh.axes),
        tuple(table),
        tuple(programs),
        _made(request, answers[min(answers)], sorted(ranks)),
        tuple(_common_notes(answers)),
        dict(unknown),
    )
    cost = ProfilingCost(
        sum(a["seconds"] for a in answers.values()),
        max(a["peak_bytes"] for a in answers.values()),
        sum(a["seen"] for a in answers.values()),
        sum(a["cpu_seconds"] for a in answers.values()),
        {path: state for a in answers.values() for path, state in a.get("read", {}).items()},
        next((a["unclear"] for a in answers.values() if a.get("unclear")), ""),
    )
    return done, cost


class _ScriptMessages:
    """Hands on what ranks say while they run; ``told()`` now and then."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self.read: Counter[str] = Counter()

    def __call__(self) -> None:
        for place in sorted(self.folder.glob("said-*")):
            lines = place.read_text().splitlines()
            for line in lines[self.read[place.name] :]:
                self.say(line)
            self.read[place.name] = len(lines)


def _awaited(pending: Future[tuple[int, str]], told: Callable[[], None]) -> tuple[int, str]:
    while True:
        ended = wait([pending], timeout=_GLANCE_S).done
        told()
        if ended:
            return pending.result()


def _made(request: ProfileRequest, first: dict[str, Any], ranks: list[int]) -> dict[str, Any]:
    """How a profile was made, as its file says."""
    made = {
        "torch": first["torch"],
        "script": Path(request.script).name if not request.module else f"-m {request.script}",
        "arguments": list(request.arguments),
        "world_size": request.world_size,
        "iteration": first["iteration"],
        "ranks": ranks,
        "fake_cuda": first["fake_cuda"],
    }
    if first["request"] is not None:
        made |= first["request"]
    if first["compiled"]:
        made["compiled"] = {**first["compiled"], "graph breaks": first["breaks"]}
    if request.parallelism:
        made["parallelism"] = request.parallelism
    if request.imbalance != 1:
        made["imbalance"] = request.imbalance
    asked = {name: distributions.shown(getattr(request, name)) for name in UNKNOWNS}
    made |= {name: said for name, said in asked.items() if said not in ("", "even")}
    if request.lengths or request.acceptance:
        made["seed"] = request.seed
    return made


def device(key: str) -> dict[str, Any]:
    """What a script may ask about a GPU of the catalogue."""
    gpu = named_gpu(key, "--gpu")
    return {"key": key, "name": gpu.name, "memory": gpu.memory, "multiprocessors": gpu.multiprocessors}


def _begin(
    request: ProfileRequest, folder: Path, rank: int, beside: Sequence[int], inductor: bool
) -> Future[tuple[int, str]]:
    """One rank in a process of its own; from ranks ``beside``, which were begun before, it waits for word.

    ``inductor``: an earlier one has compiled, so this one will.
    """
    order = folder / f"{rank}.json"
    order.write_text(
        json.dumps(
            {
                **request.as_order(),
                "rank": rank,
                "beside": [*beside],
                "inductor": inductor,
                "shared": str(folder / "shared"),
                "device": device(request.gpu),
            }
        )
    )
    # Hash order is part of what a script does: sets of strings are walked in the same order every time.
    environment = {
        **os.environ,
        **dict(request.environment),
        **OWN_VARIABLES,
    }
    (folder / "shared" / f"ended-{rank}").unlink(missing_ok=True)
    order.with_suffix(".answer").unlink(missing_ok=True)
    return workers.submit(order, environment, request.folder or str(Path.cwd()), request.show_output)


def _ended(request: ProfileRequest, folder: Path, rank: int, code: int, words: str) -> dict[str, Any]:
    """The answer of a rank whose process has ended."""
    answer_file = folder / f"{rank}.answer"
    if not answer_file.exists():
        by = signal.Signals(-code).name if code < 0 else ""
        what = f"rank {rank}'s process " + (f"was ended by {by}" if by else "ended") + " without an answer"
        hints = [_KILLED.get(by, _SHOW), _last_words(words)]
        raise WorkloadError(
            f"{what} (exit code {code})",
            location=Location(request.script),
            hint="\n  ".join(each for each in hints if each),
        )
    answer: dict[str, Any] = json.loads(answer_file.read_text())
    if answer.get("stopped"):
        answer["hint"] = _last_words(words)
    return answer


def _last_words(words: str) -> str | None:
    said = words.strip().splitlines()[-12:]
    return "\n  ".join(["its last words:", *said]) if said else None


def _refuse_failure(request: ProfileRequest, rank: int, answer: dict[str, Any]) -> None:
    if "error" in answer:
        frames = [f"  {frame}" for frame in answer.get("traceback", [])[-8:]]
        text = "\n".join([f"rank {rank}: {answer['error']}", *frames])
        if answer.get("raised_at") and not (frames and answer["raised_at"] in frames[-1]):
            text += f"\n  raised at {answer['raised_at']}"
        raise WorkloadError(text, location=Location(request.script), hint=answer.get("hint") or None)


def _wrong_guesses(answers: dict[int, dict[str, Any]]) -> list[int]:
    said = {name: text for answer in answers.values() for name, text in answer.get("stages", {}).items()}
    return [
        rank
        for rank, answer in sorted(answers.items())
        if any(said.get(name, text) != text for name, text in answer["guesses"].items())
    ]


def _common_notes(answers: dict[int, dict[str, Any]]) -> list[str]:
    notes: dict[str, int] = {}
    copies = [0, 0]
    for answer in answers.values():
        for text, times in answer["assumed"].items():
            notes[text] = max(notes.get(text, 0), times)
        copies = [a + b for a, b in zip(copies, answer["host_copies"], strict=True)]
    found = [*notes]
    if copies[0]:
        found.append("copies between host and GPU take no time")
    return found
