"""Workers of a Dask scheduler, on this machine or any others."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pydantic import Field, field_validator, model_validator

from cosim.engine.engine import held_signals
from cosim.errors import InputError, LaunchError, SimulationError, install_extra
from cosim.experiment.executors.call import RunCall, RunResult
from cosim.experiment.executors.contract import Executor
from cosim.experiment.executors.local import num_cores
from cosim.protocol.address import check_address
from cosim.protocol.remote import Certificates
from cosim.spec import LongPs
from cosim.units import PS_PER_S

_SILENT = logging.CRITICAL + 1
_LOOK_S = 1.0
"""How often it is looked whether the scheduler and a worker are still there."""


class DaskExecutor(Executor):
    """Workers of a Dask scheduler at an address, or of one that is started here

    A worker needs the same cosim, and the files of the scenario at the same paths. It keeps one process for
    each of its threads. Where it sees the store it writes to it, so that nothing that ended is lost with the
    one who asked; where not, results come back.
    """

    address: str = Field(
        "", description="of the scheduler: host:8786, tls://host:8786; omitted: one is started here"
    )
    workers: int | None = Field(
        None, ge=1, description="processes of a scheduler started here; omitted: as many as cores"
    )
    tls: Certificates | None = Field(
        None, description="certificates for an address that is not local; relative to the working folder"
    )
    unencrypted: bool = Field(
        False,
        description="take an address that is not local without tls: anybody may read along",
    )
    patience: LongPs = Field(
        60 * PS_PER_S,
        gt=0,
        description="how long there may be no scheduler or no worker until it is given up",
    )

    @field_validator("address")
    @classmethod
    def _with_scheme(cls, address: str) -> str:
        return address if "://" in address or not address else f"tcp://{address}"

    @model_validator(mode="after")
    def _encrypted(self) -> DaskExecutor:
        if self.address and self.tls is None and not self.unencrypted:
            try:
                check_address(self.address.partition("://")[2])
            except LaunchError as error:
                raise ValueError(error.message) from error
        return self

    def run(self, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        """See :class:`Executor`."""
        with self._client() as client:
            yield from self._run(client, calls)

    def _run(self, client: Any, calls: Sequence[RunCall]) -> Iterator[tuple[int, RunResult]]:
        ended: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        futures = client.map(_run_call, calls, pure=False)
        for number, future in enumerate(futures):
            future.add_done_callback(lambda one, number=number: ended.put((number, one)))
        left, seen = len(futures), time.monotonic()
        while left:
            try:
                number, future = ended.get(timeout=_LOOK_S)
            except Empty:
                seen = self._look(client, seen)
                continue
            left -= 1
            seen = time.monotonic()
            yield number, self._result(client, future)

    def _result(self, client: Any, future: Any) -> RunResult:
        from distributed import KilledWorker

        if future.status == "finished":
            try:
                result: RunResult = future.result()
            except OSError as error:
                raise SimulationError(self._gone("the scheduler went away")) from error
            return result
        if future.status == "error":
            raised = future.exception()
            if isinstance(raised, KilledWorker):
                return RunResult.lost_to("its workers were killed, one after the other")
            return RunResult(error=raised)
        if client.status != "running":
            raise SimulationError(self._gone("the scheduler went away"))
        return RunResult.lost_to(f"Dask says that it is {future.status}")

    def _look(self, client: Any, seen: float) -> float:
        """When a worker was last there.

        Raises
        ------
        SimulationError
            For too long, none was.
        """
        scheduler = client.status == "running"
        if scheduler and client.scheduler_info(n_workers=-1)["workers"]:
            return time.monotonic()
        if client.status == "closed" or time.monotonic() - seen > self.patience / PS_PER_S:
            raise SimulationError(
                self._gone("there is no worker" if scheduler else "the scheduler went away")
            )
        return seen

    def _gone(self, what: str) -> str:
        return (
            f"{self.address or 'Dask'}: {what}; what had ended is in the store, if the sweep has one,\n"
            "  and the same command goes on from there"
        )

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            import dask
            from distributed import Client
        except ImportError as error:
            raise InputError(
                "Dask is not installed", hint=install_extra("dask") + ", here and where the workers are"
            ) from error
        patience = self.patience / PS_PER_S
        with dask.config.set({"distributed.comm.timeouts.connect": patience}), _silent():
            if not self.address:
                with self._started_here() as client:
                    yield client
                return
            try:
                client = Client(self.address, security=self._security(), timeout=patience)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler at {self.address}: {error}", hint="dask scheduler --port 8786"
                ) from error
            with closing(client):
                yield client

    @contextmanager
    def _started_here(self) -> Iterator[Any]:
        """A client of a scheduler and workers that end with it."""
        from distributed import Client, LocalCluster

        with ExitStack() as stack:
            # One that is interrupted half started can't be closed. And who has a Ctrl-C in a terminal are all
            # processes there: these inherit that they don't, and are ended from here.
            with held_signals(), _blocked(signal.SIGINT):
                cluster = LocalCluster(
                    n_workers=self.workers or num_cores(),
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=_SILENT,
                )
                client = stack.enter_context(Client(stack.enter_context(cluster)))
            yield client

    def _security(self) -> Any:
        from distributed.security import Security

        if self.tls is None:
            return None
        files = self.tls.beside(Path())
        return Security(
            tls_ca_file=str(files.roots),
            tls_client_cert=str(files.certificate),
            tls_client_key=str(files.key),
            require_encryption=True,
        )


@contextmanager
def _silent() -> Iterator[None]:
    """Dask logs with tracebacks what is said here in a line; its client has a level of its own."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(_SILENT)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    """A signal doesn't reach this thread, nor, ever, the threads and processes that are started meanwhile."""
    resource_tracker.ensure_running()  # whoever starts it has SIGINT let through to him afterwards
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_call(call: RunCall) -> RunResult:
    return call()
