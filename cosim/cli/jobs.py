"""``cosim profile``, ``calibrate``, ``translate``: jobs in, and out to other simulators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cosim.cli import options
from cosim.cli.say import print_json, say
from cosim.cli.trust import asking_first
from cosim.files.reads import keep_read, note

if TYPE_CHECKING:
    from cosim.gpu.calibrate import Calibrated


def profile(
    script: options.Script,
    arguments: options.ScriptArguments = None,
    world_size: options.WorldSize = 1,
    gpu: options.GpuName = "h100-sxm",
    out: options.ProfileOut = Path("job.yaml"),
    per_node: options.PerNode = 8,
    module: options.AsModule = False,
    iteration: options.Iteration = 1,
    parallelism: options.Parallelism = "",
    sweep: options.ScriptSweep = None,
    predict: options.Predict = None,
    imbalance: options.Imbalance = 1.0,
    routing: options.ExpertRouting = "even",
    lengths: options.SequenceLengths = "",
    acceptance: options.DraftAcceptance = "",
    seed: options.DrawSeed = 0,
    keep_all: options.KeepAll = False,
    every_layer: options.EveryLayer = False,
    verify: options.Verify = True,
    skip_evaluation: options.SkipEvaluation = False,
    compiled: options.Compiled = True,
    show_output: options.ShowOutput = False,
    quiet: options.Quiet = False,
) -> None:
    """Profile a training script without a GPU: one iteration becomes a workload of any number of ranks."""
    from cosim.files.whole import keep_others
    from cosim.profiler import file
    from cosim.profiler.launch import ProfileRequest
    from cosim.profiler.profile_page import tell
    from cosim.profiler.scale import profile_scaled

    note([script], Path())  # by processes of the script's
    keep_read(out)
    keep_others(out, "cosim_profile:", "profile")
    request = ProfileRequest(
        script,
        tuple(arguments or ()),
        world_size=world_size,
        gpu=gpu,
        per_node=per_node,
        iteration=iteration,
        parallelism=parallelism,
        module=module,
        imbalance=imbalance,
        routing=routing,
        lengths=lengths,
        acceptance=acceptance,
        seed=seed,
        keep_all=keep_all,
        every_layer=every_layer,
        verify=verify,
        skip_evaluation=skip_evaluation,
        compile=compiled,
        show_output=show_output,
    )
    made, cost = profile_scaled(request, sweep or (), predict or (), (lambda _: None) if quiet else say)
    file.write(made, out)
    if not quiet:
        plain = request.by_itself()
        other = (
            None if plain is None else profile_scaled(plain, sweep or (), predict or (), lambda _: None)[0]
        )
        typer.echo(tell(made, cost, out, other), nl=False)


def calibrate(
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write.")],
    device: Annotated[str, typer.Option(help="cuda, cuda:1 ... or cpu, to try it out.")] = "cuda",
    dtype: Annotated[str, typer.Option(help="Number type: bf16, fp16, fp32 ...")] = "bf16",
    largest: Annotated[int, typer.Option(help="Side of the largest matrix.", min=64)] = 8192,
    ranks: Annotated[
        int | None, typer.Option(help="How many GPUs take part in collectives; default: all here.", min=1)
    ] = None,
    largest_message: Annotated[
        str, typer.Option(metavar="SIZE", help="The largest message of the collectives, which begin at 8 B.")
    ] = "1GiB",
) -> None:
    """Measure this machine's GPUs and collectives; scenarios name it `gpu: {kind: table, path: FILE}`."""
    from cosim.files.whole import keep_others
    from cosim.gpu.calibrate import TABLE_HEAD, write_table
    from cosim.gpu.calibrate import calibrate as measure
    from cosim.gpu.measured_kernels import number_type
    from cosim.units import parse_size

    keep_others(out, TABLE_HEAD, "table")
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
    if "training" in table:
        reached = known.memory_training or known.memory_peak
        typer.echo(
            f"in a training: {known.sustained_clock:.0%} of that rate, operators {reached:.0%} of the "
            f"memory's, {gpu.host.operator_time / 1e6:.3g} us of the host for an operator"
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


@asking_first
def translate(
    scenario: options.ScenarioFile,
    to: options.To,
    out: options.TranslationFolder,
    settings: options.Settings = None,
    strict: options.Strict = False,
    as_json: options.AsJson = False,
    run_it: options.RunIt = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a scenario's traffic for another simulator, and print what is lost."""
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.scenario import load
    from cosim.experiment.translate import translate as translate_scenario
    from cosim.files.located_yaml import parse_value

    with ProgressBar(shown=not quiet) as bar:
        done = translate_scenario(
            load(scenario, settings or ()), parse_value(to), out, strict=strict, progress=bar.count
        )
    if as_json:
        print_json(done.report.to_json())
    elif not quiet:
        typer.echo(done, nl=False)
    if run_it:
        ran = done.run(say)
        ran.save(out / "run")
        if not quiet:
            typer.echo(ran, nl=False)
            say(f"written to {out / 'run'}")
