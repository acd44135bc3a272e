"""``cosim profile``, ``calibrate``, ``translate``: jobs in, and out to other simulators."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosim.cli.say import say

if TYPE_CHECKING:
    from cosim.gpu.calibrate import Calibrated


def profile(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="A PyTorch training script, as torchrun takes it.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGUMENTS]", help="The script's own.", show_default=False),
    ] = None,
    world_size: Annotated[int, typer.Option(metavar="RANKS", help="Ranks that the script is to see.")] = 1,
    gpu: Annotated[
        str, typer.Option(metavar="NAME", help="GPU of `cosim list gpu`; a scenario may name another later.")
    ] = "h100-sxm",
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The profile.")] = Path("job.yaml"),
    per_node: Annotated[int, typer.Option(metavar="GPUS", help="Ranks on a node.")] = 8,
    module: Annotated[
        bool, typer.Option("--module", "-m", help="SCRIPT is a module's name, as for python -m.")
    ] = False,
    iteration: Annotated[
        int, typer.Option(metavar="N", help="The iteration to keep, from 0; the first sets things up.")
    ] = 1,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENT=A,B,C",
            help="Profile with --ARGUMENT A and so on (world_size too), fit how it grows. Repeatable.",
        ),
    ] = None,
    predict: Annotated[
        list[str] | None,
        typer.Option(metavar="ARGUMENT=N", help="With --sweep: write the profile of this size. Repeatable."),
    ] = None,
    imbalance: Annotated[
        float, typer.Option(metavar="X", help="Load of the busiest expert over the mean; 1: balanced.")
    ] = 1.0,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="An operation for each kernel.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Profile the last rank too, and say whether it does the same.")
    ] = False,
    show_output: Annotated[
        bool, typer.Option("--show-output", help="Let the script print (to stderr).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Profile a training script without a GPU: one iteration becomes a workload of any number of ranks."""
    from cosim.profiler import file
    from cosim.profiler.launch import ProfileRequest
    from cosim.profiler.scale import profile_scaled
    from cosim.profiler.tell import tell

    request = ProfileRequest(
        script,
        tuple(arguments or ()),
        world_size=world_size,
        gpu=gpu,
        per_node=per_node,
        iteration=iteration,
        module=module,
        imbalance=imbalance,
        keep_all=keep_all,
        verify=verify,
        show_output=show_output,
    )
    made, cost = profile_scaled(request, sweep or (), predict or (), (lambda _: None) if quiet else say)
    file.write(made, out)
    if not quiet:
        typer.echo(tell(made, cost, out), nl=False)


def calibrate(
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write.")],
    device: Annotated[str, typer.Option(help="cuda, cuda:1 ... or cpu, to try it out.")] = "cuda",
    dtype: Annotated[str, typer.Option(help="Number type: bf16, fp16, fp32 ...")] = "bf16",
    largest: Annotated[int, typer.Option(help="Side of the largest matrix.", min=64)] = 8192,
    ranks: Annotated[
        int | None, typer.Option(help="GPUs of the collectives; default: all that are here.", min=1)
    ] = None,
    largest_message: Annotated[
        str, typer.Option(metavar="SIZE", help="Of the collectives, which begin at 8 B.")
    ] = "1GiB",
) -> None:
    """Measure this machine's GPUs and collectives; scenarios name it `gpu: {kind: table, path: FILE}`."""
    from cosim.gpu.calibrate import calibrate as measure
    from cosim.gpu.calibrate import number_type, write_table
    from cosim.units import parse_size

    found = measure(
        device, number_type(dtype), largest=largest, ranks=ranks, largest_message=parse_size(largest_message)
    )
    gpu, table = found.gpu, found.table
    said = found.why_none
    if found.collectives is not None:
        said = _collectives_fitted(found)
        table["collectives"]["fitted"] = said.splitlines()
    write_table(out, table)
    known = gpu.efficiency
    typer.echo(
        f"{gpu.name}: {known.matmul_peak:.0%} of {gpu.peak(number_type(dtype)) / 1e12:.4g} TFLOP/s {dtype}, "
        f"{known.memory_peak:.0%} of {gpu.memory_rate / 8e9:.4g} GB/s, {gpu.trust(number_type(dtype))}; {out}"
    )
    typer.echo(f"interference: {known.interference:.2f} ({table['interference']})\n{said}")


def _collectives_fitted(found: Calibrated) -> str:
    """A scenario's `collectives:` with the parameters that fit what was measured, and how well."""
    from cosim.pattern.nccl_fit import MeasuredCollective, fit_nccl, scenario_lines
    from cosim.pattern.template import Collective

    assert found.collectives is not None
    rows = [
        MeasuredCollective(Collective(one.collective), one.ranks, one.size_bytes, one.seconds)
        for one in found.collectives.times
    ]
    rate = found.link_rate or 2 * max(row.size_bytes / row.seconds for row in rows)
    spec, error = fit_nccl(rows, rate)
    known = "by its data sheet" if found.link_rate else "the most that was measured, doubled"
    notes = [f"# {len(rows)} collectives, mean error {error:.1%}; links of {rate / 1e9:.4g} GB/s ({known})"]
    notes += [f"# not measured: {why}" for why in found.collectives.skipped]
    return "\n".join([*notes, scenario_lines(spec)])


def translate(
    scenario: Annotated[Path, typer.Argument(help="A scenario file (YAML).", metavar="SCENARIO")],
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="One of `cosim list format`; with options '{kind: NAME, option: value}'.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write files and loss report (translation.json) here.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a setting, as in cosim run. Repeatable."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse if anything would be lost or approximated.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the loss report as JSON.")] = False,
    run_it: Annotated[
        bool,
        typer.Option("--run", help="Run the target's simulator on the files; keep the run in DIR/run."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report, no progress.")] = False,
) -> None:
    """Write a scenario's traffic for another simulator, and say what is lost on the way."""
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.scenario import load
    from cosim.experiment.translate import translate as translate_scenario
    from cosim.files.located_yaml import parse_value

    with ProgressBar(shown=not quiet and sys.stderr.isatty()) as bar:
        done = translate_scenario(
            load(scenario, settings or ()), parse_value(to), out, strict=strict, progress=bar.count
        )
    if as_json:
        typer.echo(json.dumps(done.report.to_json(), indent=1, ensure_ascii=False))
    elif not quiet:
        typer.echo(done, nl=False)
    if run_it:
        ran = done.run(say)
        ran.save(out / "run")
        if not quiet:
            typer.echo(ran, nl=False)
            say(f"written to {out / 'run'}")
