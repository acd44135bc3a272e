"""The command ``cosim``: run, compare, translate, list.

Exit codes: 0 done; 1 the simulation or a network could not go on; 2 a mistake in what was given; 130
interrupted (what was computed is kept). Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cosim.errors import CosimError, InputError, LaunchError

app = typer.Typer(
    name="cosim",
    help="Training jobs as message-level traffic over a network simulator: how long does an iteration take?",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

INTERRUPTED = 130


def _version(asked: bool) -> None:
    if asked:
        import cosim

        typer.echo(f"cosim {cosim.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    scenario: Annotated[
        Path | None,
        typer.Argument(help="A scenario or a sweep (YAML).", metavar="SCENARIO", show_default=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="Change a setting: jobs[0].iterations=5. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write summary, columns, timeline (Perfetto) and scenario here."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    release: Annotated[
        str | None,
        typer.Option(
            metavar="network|engine", help="Who starts dependent messages; the results are the same."
        ),
    ] = None,
    networks: Annotated[
        str | None,
        typer.Option(
            "--network",
            metavar="A,B,...",
            help="Ask each of these networks; answers side by side, errors against the last.",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary", metavar="PATH=V1,V2,...", help="With --network: designs to compare. Repeatable."
        ),
    ] = None,
    open_loop: Annotated[
        list[str] | None,
        typer.Option(
            "--open-loop",
            metavar="PATH=VALUE",
            help="Also replay, on the same network, the messages of a run with this setting, at their times.",
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw who communicates when and who has the busiest link: png, svg, pdf."
        ),
    ] = None,
    by_itself: Annotated[
        bool,
        typer.Option("--alone", help="Also run each job by itself: slowdowns and Jain's fairness index."),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Of a sweep: runs at a time; omitted: as many as cores."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No summary, no progress, no warnings.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Go on with a run over a simulator elsewhere that broke off."),
    ] = None,
) -> None:
    """Run a scenario, or a sweep of runs, and say what came of it."""
    from cosim.experiment import resume as unfinished
    from cosim.experiment.build import build
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.run import simulate
    from cosim.experiment.save import prepare
    from cosim.experiment.scenario import load

    changes = [*(settings or ()), *([f"release={release}"] if release else ())]
    not_of_sweeps = {
        "--network": networks,
        "--vary": vary,
        "--open-loop": open_loop,
        "--figure": figure,
        "--alone": by_itself,
        "--resume": resume,
    }
    if scenario is not None and _run_sweep(
        scenario, [*(settings or ())], out, as_json, quiet, workers, {**not_of_sweeps, "--release": release}
    ):
        return
    if (scenario is None) == (resume is None):
        raise InputError("give a scenario, or --resume with the folder of a run that broke off")
    if resume is not None and (changes or out is not None):
        raise InputError("--resume goes on as the run began: without --set, --release and --out")
    if resume is not None:
        out = resume
        loaded = unfinished.load_unfinished(resume)
    else:
        assert scenario is not None
        loaded = load(scenario, changes)
    if networks is not None or vary:
        from cosim.experiment.networks import ask_all

        if networks is None or resume is not None or out is not None or open_loop:
            raise InputError("--network and --vary go together, and without --out, --resume and --open-loop")
        asked = ask_all(loaded, networks, vary or (), None if quiet else _say)
        typer.echo(
            json.dumps(asked.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
            if as_json
            else str(asked)
        )
        return
    built = build(loaded)
    if out is not None:
        prepare(out, loaded)
    if resume is not None:
        unfinished.go_on(built.network, resume)
    elif out is not None:
        unfinished.keep_log(built.network, loaded, out)
    if not quiet:
        idle = f"{loaded.locate('record', 'messages')}: has no effect: messages are written with --out only"
        for warning in [*built.warnings, *([idle] if loaded.record.messages and out is None else ())]:
            _say(f"warning: {warning}")
    with ProgressBar(shown=not quiet and sys.stderr.isatty()) as bar:
        keep = bool(open_loop) or figure is not None
        done = simulate(loaded, built, progress=bar.update, keep_messages=keep)
    if out is not None:
        done.save(out)
        if not done.records.interrupted:
            unfinished.finished(out)
        if not quiet:
            _say(f"written to {out}")
    if as_json:
        typer.echo(json.dumps(done.summary.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        from cosim.results.terminal import show

        show(done.summary)
    if figure is not None:
        from cosim.results.sharing_figure import draw_sharing

        draw_sharing(done.records, loaded.name, figure)
        if not quiet:
            _say(f"drawn: {figure}")
    if by_itself and not done.records.interrupted:
        from cosim.experiment.alone import alone, render_alone

        typer.echo(f"\n{render_alone(done.summary, alone(loaded))}", nl=False)
    if open_loop and not done.records.interrupted:
        from cosim.experiment.open_loop import compare_loops

        typer.echo(f"\n{compare_loops(loaded, open_loop, done)}", nl=False)
    if done.records.interrupted:
        _say(f"interrupted: {done.records.interrupted}; what was computed until then is kept")
        raise typer.Exit(INTERRUPTED)


def _run_sweep(
    path: Path,
    changes: list[str],
    out: Path | None,
    as_json: bool,
    quiet: bool,
    workers: int | None,
    others: dict[str, object],
) -> bool:
    """Run a file that is a sweep; whether it is one."""
    from cosim.experiment.located_yaml import read
    from cosim.experiment.sweep import is_sweep, load_sweep

    if not is_sweep(read(path)):
        if workers is not None:
            raise InputError(f"{path} is one run, not a sweep: --workers has nothing to share out")
        return False
    if given := [option for option, value in others.items() if value]:
        raise InputError(f"{path} is a sweep: {given[0]} doesn't go with it")
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.trials import num_cores, run_sweep, save_trials

    loaded = load_sweep(path, changes)
    with ProgressBar(shown=not quiet and sys.stderr.isatty()) as bar:
        trials = run_sweep(
            loaded,
            lambda done, trial: bar.show(
                done, loaded.num_runs, f"run {done} of {loaded.num_runs}: {' / '.join(trial.labels)}"
            ),
            workers=workers or num_cores(),
        )
    if as_json:
        typer.echo(json.dumps(trials.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        typer.echo(trials, nl=False)
    if out is not None:
        written = save_trials(trials, out)
        if not quiet:
            _say(f"written to {out}: {', '.join(place.name for place in written)}")
    if trials.interrupted:
        _say(f"interrupted: {len(trials.trials)} of {loaded.num_runs} runs are kept")
        raise typer.Exit(INTERRUPTED)
    if trials.failed:
        _say(f"error: {len(trials.failed)} of {len(trials.trials)} runs could not go on")
        raise typer.Exit(1)
    return True


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that cosim run --out wrote.")],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the differences as JSON.")] = False,
) -> None:
    """Say what differs between two runs: settings first, then results."""
    from cosim.results.compare import compare as compare_runs
    from cosim.results.compare import render_comparison
    from cosim.results.store import load as load_run

    comparison = compare_runs(load_run(first), load_run(second))
    if as_json:
        typer.echo(json.dumps(comparison.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(render_comparison(comparison), nl=False)


@app.command()
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
    from cosim.experiment.located_yaml import parse_value
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.scenario import load
    from cosim.experiment.translate import translate as translate_scenario

    with ProgressBar(shown=not quiet and sys.stderr.isatty()) as bar:
        done = translate_scenario(
            load(scenario, settings or ()), parse_value(to), out, strict=strict, progress=bar.count
        )
    if as_json:
        typer.echo(json.dumps(done.report.to_json(), indent=1, ensure_ascii=False))
    elif not quiet:
        typer.echo(done, nl=False)
    if run_it:
        ran = done.run(_say)
        ran.save(out / "run")
        if not quiet:
            typer.echo(ran, nl=False)
            _say(f"written to {out / 'run'}")


@app.command()
def prove(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|NAME...", help="MSCCL XML, a folder of Chakra files, or an algorithm such as ring."
        ),
    ],
    collective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What it should do, where it doesn't say: all_reduce ..."),
    ] = None,
    ranks: Annotated[int | None, typer.Option(metavar="N", help="Over how many ranks.")] = None,
    size: Annotated[
        str, typer.Option(metavar="SIZE", help="To count bytes; no proof depends on it.")
    ] = "1MiB",
    root: Annotated[int, typer.Option(metavar="RANK", help="Where a broadcast starts.")] = 0,
) -> None:
    """Prove a collective algorithm, or say what is wrong with it (exit code 1): deadlock, race, result."""
    from cosim.experiment.prove import RefutedError, prove_one
    from cosim.units import parse_size

    try:
        size_bytes = parse_size(size)
    except ValueError as error:
        raise InputError(f"--size: {error}") from None
    wrong = False
    for each in what:
        try:
            typer.echo(prove_one(each, collective, ranks, size_bytes, root))
        except RefutedError as error:
            wrong = True
            typer.echo(f"wrong: {error}")
    if wrong:
        raise typer.Exit(1)


@app.command("list")
def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND", help="topology, network, workload, collective ...", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]]", help="One of that kind: show its fields.", show_default=False),
    ] = None,
) -> None:
    """List everything that a scenario can name; with KIND and NAME, the fields of one."""
    from cosim.experiment.catalog import list_all, list_group, list_one

    typer.echo(
        list_all() if kind is None else list_group(kind) if name is None else list_one(kind, name), nl=False
    )


@app.command()
def serve(
    network: Annotated[
        str,
        typer.Option(metavar="NAME", help="What a scenario's network key takes: fair_share, {model: ...}."),
    ],
    address: Annotated[
        str, typer.Option(help="unix:/path, or host:port; port 0 picks one. Off loopback only with TLS.")
    ] = "127.0.0.1:0",
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: the server's.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: its key.")] = None,
    roots: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS: whose certificates clients must have.")
    ] = None,
) -> None:
    """Serve a built-in network model over gRPC; says LISTENING and the address when it takes calls."""
    from cosim.experiment.serve import serve_network

    serve_network(network, address, certificate, key, roots)


@app.command()
def conformance(
    address: Annotated[
        str | None, typer.Argument(metavar="[ADDRESS]", help="Of a server that runs.", show_default=False)
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Start this instead: it can be killed and restarted then."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="Only this check. Repeatable.")
    ] = None,
    deadline: Annotated[float, typer.Option(metavar="SECONDS", help="How long an answer may take.")] = 20.0,
) -> None:
    """Check a network simulator behind gRPC against every rule of the protocol."""
    import shlex

    from cosim.protocol.conformance.kit import check_names, check_network_simulator

    if (address is None) == (command is None):
        raise InputError("give the address of a server, or --command")
    unknown = sorted({*(only or ())} - {*check_names()})
    if unknown:
        raise InputError(f"no check {unknown[0]!r}", hint=f"there are: {', '.join(check_names())}")
    report = check_network_simulator(
        address if address is not None else shlex.split(command or ""), only=only or (), deadline_s=deadline
    )
    typer.echo(report)
    if not report.passed:
        raise typer.Exit(1)


@app.command()
def calibrate(
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write.")],
    device: Annotated[str, typer.Option(help="cuda, cuda:1 ... or cpu, to try it out.")] = "cuda",
    dtype: Annotated[str, typer.Option(help="Number type: bf16, fp16, fp32 ...")] = "bf16",
    largest: Annotated[int, typer.Option(help="Side of the largest matrix.", min=64)] = 8192,
) -> None:
    """Measure this machine's GPU; a scenario names the table as `gpu: {kind: table, path: FILE}`."""
    from cosim.workload.compute.calibrate import calibrate as measure
    from cosim.workload.compute.calibrate import number_type, write_table

    gpu, table = measure(device, number_type(dtype), largest=largest)
    write_table(out, table)
    known = gpu.efficiency
    typer.echo(
        f"{gpu.name}: {known.matmul_peak:.0%} of {gpu.peak(number_type(dtype)) / 1e12:.4g} TFLOP/s {dtype}, "
        f"{known.memory_peak:.0%} of {gpu.memory_rate / 8e9:.4g} GB/s, {gpu.trust(number_type(dtype))}; {out}"
    )


@app.command()
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
    from cosim.workload.profiler import file
    from cosim.workload.profiler.launch import Request
    from cosim.workload.profiler.scale import profile_scaled
    from cosim.workload.profiler.tell import tell

    request = Request(
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
    made, cost = profile_scaled(request, sweep or (), predict or (), (lambda _: None) if quiet else _say)
    file.write(made, out)
    if not quiet:
        typer.echo(tell(made, cost, out), nl=False)


adapters = typer.Typer(
    help="Adapters that come with cosim: real simulators behind its protocol.", no_args_is_help=True
)
app.add_typer(adapters, name="adapters")


@adapters.command("build")
def build_adapter(
    name: Annotated[str, typer.Argument(help="The adapter: ns3 or astrasim.", metavar="NAME")],
    again: Annotated[bool, typer.Option("--again", help="Build although there is one.")] = False,
) -> None:
    """Build an adapter into the user's cache, or say what is missing. A first run does it too."""
    from cosim.protocol.adapters import build

    typer.echo(build(name, _say, again=again))


@adapters.command("list")
def list_adapters() -> None:
    """List the adapters: whether each is built, and what is missing."""
    from cosim.protocol.adapters import executable, missing_packages, names

    for name in names():
        absent = missing_packages(name)
        try:
            place = executable(name)
            state = f"built: {place}" if place.exists() else "not built"
        except LaunchError as error:
            state = str(error)
        typer.echo(f"{name}  {state}" + (f"; missing packages: {', '.join(absent)}" if absent else ""))


def _say(text: str) -> None:
    typer.echo(text, err=True)


def main() -> None:
    """Entry point: says a :class:`CosimError` without a traceback; anything else is a defect."""
    try:
        app()
    except CosimError as error:
        _say(f"error: {error}")
        sys.exit(2 if isinstance(error, InputError) else 1)
