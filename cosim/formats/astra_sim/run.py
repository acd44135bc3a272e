"""Run the user's ASTRA-sim on what was exported, and bring its times back: ``--to astra-sim --run``.

The binary is the one that ``ASTRASIM_BINARY`` names, or ``AstraSim_Analytical_Congestion_Aware`` (or
``...Unaware``) anywhere below ``ASTRASIM_ROOT``. It runs in ``DIR/astra-sim``, where its standard output and
error stay.
"""

from __future__ import annotations

import json
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.engine.records import Records
from cosim.errors import InputError, SimulationError
from cosim.formats.astra_sim.records import NodeTimes, finish_times, node_times, records_of
from cosim.protocol.installs import ASTRA_SIM
from cosim.translation.source import Source

if TYPE_CHECKING:
    from cosim.formats.astra_sim.config import AstraSimFormat

FOLDER = "astra-sim"
STDOUT, STDERR = "stdout.txt", "stderr.txt"
_MOST_TRACED = 250_000
"""Operations whose starts and ends fit into the log: ASTRA-sim keeps the last 110 MB of it."""
_LAST_WORDS = 5


@dataclass(frozen=True)
class BinaryRun:
    """What a run of the binary left.

    ``finish_ns`` is what NPUs said of themselves, ``log`` the files of its log, if any. ``crash`` is how
    it ended although all of them finished.
    """

    finish_ns: dict[int, int]
    log: tuple[Path, ...]
    wall_s: float
    cpu_s: float
    crash: str = ""


def binary(backend: str) -> Path:
    """The user's ASTRA-sim with that backend, ``aware`` or ``unaware``.

    Raises
    ------
    LaunchError
        It is nowhere; says where it was looked for.
    InputError
        ``ASTRASIM_BINARY`` names the other backend's.
    """
    name = f"AstraSim_Analytical_Congestion_{backend.capitalize()}"
    path = ASTRA_SIM.program(name, "ASTRASIM_BINARY")
    other = {"aware": "unaware", "unaware": "aware"}[backend]
    if path.name.lower().endswith(f"_{other}"):
        raise InputError(
            f"ASTRASIM_BINARY is {path}, which has the congestion-{other} backend; the files are for {name}",
            hint=f"name {name}, or translate with --to '{{kind: astra-sim, backend: {other}}}'",
        )
    return path


def start(program: Path, arguments: list[str], folder: Path, num_npus: int, deadline_s: float) -> BinaryRun:
    """Run ASTRA-sim in ``folder``, which keeps what it says.

    ASTRA-sim frees the plans of process groups twice when it cleans up. A run that was killed for that has
    said all it had to say, and is taken.

    Raises
    ------
    SimulationError
        It fails, or takes longer than the deadline; with its last words.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stdout, stderr = folder / STDOUT, folder / STDERR
    # No --logging-folder below a folder that isn't there: it makes one, not its parents.
    command = [str(program), *arguments, f"--logging-folder={folder / 'log'}"]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with stdout.open("wb") as out, stderr.open("wb") as err:
        try:
            done = subprocess.run(
                command, cwd=folder, stdout=out, stderr=err, timeout=deadline_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise SimulationError(
                f"ASTRA-sim did not end within {deadline_s:g} s; what it said is in {folder}\n"
                "  a longer one: --to '{kind: astra-sim, deadline: 5 h}'"
            ) from None
        except OSError as error:
            raise SimulationError(f"{program} can't be run: {error.strerror or error}") from error
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    finish_ns = finish_times(stdout.read_text(encoding="utf-8", errors="replace"))
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    if done.returncode > 0 or (done.returncode < 0 and len(finish_ns) < num_npus):
        raise SimulationError(f"ASTRA-sim ended with {how}; it said\n{_last_words(stderr, stdout)}")
    return BinaryRun(
        finish_ns,
        tuple(sorted((folder / "log").glob("log*"))),
        time.perf_counter() - began,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        how if done.returncode < 0 else "",
    )


def _last_words(stderr: Path, stdout: Path) -> str:
    for place in (stderr, stdout):
        lines = [line for line in place.read_text(encoding="utf-8", errors="replace").splitlines() if line]
        if lines:
            return "\n".join(f"  {line[:300]}" for line in lines[-_LAST_WORDS:]) + f"\n  all of it: {place}"
    return f"  nothing ({stderr})"


def run_astra_sim(config: AstraSimFormat, source: Source, out: Path, say: Callable[[str], None]) -> Records:
    """Run ASTRA-sim on the files in ``out``; its times as a run of ours.

    Raises
    ------
    LaunchError
        ASTRA-sim isn't there; says where it was looked for.
    SimulationError
        It fails, or a rank never finishes.
    """
    backend = config.backend_of(source)
    program = binary(backend)
    out = out.resolve()
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    operations = sum(
        job.info.iterations * len(job.program(rank).operations)
        for job in source.ready
        for rank in range(job.info.workload.world_size)
    )
    traced = operations <= _MOST_TRACED
    arguments = config.arguments(source, str(out), (out / "comm_groups.json").exists())
    if traced:
        arguments = [_traced(argument, folder) for argument in arguments]
    say(f"running {program.name} (it tells of operations, not of messages, links and traffic); see {folder}")
    numbers = config.number(source)
    ran = start(program, arguments, folder, numbers.count, config.deadline / 1e12)
    if ran.crash:
        say(f"ASTRA-sim ended with {ran.crash} when it cleaned up, after all NPUs had finished")
    times = _times(ran) if traced else None
    if times is None:
        say(
            f"{operations:,} operations are more than ASTRA-sim's log holds: it says only when ranks finished"
        )
    for place in ran.log:
        place.unlink()
    network = f"ASTRA-sim congestion_{backend}"
    return records_of(
        source, numbers, network, ran.finish_ns, times, ran.wall_s, ran.cpu_s, leads=config.leads(source)
    )


def _traced(argument: str, folder: Path) -> str:
    """The same argument; for the system file one that has ASTRA-sim trace its nodes."""
    option, _, value = argument.partition("=")
    if option != "--system-configuration":
        return argument
    system = json.loads(Path(value).read_text(encoding="utf-8")) | {"trace-enabled": 1}
    place = folder / Path(value).name
    place.write_text(json.dumps(system, indent=4) + "\n", encoding="utf-8")
    return f"{option}={place}"


def _times(ran: BinaryRun) -> NodeTimes | None:
    """The times of all operations; None where there is no log."""
    return node_times(_lines(ran.log)) if ran.log else None


def _lines(log: tuple[Path, ...]) -> Iterator[str]:
    for place in log:
        with place.open(encoding="utf-8", errors="replace") as file:
            yield from file
