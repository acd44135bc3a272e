"""Measures collectives of this machine's GPUs, and what computation loses beside one: ``cosim calibrate``.

As nccl-tests does: for each collective and size a few operations to warm up, a barrier, then operations one
after another on the GPU's clock; the slowest rank counts. Every rank is a process of its own, and PyTorch's
``torch.distributed`` issues the operations (NCCL; gloo on a CPU, to try it out), so its overhead is in them,
as it is in a training job. Sizes are counted as :class:`~cosim.pattern.template.Collective` counts them.

Interference: a matrix product alone, and again while all-reduces go on beside it (Lee et al., arXiv
2507.03114, compare the two the same way).

Not measured: several hosts (nccl-tests under MPI is for that), sends and receives apart from all-to-all.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cosim.errors import InputError, install_extra

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
_WARM_UP, _WIDTH = 5, 4
_ENOUGH_BYTES = 1 << 30
"""Repetitions: 20, fewer where so many bytes come together, at least 3."""


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """Seconds of a collective over ``ranks``; bytes as a workload counts them."""

    collective: str
    ranks: int
    size_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CollectivesMeasured:
    """What was measured; ``skipped``: what couldn't be, and why; ``interference``: of a product."""

    times: tuple[CollectiveTime, ...]
    skipped: tuple[str, ...]
    interference: float
    backend: str

    def to_table(self) -> dict[str, Any]:
        """For a calibration table."""
        rows = [{**asdict(one), "us": round(one.seconds * 1e6, 3)} for one in self.times]
        for row in rows:
            del row["seconds"]
        return {"backend": self.backend, "skipped": list(self.skipped), "measured": rows}


def sizes_to_measure(largest: int) -> list[int]:
    """Powers of two from 8 B."""
    return [1 << power for power in range(3, largest.bit_length()) if 1 << power <= largest]


def groups_to_measure(ranks: int) -> list[int]:
    """Two ranks, half of them, all."""
    two = min(ranks, 2)
    return sorted({two, max(ranks // 2, two), ranks})


def why_none(device: str, gpus: int, ranks: int | None) -> str | None:
    """Why collectives can't be measured here; None: they can.

    Raises
    ------
    InputError
        More ranks asked for than there are GPUs.
    """
    if device.split(":")[0] != "cuda":
        if ranks is None or ranks < 2:
            return "collectives: none measured on a CPU (`--ranks 2` tries it out with gloo)"
        return None
    if ranks is not None and ranks > gpus:
        raise InputError(f"{ranks} ranks need {ranks} GPUs, and there are {gpus}")
    if min(gpus, ranks or gpus) < 2:
        return f"collectives: none measured, they need two GPUs and this is {min(gpus, ranks or gpus)}"
    return None


def measure_collectives(
    device: str, ranks: int, *, largest: int = 1 << 30, side: int = 4096, timeout_s: float = 1800
) -> CollectivesMeasured:
    """Measure all collectives among ``ranks`` processes, on a GPU each.

    Raises
    ------
    InputError
        No PyTorch, or a process failed: its error.
    """
    try:
        workers = importlib.import_module("torch.multiprocessing")
    except ImportError as error:
        raise InputError("calibrate needs PyTorch", hint=install_extra("profile")) from error
    backend = "nccl" if device.startswith("cuda") else "gloo"
    context = workers.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        answers = context.SimpleQueue()
        job = (backend, ranks, str(Path(folder) / "meet"), sizes_to_measure(largest), side, timeout_s)
        processes = [context.Process(target=_process, args=(rank, job, answers)) for rank in range(ranks)]
        for process in processes:
            process.start()
        try:
            return _collect(processes, answers, backend)
        finally:
            for process in processes:
                process.terminate()
                process.join()


def _collect(processes: Sequence[Any], answers: Any, backend: str) -> CollectivesMeasured:
    """Rank 0's answer; the first failure of any."""
    while True:
        if not answers.empty():
            kind, content = answers.get()
            if kind == "failed":
                raise InputError(f"measuring collectives failed: {content}")
            times, skipped, interference = content
            return CollectivesMeasured(tuple(times), tuple(skipped), interference, backend)
        if not any(process.is_alive() for process in processes) and answers.empty():
            codes = [process.exitcode for process in processes]
            raise InputError(f"measuring collectives failed: processes ended with {codes}")
        time.sleep(0.05)


def _process(rank: int, job: tuple[Any, ...], answers: Any) -> None:
    """One rank: what each process runs."""
    backend, ranks, meet, sizes, side, timeout_s = job
    try:
        timed = _TimedRank(backend, rank, ranks, meet, timeout_s)
        found = timed.run(sizes, side)
    except Exception as error:
        answers.put(("failed", f"rank {rank}: {type(error).__name__}: {error}"))
        return
    if rank == 0:
        answers.put(("done", found))
    timed.leave()


class _TimedRank:
    """A rank of a process group, with a clock."""

    def __init__(self, backend: str, rank: int, ranks: int, meet: str, timeout_s: float) -> None:
        from datetime import timedelta

        self.torch = torch = importlib.import_module("torch")
        self.dist = importlib.import_module("torch.distributed")
        self.rank, self.ranks, self.gpu = rank, ranks, backend == "nccl"
        self.device = f"cuda:{rank}" if self.gpu else "cpu"
        if self.gpu:
            torch.cuda.set_device(rank)
        else:
            torch.set_num_threads(1)
        self.dist.init_process_group(
            backend,
            init_method=f"file://{meet}",
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=timeout_s),
        )

    def leave(self) -> None:
        """Together with the others, so that none is waited for in vain."""
        self.dist.barrier()
        self.dist.destroy_process_group()

    def run(self, sizes: Sequence[int], side: int) -> tuple[list[CollectiveTime], list[str], float]:
        """Every collective of every group, then the interference."""
        times: list[CollectiveTime] = []
        skipped: list[str] = []
        for members in groups_to_measure(self.ranks):
            group = self.dist.new_group(list(range(members)))
            for kind in COLLECTIVES:
                if self.rank < members:
                    reason = self._measure(kind, members, group, sizes, times)
                    skipped += [reason] if reason else []
                self.dist.barrier()
        return times, sorted(set(skipped)), self._interference(side)

    def _measure(
        self, kind: str, members: int, group: Any, sizes: Sequence[int], times: list[CollectiveTime]
    ) -> str | None:
        for size in sizes:
            call, counted = self._call(kind, members, group, size)
            try:
                call()
            except (RuntimeError, NotImplementedError) as error:
                # A backend lacks an operation on all ranks alike, and before anything is sent.
                return f"{kind}: {str(error).splitlines()[0]}"
            seconds = self._slowest(self._time(call, self._repeats(counted), group), group)
            times.append(CollectiveTime(kind, members, counted, seconds))
        return None

    @staticmethod
    def _repeats(size: int) -> int:
        return max(3, min(20, _ENOUGH_BYTES // size))

    def _call(self, kind: str, members: int, group: Any, size: int) -> tuple[Callable[[], object], int]:
        """An operation of about ``size`` bytes, and its size as a workload counts it."""
        torch, dist = self.torch, self.dist
        part = max(size // (_WIDTH * members), 1)
        whole = torch.zeros(part * members, device=self.device)
        share = torch.zeros(part, device=self.device)
        if kind == "all_reduce":
            return lambda: dist.all_reduce(whole, group=group), whole.numel() * _WIDTH
        if kind == "broadcast":
            return lambda: dist.broadcast(whole, src=0, group=group), whole.numel() * _WIDTH
        if kind == "all_gather":
            gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
            return lambda: gather(whole, share, group=group), part * _WIDTH
        if kind == "reduce_scatter":
            scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
            return lambda: scatter(share, whole, group=group), whole.numel() * _WIDTH
        other = torch.zeros_like(whole)
        return lambda: dist.all_to_all_single(other, whole, group=group), whole.numel() * _WIDTH

    def _time(self, call: Callable[[], object], repeats: int, group: Any) -> float:
        """Seconds of one call of ``repeats``, on the device's clock."""
        for _ in range(min(_WARM_UP, repeats)):
            call()

        def all_of_them() -> None:
            for _ in range(repeats):
                call()

        return self._once(all_of_them, group) / repeats

    def _settle(self) -> None:
        if self.gpu:
            self.torch.cuda.synchronize()

    def _slowest(self, seconds: float, group: Any) -> float:
        worst = self.torch.tensor([seconds], dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(worst, op=self.dist.ReduceOp.MAX, group=group)
        return float(worst.item())

    def _interference(self, side: int) -> float:
        """How much longer a matrix product takes while all-reduces go on beside it."""
        kind = self.torch.bfloat16 if self.gpu else self.torch.float32
        one = self.torch.zeros(side, side, device=self.device, dtype=kind)
        data = self.torch.zeros(4 * side * side, device=self.device)
        products, group = 20, self.dist.group.WORLD
        alone = self._slowest(self._time(lambda: one @ one, products, group), group)
        each = self._slowest(self._time(lambda: self.dist.all_reduce(data), 3, group), group)
        # As many on every rank, and more than enough: the last one ends after the products.
        count = min(int(2 * alone * products / each) + 1, 500)
        works: list[Any] = []

        def beside() -> None:
            if not works:
                works.extend(self.dist.all_reduce(data, async_op=True) for _ in range(count))
            for _ in range(products):
                one @ one

        took = self._once(beside, group) / products
        for work in works:
            work.wait()
        return max(self._slowest(took, group) / alone - 1, 0.0)

    def _once(self, call: Callable[[], object], group: Any) -> float:
        """Seconds of one call, on the device's clock: what other streams do isn't waited for."""
        self._settle()
        self.dist.barrier(group=group)
        if not self.gpu:
            started = time.perf_counter()
            call()
            return time.perf_counter() - started
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3
