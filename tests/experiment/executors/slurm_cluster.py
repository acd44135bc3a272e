"""A real Slurm of one machine, this one: its controller and its daemon, as the user who tests."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.processes import wait_for

_CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
KillWait=1
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def needs_slurm() -> None:
    """Skip where there is none."""
    missing = [name for name in ("slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing:
        pytest.skip(
            f"no {', '.join(missing)}: apt-get install slurmctld slurmd slurm-client (there munge comes, too)"
        )


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Environment of commands that are to meet it. It keeps no accounting, as many clusters don't."""
    file = folder / "slurm.conf"
    ports = [_free_port() for _ in range(2)]
    file.write_text(
        _CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            controller=ports[0],
            daemon=ports[1],
            user=getpass.getuser(),
            folder=folder,
            cores=len(os.sched_getaffinity(0)),
        )
    )
    environment = {**os.environ, "SLURM_CONF": str(file)}
    daemons = [_start(name, file) for name in ("slurmctld", "slurmd")]
    try:
        wait_for("Slurm", lambda: _say(environment, "sinfo", "--noheader", "--format=%T") == "idle")
        yield environment
    finally:
        subprocess.run(["scancel", "--user", getpass.getuser()], env=environment, check=False, timeout=30)
        wait_for("jobs to end", lambda: not jobs(environment))
        for daemon in daemons:
            daemon.kill()
            daemon.wait()


def jobs(environment: dict[str, str]) -> list[str]:
    """Ids of jobs that are not over, each of an array by itself."""
    return _say(environment, "squeue", "--noheader", "--array", "--format=%i").split()


def _start(name: str, file: Path) -> subprocess.Popen[bytes]:
    with (file.parent / f"{name}.log").open("ab") as log:
        return subprocess.Popen([name, "-D", "-f", str(file)], stdout=log, stderr=log)


def _say(environment: dict[str, str], *command: str) -> str:
    said = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=60)
    return said.stdout.strip()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
