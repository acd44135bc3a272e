"""The answer beside each scenario: the page that ``cosim run`` prints, then the exact figures.

``python -m tests.examples.answers [NAME ...]`` compares; with ``--update`` writes them anew. An answer that
changes is a changed result: say so in CHANGELOG.md.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.experiment.scenario import is_sweep
from cosim.experiment.scenario import load as load_scenario
from cosim.experiment.sweep import OF_A_DESIGN
from cosim.files.located_yaml import read
from cosim.protocol.adapters import missing_packages
from cosim.protocol.remote import Remote
from cosim.results.stored_run import load_run
from cosim.results.summary import Summary
from tests.inputs import ROOT, absent

_FILES = sorted((ROOT / "scenarios").glob("*.yaml"))
SCENARIOS = [path for path in _FILES if not is_sweep(read(path))]
DESIGNS = [path for path in _FILES if is_sweep(read(path)) and {*read(path).value} & {*OF_A_DESIGN}]
SWEEPS = [path for path in _FILES if is_sweep(read(path)) and path not in DESIGNS]
SHORT = {
    "incast": ("only.control=[dcqcn, hpcc]", "only.senders=['8:1']", "seeds=[1]"),
    "cc-shootout": ("only.control=[dctcp, swift]", "only.fabric=['2:1']", "seeds=[3]"),
    "simai-sharing": ("only.control=[dctcp]", "only.llama starts=[at once]"),
    "load-balancers": (
        "only.balancer=[ecmp, two and the last, spray]",
        "only.traffic=[permutation]",
        "seeds=[1]",
    ),
    "many-flows": ("only.control=[dctcp]",),
    "incast-rdma": ("only.control=[hpcc, swift]",),
    "compiled-llama": ("only.rate=[3.6Tbps]",),
    "one-h100": ("only.gpu=[h100-sxm-pytorch]",),
    "host-stalls": ("only.host=[waits, ahead]", "only.GPUs=[128]"),
    "fsdp-llama": ("only.rate=[3.6Tbps]", "only.script=[FSDP1 late, FSDP2 compiled]"),
    "async-tensor-parallel": ("only.model=[8B on 64]",),
    "pipeline-schedules": ("only.schedule=[1F1B, Interleaved1F1B]",),
    "generate": ("only.launch=[10us]",),
    "requests": ("only.launch=[10us]",),
    "serving": ("only.rate=[400Gbps]",),
    "decode-gpus": ("only.gpu=[h100-sxm]", "only.requests=['1']"),
    "pipedream-vgg16": ("only.plan=[data parallel, pipedream]", "only.rate=[10Gbps]"),
    "sapipe": ("only.order=[queue]",),
    "comet": ("only.cut=[16 x 64, 8 x 128]", "only.memory=[25GB/s]"),
    "comet-clusters": ("only.cut=[64 x 16, 16 x 64]", "only.cluster=[GB200 x 64]"),
    "libra": ("only.rates=[by bytes]",),
    "local-sgd": ("only.rate=[10Gbps]",),
    "why-not-synthetic": ("only.control=[dctcp, mltcp]", "only.traffic=[incast, data parallel]", "seeds=[1]"),
}
"""The part of each sweep that tests run."""
INPUTS = {"simai-sharing": "simai"}
"""What a sweep reads that is not in the checkout but beside it (``tests/inputs.py``)."""
ADAPTERS = {"incast-rdma": "ns3_rdma"}
"""Adapters that a sweep runs."""

_WALL = re.compile(r"simulated in [0-9.]+ s")
_RELEASE = re.compile(r"release (network|engine)")


def missing_simulator(scenario: Path) -> str:
    """Packages of an adapter that the scenario needs and this machine lacks; in CI none may be missing."""
    network = load_scenario(scenario).network
    parts = (network, *(getattr(network, name, None) for name in ("scale_up", "scale_out")))
    needed = [part.simulator for part in parts if isinstance(part, Remote) and part.simulator]
    if os.environ.get("CI") == "true":
        return ""
    return ", ".join(package for simulator in needed for package in missing_packages(simulator))


def missing_input(sweep: Path) -> str:
    """Why the sweep's inputs can't be read, or its simulator run; nothing if they can."""
    if sweep.stem in ADAPTERS and os.environ.get("CI") != "true":
        packages = missing_packages(ADAPTERS[sweep.stem])
        return f"it needs ns-3: apt-get install -y {' '.join(packages)}" if packages else ""
    return absent(INPUTS[sweep.stem]) if sweep.stem in INPUTS else ""


def without_wall_time(text: str) -> str:
    """A page without what differs between two equal runs."""
    return _WALL.sub("simulated in ... s", text)


def without_release(text: str) -> str:
    """A page without who released the messages."""
    return _RELEASE.sub("release ...", text)


def answer_file(scenario: Path) -> Path:
    """``quickstart.answer.txt``."""
    return scenario.with_suffix(".answer.txt")


def answer(scenario: Path, release: str, *options: str) -> str:
    """Run a scenario as the command line does, with more options of it."""
    with tempfile.TemporaryDirectory() as out:
        arguments = ["run", str(scenario), "--release", release, "--out", out, *options]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        if result.exit_code:
            raise RuntimeError(f"{scenario.name}: exit code {result.exit_code}\n{result.stderr}")
        exact = "\n".join(_exact(load_run(out).summary))
        return without_wall_time(result.stdout) + f"\nexact\n{exact}\n" + _notes(result.stderr)


def sweep_answer(sweep: Path) -> str:
    """Run a sweep as the command line does: its page, then what each run gave."""
    page, trials = run_sweep_file(sweep)
    return f"{page}\nexact\n{trials}"


def run_sweep_file(sweep: Path, settings: Sequence[str] = ()) -> tuple[str, str]:
    """The page and trials.csv."""
    with tempfile.TemporaryDirectory() as out:
        arguments = ["run", str(sweep), "--out", out, *(f"--set={one}" for one in settings)]
        arguments += ["--workers", "1"] * bool(settings)
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        if result.exit_code:
            raise RuntimeError(f"{sweep.name}: exit code {result.exit_code}\n{result.stderr}")
        return result.stdout, (Path(out) / "trials.csv").read_text(encoding="utf-8")


def design_answer(design: Path, settings: Sequence[str] = ()) -> str:
    """Search a design as the command line does: its page, then what each point has."""
    done = cosim.search(design, settings)
    names = [name for name, _ in done.axes]
    rows = [[*names, *done.objectives]]
    rows += [
        [*one.labels, *(str(one.values.get(name, "")) for name in done.objectives)] for one in done.tried
    ]
    rows += [
        [one.label, *one.point.labels, str(one.point.values.get(done.objectives[0], one.point.error))]
        for one in done.what_ifs
    ]
    exact = "".join(f"{','.join(row)}\n" for row in rows)
    return f"{done}\n\nexact\n{exact}"


def _exact(summary: Summary) -> Iterator[str]:
    yield f"  digest {summary.digest}"
    yield f"  end_ps {summary.end_ps}"
    yield f"  messages {summary.num_messages}"
    yield f"  sent_bytes {summary.link_totals.sent_bytes}"
    for job in summary.jobs:
        yield f"  {job.name} iteration_ps {' '.join(str(t) for t in job.iteration_ps)}"
        yield f"  {job.name} compute_ps {job.compute.mean_ps}"
        yield f"  {job.name} communication_ps {job.communication.mean_ps}"
        yield f"  {job.name} exposed_ps {job.exposed.mean_ps}"


def _notes(stderr: str) -> str:
    return "".join(f"{line}\n" for line in stderr.splitlines() if line.startswith("warning:"))


def main() -> None:
    """Compare or update those that are named, or all."""
    named = [argument for argument in sys.argv[1:] if argument != "--update"]
    update, different = "--update" in sys.argv[1:], 0
    for scenario in (path for path in _FILES if not named or path.stem in named):
        if scenario in SCENARIOS and (missing := missing_simulator(scenario)):
            print(f"{scenario.name}: not run, {missing} missing")
            continue
        if missing := missing_input(scenario):
            print(f"{scenario.name}: not run, {missing}")
            continue
        if scenario in DESIGNS:
            found = design_answer(scenario)
        else:
            found = sweep_answer(scenario) if scenario in SWEEPS else answer(scenario, "network")
        file = answer_file(scenario)
        same = file.exists() and file.read_text(encoding="utf-8") == found
        different += not same
        print(f"{scenario.name}: {'same' if same else 'different'}")
        if not same and update:
            file.write_text(found, encoding="utf-8")
    sys.exit(1 if different and not update else 0)


if __name__ == "__main__":
    main()
