"""``python -m tests.lab.fuzz.losses --tries 10000``: writing commands are killed, lack room, or meet others.

Each try begins with what an earlier command left, whole. A process then writes something newer there, and is
killed at a file operation or at any moment, has a disk that fills, or writes beside two others. What lies
there afterwards has to be the older or the newer, whole; and the same command then has to work, and to leave
nothing of what died. Processes are forked, ready to work, so that a try costs some ten milliseconds.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random

import yaml

import cosim
from cosim.errors import InputError
from cosim.experiment.run import sweep
from cosim.experiment.store.runs import open_store
from cosim.experiment.translate import translate
from cosim.files.folder import MANIFEST
from cosim.files.text import write_text
from cosim.gpu.calibrate import TABLE_HEAD, write_table
from cosim.profiler import file as profiles
from cosim.results.plots.plot import save_plots
from cosim.results.render.figure import save_figure
from cosim.results.render.timeline import write_timeline
from cosim.results.report.sweep_data import load_sweep
from cosim.results.stored_run import StoredRun
from cosim.results.traffic.analysis import TrafficAnalysis, analyse_capture
from cosim.results.traffic.files import write as write_traffic
from cosim.results.traffic.read import read_traffic
from cosim.synthesis.draw import synthesise
from cosim.synthesis.files import write_traces
from cosim.synthesis.learn import learn
from cosim.synthesis.model import TraceModel, write_model
from cosim.synthesis.sources import read_sources
from cosim.workload.program import Workload
from tests.inputs import ROOT
from tests.synthesis.sources import traces

FAULTS = ("kill -9 at a file operation", "kill -9 at any moment", "a full disk", "three writers at once")
_OPERATIONS = frozenset({"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod"})
_REFUSED, _BROKEN = 3, 4
_PATIENCE_S = 120
_SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""


@dataclass(frozen=True)
class Writer:
    """A command that writes. ``write(folder, version)``; ``read(folder)`` says which version is there, and
    fails where that is none, or not whole.
    """

    name: str
    write: Callable[[Path, int], object]
    read: Callable[[Path], int]


@cache
def _runs() -> list[cosim.Run]:
    return [cosim.run(_SCENARIO, {"jobs[0].iterations": 1 + version}) for version in (0, 1)]


def _version(digest: str) -> int:
    return [run.digest for run in _runs()].index(digest)


def _run(folder: Path, version: int) -> None:
    cosim.run(_SCENARIO, {"jobs[0].iterations": 1 + version}, out=folder / "out")


def _read_run(folder: Path) -> int:
    run = cosim.load_run(folder / "out")
    assert len(run.operations.end_ps) > 0
    return _version(run.digest)


def _stored(folder: Path, version: int) -> cosim.Run | StoredRun:
    return cosim.run(
        _SCENARIO, {"jobs[0].iterations": 1 + version}, store=folder / "store", out=folder / "out"
    )


def _read_stored(folder: Path) -> int:
    entries, broken = open_store(folder / "store").entries()
    assert not broken
    assert _version(entries[0].digest) in (0, 1)
    older = cosim.run(_SCENARIO, {"jobs[0].iterations": 1}, store=folder / "store")
    assert isinstance(older, StoredRun), "an older run is no longer in the store"
    assert _version(older.digest) == 0
    return _read_run(folder)


def _sweep(folder: Path, version: int) -> None:
    rates = ["80Gbps", "160Gbps", "320Gbps"][: 2 + version]
    sweep(_SCENARIO, {"rate": {"topology.rate": rates}}, out=folder / "out", store=folder / "store")


def _read_sweep(folder: Path) -> int:
    _, broken = open_store(folder / "store").entries()
    assert not broken
    load_sweep(folder / "out")  # ends what a process that died had begun, as every reader of cosim's does
    rows = (folder / "out" / "trials.csv").read_text().splitlines()
    assert len(rows) in (3, 4)
    assert ("320" in (folder / "out" / "table.txt").read_text()) == (len(rows) == 4)
    return len(rows) - 3


def _texts(make: Callable[[int], str], write: Callable[[Path, int], object], name: str) -> Writer:
    """A writer of one file, whose versions are known texts."""

    def read(folder: Path) -> int:
        return [make(0), make(1)].index((folder / "file").read_text())

    return Writer(name, lambda folder, version: write(folder / "file", version), read)


@cache
def _page(version: int) -> str:
    return _runs()[version].report().html


@cache
def _profile(version: int) -> profiles.Profile:
    whole = profiles.read(ROOT / "scenarios" / "profiles" / "llama-3d.yaml")
    return replace(
        whole, programs=tuple(replace(one, steps=one.steps[: 6 + version]) for one in whole.programs)
    )


@cache
def _written_profile(version: int) -> str:
    with tempfile.TemporaryDirectory() as place:
        profiles.write(_profile(version), Path(place) / "x")
        return (Path(place) / "x").read_text()


@cache
def _figure(version: int) -> tuple[object, bytes]:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(2, 2))
    drawn.add_subplot().plot([0, version])
    with tempfile.TemporaryDirectory() as place:
        return drawn, save_figure(drawn, Path(place) / "x.svg").read_bytes()


def _read_figure(folder: Path) -> int:
    return [_figure(0)[1], _figure(1)[1]].index((folder / "x.svg").read_bytes())


def _translate(folder: Path, version: int) -> None:
    translate(cosim.loads(_SCENARIO, {"jobs[0].iterations": 1 + 3 * version}), "goal", folder / "out")


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(".")}


_DESIGN = """
scenario:
  topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 0ns}
  network: fair_share
  jobs: [{workload: {kind: periodic, compute: 1ms, size: 10MB, ranks: 4}}]
axes: {rate: {topology.rate: [RATES]}}
"""


def _search(folder: Path, version: int) -> None:
    rates = "80Gbps, 40Gbps" + ", 160Gbps" * version
    cosim.search(_DESIGN.replace("RATES", rates), store=folder / "store").report().save(folder / "file")


def _read_search(folder: Path) -> int:
    _, broken = open_store(folder / "store").entries()
    assert not broken
    page = (folder / "file").read_text()
    assert page.endswith("</html>\n")
    return int("160Gbps" in page)


@cache
def _analysed(version: int) -> TrafficAnalysis:
    changes = {"jobs[0].iterations": 1 + version, "record.messages": "npz"}
    with tempfile.TemporaryDirectory() as place:
        cosim.run(_SCENARIO, changes, out=place)
        return analyse_capture(read_traffic(Path(place)))


def _analyse(folder: Path, version: int) -> None:
    write_traffic([_analysed(version)], [], folder / "out")


def _plot(folder: Path, version: int) -> None:
    save_plots(_runs()[: 1 + version], ["cdf"], folder / "x.svg")


def _known(write: Callable[[Path, int], object], place: str = ".") -> Callable[[Path], int]:
    """Reads a folder whose files are those of one version, once what was begun is ended."""

    @cache
    def made(version: int) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), version)
            return _files(Path(folder) / place)

    def read(folder: Path) -> int:
        with suppress(InputError):
            cosim.files.folder.settle(folder / place)
        return [made(0), made(1)].index(_files(folder / place))

    return read


def _read_plot(folder: Path) -> int:
    """Figure, data and script are three files of the user's folder: each is whole, of one or the other."""
    drawn = (folder / "x.svg").read_text()
    assert drawn.endswith("</svg>\n")  # names in it are drawn anew each time
    assert (folder / "x.py").read_text() in [_plotted(0)["x.py"], _plotted(1)["x.py"]]
    return [_plotted(0)["x.csv"], _plotted(1)["x.csv"]].index((folder / "x.csv").read_text())


@cache
def _plotted(version: int) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as place:
        _plot(Path(place), version)
        return {file.name: file.read_text() for file in Path(place).iterdir()}


@cache
def _model(version: int) -> TraceModel:
    with tempfile.TemporaryDirectory() as place:
        source = [traces(Path(place) / "traces", layers=1 + version)]
        return learn(read_sources(source, world_size=None, gpu=None, dependencies="all"))


@cache
def _written_model(version: int) -> str:
    return _model(version).model_dump_json() + "\n"


@cache
def _made(version: int) -> Workload:
    return synthesise(_model(version))


def _synthesise(folder: Path, version: int) -> None:
    write_traces(_made(version), folder / "out")


@cache
def _timeline(version: int) -> str:
    with tempfile.TemporaryDirectory() as place:
        return write_timeline(_runs()[version].records, Path(place) / "x").read_text()


@cache
def _table(version: int) -> str:
    return f"{TABLE_HEAD}\n{yaml.safe_dump({'peak': version}, sort_keys=False)}"


def _scenario(version: int) -> str:
    return _SCENARIO + "#" * version


def writers() -> list[Writer]:
    """Every kind of command that writes."""
    return [
        Writer("run --out", _run, _read_run),
        Writer("run --store --out", _stored, _read_stored),
        Writer("a sweep, --store --out", _sweep, _read_sweep),
        Writer("search --store --report", _search, _read_search),
        Writer("translate", _translate, _known(_translate, "out")),
        Writer("synthesise", _synthesise, _known(_synthesise, "out")),
        Writer("analyse --out", _analyse, _known(_analyse, "out")),
        Writer("plot", _plot, _read_plot),
        _texts(_written_model, lambda path, version: write_model(_model(version), path), "learn"),
        _texts(_timeline, lambda path, version: write_timeline(_runs()[version].records, path), "timeline"),
        _texts(_table, lambda path, version: write_table(path, {"peak": version}), "fit, calibrate"),
        _texts(
            _scenario, lambda path, version: write_text(path, _scenario(version)), "new, topoopt, topology"
        ),
        _texts(_page, lambda path, version: _runs()[version].report().save(path), "report"),
        _texts(_written_profile, lambda path, version: profiles.write(_profile(version), path), "profile"),
        Writer(
            "figure",
            lambda folder, version: save_figure(_figure(version)[0], folder / "x.svg"),
            _read_figure,
        ),
    ]


class Grounds:
    """Where a writer is tried: what an older command left there, and how many file operations one has."""

    def __init__(self, writer: Writer, place: Path) -> None:
        self.writer, self.older = writer, place / "older"
        self.older.mkdir()
        for version in (1, 0):  # what is made once, is made before any try
            writer.write(self.older, version)
        assert writer.read(self.older) == 0, writer.name
        self.operations = self._count(place)

    def _count(self, place: Path) -> int:
        shutil.copytree(self.older, place / "counted")
        heard, told = os.pipe()

        def tell() -> None:
            count = _counting(None)
            self.writer.write(place / "counted", 1)
            os.write(told, str(count[0]).encode())

        _ended(_started(tell))
        os.close(told)
        with os.fdopen(heard) as said:
            return int(said.read())

    def attempt(self, fault: str, draw: Random, folder: Path) -> str:
        """Try once; how it failed, or nothing."""
        shutil.copytree(self.older, folder, symlinks=True)
        codes = [
            _ended(one)
            for one in [self._begin(fault, draw, folder) for _ in range(1 + 2 * (fault == FAULTS[3]))]
        ]
        if _BROKEN in codes:
            return "an error without a line"
        if fault == FAULTS[3] and not {0, -signal.SIGKILL, _REFUSED} & {*codes}:
            return f"ended with {codes}"
        try:
            self.writer.read(folder)
        except Exception:
            return f"lost: {traceback.format_exc(limit=-3)}"
        if code := _ended(_started(lambda: self.writer.write(folder, 1))):
            return f"the next command ended with {code}"
        try:
            assert self.writer.read(folder) == 1
        except Exception:
            return f"the next command's is not there: {traceback.format_exc(limit=-3)}"
        left = [str(one) for one in folder.rglob(".*") if one.name != MANIFEST and _is_ours(one)]
        return f"left: {left}" if left else ""

    def _begin(self, fault: str, draw: Random, folder: Path) -> int:
        number, moment = draw.randint(1, self.operations), draw.uniform(0.0002, 0.06)
        room = int(2 ** draw.uniform(0, 16))

        def work() -> None:
            if fault in (FAULTS[0], FAULTS[3]):
                _counting(number if fault == FAULTS[0] or number % 2 else None)
            elif fault == FAULTS[1]:
                signal.signal(
                    signal.SIGALRM, signal.SIG_DFL
                )  # ends it as SIGKILL does: nothing is cleared away
                signal.setitimer(signal.ITIMER_REAL, moment)
            else:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            self.writer.write(folder, 1)

        return _started(work)


def _is_ours(file: Path) -> bool:
    """Whether the next command should have cleared it away; it can't know of parts in a store, or beside
    files, whether somebody writes them just now: those go after an hour.
    """
    return not file.name.startswith(".cosim-part-") and "store" not in file.parts


def _counting(most: int | None) -> list[int]:
    """Count this process's file operations; at number ``most`` it is killed."""
    count = [0]

    def hook(event: str, _: object) -> None:
        if event in _OPERATIONS:
            count[0] += 1
            if count[0] == most:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def _started(work: Callable[[], object]) -> int:
    """A forked process that works, and ends with 0, 3 where it was refused in a line, or 4."""
    if pid := os.fork():
        return pid
    code = _BROKEN
    try:
        with redirect_stderr(StringIO()) as said:
            signal.alarm(_PATIENCE_S)
            try:
                work()
                code = 0
            except InputError:
                code = _REFUSED
            except BaseException:
                said.write(traceback.format_exc())
        if code == _BROKEN:
            os.write(2, said.getvalue().encode())
    finally:
        os._exit(code)


def _ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@dataclass
class Table:
    """Tries and losses, by writer and fault; ``told`` says how each was lost."""

    tried: Counter[tuple[str, str]]
    lost: Counter[tuple[str, str]]
    told: list[str]

    def __str__(self) -> str:
        lines = [f"{'':24}{'  '.join(FAULTS)}"]
        for name in sorted({name for name, _ in self.tried}):
            cells = [
                f"{self.lost[name, one]:,} of {self.tried[name, one]:,}".rjust(len(one)) for one in FAULTS
            ]
            lines.append(f"{name:24}{'  '.join(cells)}")
        return "\n".join([*lines, f"lost: {self.lost.total():,} of {self.tried.total():,}"])


def tried(tries: int, seed: int, only: Sequence[str] = ()) -> Table:
    """So many tries, each writer and fault in turn."""
    found = Table(Counter(), Counter(), [])
    logging.disable(logging.CRITICAL)
    room = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=room) as place:
        grounds = []
        for number, writer in enumerate(one for one in writers() if not only or one.name in only):
            (Path(place) / str(number)).mkdir()
            grounds.append(Grounds(writer, Path(place) / str(number)))
        with suppress(KeyboardInterrupt):  # what was tried until then counts
            for number in range(tries):
                ground, fault = grounds[number % len(grounds)], FAULTS[number // len(grounds) % len(FAULTS)]
                folder = Path(place) / f"try{number}"
                cell = ground.writer.name, fault
                found.tried[cell] += 1
                if how := ground.attempt(fault, Random(f"{seed} {number}"), folder):
                    found.lost[cell] += 1
                    found.told.append(f"{cell[0]}, {fault}, seed {seed} try {number}: {how}")
                shutil.rmtree(folder)
    logging.disable(logging.NOTSET)
    return found


def main() -> int:
    """The command line; 1 where something was lost."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.fuzz.losses", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="a command's name; repeatable")
    given = parser.parse_args()
    found = tried(given.tries, given.seed, given.only)
    print(*found.told, sep="\n")
    print(found)
    return int(bool(found.told))


if __name__ == "__main__":
    sys.exit(main())
