"""A real Dask scheduler and workers on the loopback, with TLS; and a sweep whose runs take a while."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cli.processes import all_gone, descendants, wait_for

PLUGIN = """
import os, signal, subprocess, time
from pathlib import Path
from typing import ClassVar
from pydantic import Field
from cosim.plugins import Placement

class Slow(Placement):
    '''Takes its time, or ends its process'''
    declared_inputs: ClassVar = ()
    sleep: float = 0.0
    log: str = ""
    kill: str = ""
    take: int = 0
    command: str = ""

    def choose(self, wanted):
        time.sleep(self.sleep)
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{wanted.context.seed}\\n")
        if self.command:
            subprocess.run(self.command, shell=True)
        if self.kill and (self.kill == "always" or not Path(self.kill).exists()):
            if self.kill != "always":
                Path(self.kill).write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        held = bytearray(self.take)
        return wanted.free[:wanted.num_ranks]
"""


def write_sweep(folder: Path, *, runs: int = 12, sleep: float = 0.0, **settings: object) -> Path:
    """A sweep of runs that take ``sleep`` seconds; each leaves its seed in ``log``."""
    (folder / "slow.py").write_text(PLUGIN)
    placement = {"plugin": "slow.py:Slow", "sleep": sleep, "log": str(folder / "log"), **settings}
    path = folder / "sweep.yaml"
    path.write_text(
        f"""
scenario:
  topology: {{kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}}
  network: fair_share
  jobs:
    - workload: {{kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}
      placement: {json.dumps(placement)}
axes: {{rate: {{topology.rate: [80Gbps, 40Gbps]}}}}
seeds: {runs // 2}
"""
    )
    return path


def computed(folder: Path) -> int:
    """How many runs were begun."""
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


@dataclass
class DaskCluster:
    """Processes of a cluster; ``settings`` are those of the executor that uses it."""

    folder: Path
    certificates: Path
    scheduler: subprocess.Popen[bytes]
    address: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, object]:
        files = {name: str(self.certificates / f"{name}.pem") for name in ("roots", "certificate", "key")}
        return {"kind": "dask", "address": self.address, "tls": files, "patience": "20s"}

    def add_worker(self) -> None:
        command = [self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "60"]
        self.workers.append(_start("worker", self.folder, self.certificates, *command))


@contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[DaskCluster]:
    """A scheduler and workers, which end at the end."""
    certificates = _certificates(folder)
    file = folder / "scheduler.json"
    arguments = ["--host", "tls://127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    scheduler = _start("scheduler", folder, certificates, *arguments)
    cluster = DaskCluster(folder, certificates, scheduler)
    try:
        wait_for("the scheduler", lambda: file.exists() and file.read_text().endswith("}"))
        cluster.address = json.loads(file.read_text())["address"]
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        calls = [pid for worker in cluster.workers for pid in descendants(worker.pid)]
        for process in (*cluster.workers, scheduler):
            process.kill()
            process.wait()
        wait_for("what workers have started", lambda: all_gone(calls))  # they end when they notice


def _start(what: str, folder: Path, certificates: Path, *arguments: str) -> subprocess.Popen[bytes]:
    tls = ["--tls-ca-file", "roots.pem", "--tls-cert", "certificate.pem", "--tls-key", "key.pem"]
    tls = [str(certificates / one) if one.endswith(".pem") else one for one in tls]
    with (folder / f"{what}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", f"distributed.cli.dask_{what}", *arguments, *tls],
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False"},
        )


def _certificates(folder: Path) -> Path:
    """A certificate for the loopback that is its own root, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cosim tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    text = made.public_bytes(serialization.Encoding.PEM)
    for file in ("roots.pem", "certificate.pem"):
        (folder / file).write_bytes(text)
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder
