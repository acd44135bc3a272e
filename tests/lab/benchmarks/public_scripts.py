"""Public training scripts, unmodified: what a profile costs, and whether it is what a real run does.

``COSIM_SCRIPTS=FOLDER python -m tests.lab.benchmarks.public_scripts [NAME ...]``: the scripts of
``public_scripts.yaml``, each where its ``folder`` says under FOLDER (its version stands there; nothing is
fetched). Each is profiled as one of 4 ranks and, where it says ``real: true``, run by four gloo processes on
this machine's CPU (``real_ranks``): FLOPs, collectives with their bytes and the order of both have to be
equal. Then it is profiled as one of 1,024: as many collectives as of 4, or its line says what they are.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cosim.errors import CosimError
from cosim.profiler.file import Profile
from cosim.profiler.launch import ProfileRequest, ProfilingCost, profile
from tests.lab.benchmarks.real_ranks import run

LIST = Path(__file__).with_suffix(".yaml")
_HEAD = (
    "| script | version | CPU-s | GB | TFLOP | collectives (bytes) | against | at 1,024 ranks |\n"
    + "|---" * 8
    + "|"
)


@dataclass(frozen=True)
class Script:
    """An entry of the list; ``ranks`` is what it is profiled for first, ``large`` for the last column;
    ``ordered`` the iteration that is compared with a real run, whose processes have ``real_environment``,
    too; ``smaller``: arguments that are added for it and for the profile beside it, which is of
    ``real_ranks`` then. ``own``: a few lines as a library's users write them, which lie in this checkout.
    """

    name: str
    version: str
    folder: str
    script: str
    arguments: list[str] = field(default_factory=list)
    module: bool = False
    ranks: int = 4
    large: int = 1024
    iteration: int = 1
    large_arguments: list[str] | None = None
    real: bool = False
    real_ranks: int = 4
    smaller: list[str] | None = None
    ordered: int = 2
    own: bool = False
    flops: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    real_environment: dict[str, str] = field(default_factory=dict)

    def profiled(self, ranks: int, arguments: list[str]) -> tuple[Profile, ProfilingCost]:
        request = ProfileRequest(
            self.script, tuple(arguments), world_size=ranks, module=self.module, iteration=self.iteration
        )
        return profile(request)


def issued(made: Profile) -> list[tuple[str, int]]:
    """Products with FLOPs and collectives with bytes of the first class, in order."""
    found = []
    for step in made.programs[0].steps:
        if step.kind != "compute":
            found.append((step.kind, step.size_bytes))
        found += [("product", made.kernels[k][3]) for k, _ in step.kernels if made.kernels[k][3]]
    return found


def flops(of: Iterable[tuple[str, int]]) -> int:
    return sum(size for kind, size in of if kind == "product")


def collectives(of: Iterable[tuple[str, int]]) -> tuple[Counter[str], Counter[str]]:
    """Counts and bytes by kind."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for kind, size in of:
        if kind != "product":
            counts[kind] += 1
            sizes[kind] += size
    return counts, sizes


def against(script: Script, found: list[tuple[str, int]]) -> str:
    """Whether a real run issues the same, or FLOPs are the closed form's."""
    said = []
    if script.flops:
        expected = int(eval(script.flops))
        said.append("FLOPs: closed form" if expected == flops(found) else f"FLOPs NOT {expected:,}")
    if not script.real:
        return "; ".join(said) or "not compared"
    ranks, arguments, where = script.ranks, script.arguments, "gloo ranks"
    if script.smaller is not None:
        ranks, arguments, where = script.real_ranks, [*arguments, *script.smaller], "gloo ranks, smaller"
        found = issued(script.profiled(ranks, arguments)[0])
    done = run(
        ranks, script.script, arguments, module=script.module, iteration=script.ordered,
        environment=script.real_environment,
    )  # fmt: skip
    return "; ".join([*said, f"{ranks} {where}: {beside(done, found)}"])


def beside(done: list[tuple[str, int]], found: list[tuple[str, int]]) -> str:
    """Whether what was issued for real is what the profile has."""
    if done == found:
        return "equal, in order"
    return ", ".join([
        f"FLOPs {'equal' if flops(done) == flops(found) else f'{flops(done):,}'}",
        f"collectives {_exchanged(done, found)}",
        "order of all differs",
    ])  # fmt: skip


def _exchanged(done: list[tuple[str, int]], found: list[tuple[str, int]]) -> str:
    """How the collectives alone compare."""
    real, profiled = ([each for each in of if each[0] != "product"] for of in (done, found))
    if real == profiled:
        return "equal, in order"
    return "equal" if collectives(real) == collectives(profiled) else str(dict(collectives(real)[1]))


def row(script: Script) -> str:
    """The script's line of the table."""
    made, cost = script.profiled(script.ranks, script.arguments)
    found = issued(made)
    counts, sizes = collectives(found)
    talk = ", ".join(f"{counts[kind]} {kind} ({sizes[kind]:,})" for kind in sorted(counts)) or "none"
    compared = against(script, found)
    large = "-"
    if script.large:
        other, _ = script.profiled(script.large, script.large_arguments or script.arguments)
        same = collectives(issued(other))[0] == counts
        large = (
            "as many"
            if same
            else ", ".join(f"{n} {k}" for k, n in sorted(collectives(issued(other))[0].items()))
        )
        large += "" if flops(issued(other)) == flops(found) else f"; {flops(issued(other)) / 1e12:.4g} TFLOP"
    return (
        f"| {script.name} | {script.version} | {cost.cpu_seconds:.1f} | {cost.peak_bytes / 1e9:.2f} |"
        f" {flops(found) / 1e12:.6g} | {talk} | {compared} | {large} |"
    )


def main() -> None:
    read = argparse.ArgumentParser()
    read.add_argument("names", nargs="*")
    options = read.parse_args()
    root = Path(os.environ.get("COSIM_SCRIPTS", "."))
    entries: list[dict[str, Any]] = yaml.safe_load(LIST.read_text())
    print(_HEAD)
    for script in (Script(**entry) for entry in entries):
        if options.names and script.name not in options.names:
            continue
        folder = (Path(__file__).parents[3] if script.own else root) / script.folder
        if not folder.is_dir():
            print(f"| {script.name} | {script.version} | not here: {script.folder} | | | | | |")
            continue
        os.chdir(folder)
        before = {key: os.environ.get(key) for key in script.environment}
        os.environ.update(script.environment)
        try:
            print(row(script), flush=True)
        except (CosimError, RuntimeError) as error:
            said = " ".join(str(error).split()).replace("|", "/")
            print(
                f"| {script.name} | {script.version} | refused: {said[:200]} ... {said[-200:]} | | | | | |",
                flush=True,
            )
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.__setitem__(key, value)


if __name__ == "__main__":
    main()
