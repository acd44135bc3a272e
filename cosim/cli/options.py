"""Options of the commands that have many, or that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no progress, no warnings.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a setting: jobs[0].iterations=5. Repeatable."),
]

AllowLarge = Annotated[
    bool, typer.Option("--allow-large", help="Try a run that would take too much memory or time.")
]

# cosim run
ScenarioOrSweep = Annotated[
    Path | None,
    typer.Argument(help="A scenario or a sweep (YAML).", metavar="SCENARIO", show_default=False),
]


def _folder(text: str) -> Path:
    """A folder to write to, which has a name: the path of no name is the working folder."""
    if not text:
        raise typer.BadParameter("the folder to write to has no name")
    return Path(text)


RunFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write summary, columns, timeline (Perfetto) and scenario here.",
        parser=_folder,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="With --out: replace files of these names that cosim did not write."),
]
Release = Annotated[
    str | None,
    typer.Option(metavar="network|engine", help="Who starts dependent messages; the results are the same."),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="kernel|reference",
        help="The kernel, or plain SimPy that a debugger can step through; the results are the same.",
    ),
]
Networks = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="A,B,...",
        help="Run on each of these networks, and print errors against the last.",
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option("--vary", metavar="PATH=V1,V2,...", help="With --network: designs to compare. Repeatable."),
]
OpenLoop = Annotated[
    list[str] | None,
    typer.Option(
        "--open-loop",
        metavar="PATH=VALUE",
        help="Also replay the messages of a run with this setting at the times of that run.",
    ),
]
Figure = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw who communicates when and who has the busiest link, or a sweep: png, svg, pdf.",
    ),
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a report here, one HTML file.")
]
Alone = Annotated[
    bool, typer.Option("--alone", help="Also run each job by itself: slowdowns and Jain's fairness index.")
]
WhatMatters = Annotated[
    bool,
    typer.Option(
        "--what-matters",
        help="Also print what moves the iteration most: a run for each rate, time and efficiency, 1 % more.",
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        metavar="NAME",
        help="Also print this measure of `cosim list sweep`, or a sweep's instead of its own. Repeatable.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="How many runs at a time; omitted: one for each core in a sweep, else one.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Continue a run over another simulator that broke off."),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE",
        help="Keep runs in this store and reuse them: a folder, or s3://...",
    ),
]
ExecutorName = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Where runs are run, of `cosim list executor`: dask://host:8786, "
        "'{kind: local, workers: 4, timeout: 10min}'.",
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check", help="Check that no link of the run delivered more than its rate times the time."
    ),
]
Isolate = Annotated[
    str | None,
    typer.Option(
        "--isolate",
        metavar="LIMITS",
        help="Run in a process beside this one that must come to its end, within "
        "'{timeout: 10min, memory: 8GB}'; {} is no limit.",
    ),
]
Again = Annotated[bool, typer.Option("--again", help="Run again what the store has.")]

# cosim runs
StoreHere = Annotated[str, typer.Option("--store", metavar="PLACE", help="The store.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH=VALUE",
        help="Only runs with this setting, or name, version, network, seed, digest. Repeatable.",
    ),
]
RunId = Annotated[str, typer.Argument(metavar="ID", help="A run's id, or its beginning.")]
Older = Annotated[str | None, typer.Option(metavar="TIME", help="Only runs older than this: 30d.")]
OtherVersions = Annotated[
    bool, typer.Option("--other-versions", help="Only runs of other versions of cosim than this one.")
]
OnlyFailed = Annotated[bool, typer.Option("--failed", help="Only runs that could not go on.")]
Sample = Annotated[int, typer.Option("--sample", min=1, help="How many runs, drawn at random.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be removed, and remove nothing.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the table as CSV, with every measure.")]

# cosim translate
ScenarioFile = Annotated[Path, typer.Argument(help="A scenario file (YAML).", metavar="SCENARIO")]
To = Annotated[
    str,
    typer.Option(
        metavar="FORMAT", help="One of `cosim list format`; with options '{kind: NAME, option: value}'."
    ),
]
TranslationFolder = Annotated[
    Path, typer.Option(metavar="DIR", help="Write files and loss report (translation.json) here.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse if anything would be lost or approximated.")]
RunIt = Annotated[
    bool, typer.Option("--run", help="Run the target's simulator on the files; keep the run in DIR/run.")
]

# cosim profile
Script = Annotated[
    str, typer.Argument(metavar="SCRIPT", help="A PyTorch training script, as torchrun takes it.")
]
ScriptArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- ARGUMENTS]", help="The script's own arguments.", show_default=False),
]
WorldSize = Annotated[int, typer.Option(metavar="RANKS", help="How many ranks the script sees.")]
GpuName = Annotated[
    str, typer.Option(metavar="NAME", help="A GPU of `cosim list gpu`; a scenario may name another later.")
]
ProfileOut = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The profile.")]
PerNode = Annotated[int, typer.Option(metavar="GPUS", help="How many ranks a node has.")]
AsModule = Annotated[
    bool, typer.Option("--module", "-m", help="Take SCRIPT for a module's name, as python -m does.")
]
Iteration = Annotated[
    int, typer.Option(metavar="N", help="The iteration to keep, from 0; the first sets things up.")
]
Parallelism = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="PARALLELISM",
        help="In place of the script's data parallelism: ddp, zero1, zero2, zero3 (FSDP) or hsdp.",
    ),
]
ScriptSweep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ARGUMENT=A,B,C",
        help="Profile with each value of an argument (or world_size), and fit how it grows. Repeatable.",
    ),
]
Predict = Annotated[
    list[str] | None,
    typer.Option(metavar="ARGUMENT=N", help="With --sweep: write the profile of this size. Repeatable."),
]
Imbalance = Annotated[
    float, typer.Option(metavar="X", help="Load of the busiest expert over the mean; 1 is balanced.")
]
ExpertRouting = Annotated[
    str, typer.Option(metavar="HOW", help="How tokens go to experts: even, zipf:1.1 or a file of counts.")
]
SequenceLengths = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="How many tokens an answer has: 512, uniform:64:512, geometric:200, ... or a file.",
    ),
]
DraftAcceptance = Annotated[
    str,
    typer.Option(
        metavar="HOW", help="How probable it is that a drafted token holds: 0.7, uniform:0.5:0.9 or a file."
    ),
]
DrawSeed = Annotated[int, typer.Option(metavar="N", help="The seed of drawn lengths and acceptance.")]
KeepAll = Annotated[bool, typer.Option("--keep-all", help="Keep one operation for each kernel.")]
EveryLayer = Annotated[
    bool, typer.Option("--every-layer", help="Record every layer; else those alike are copies of three.")
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        help="Also profile the last rank, and check that it does the same.",
    ),
]
SkipEvaluation = Annotated[
    bool,
    typer.Option("--skip-evaluation", help="Before the first backward, do each evaluated forward only once."),
]
Compiled = Annotated[
    bool, typer.Option("--compile/--no-compile", help="Compile what the script compiles, or run it eagerly.")
]
ShowOutput = Annotated[bool, typer.Option("--show-output", help="Show what the script prints (on stderr).")]
