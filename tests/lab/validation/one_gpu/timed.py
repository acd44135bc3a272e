"""Runs a training script unchanged and times its iterations: ``timed.py OUT.json SCRIPT [ARGUMENTS]``.

An iteration ends with the optimizer's step, which PyTorch tells (``register_optimizer_step_post_hook``);
its time is the GPU's, from event to event. After ``WARM_S`` seconds of steps, ``TIMED_S`` count, and one
more is traced by torch.profiler. The GPU's clock and power are read ten times a second beside it.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

WARM_S, TIMED_S, LEAST = 2.0, 6.0, 5


class Clock(threading.Thread):
    """Reads the GPU's clock, power and temperature."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.read: list[tuple[float, int, float, int]] = []

    def run(self) -> None:
        try:
            import pynvml  # type: ignore[import-not-found]

            pynvml.nvmlInit()
            gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
            while True:
                self.read.append(
                    (
                        time.perf_counter(),
                        pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),
                        pynvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
                        pynvml.nvmlDeviceGetTemperature(gpu, 0),
                    )
                )
                time.sleep(0.1)
        except Exception as error:
            print("no NVML:", error, file=sys.stderr)

    def mean(self, begin: float, end: float) -> dict[str, float]:
        """Means between two times."""
        rows = [row for row in self.read if begin <= row[0] <= end]
        if not rows:
            return {}
        means = [sum(row[k] for row in rows) / len(rows) for k in (1, 2, 3)]
        return dict(zip(("clock_mhz", "watts", "celsius"), means, strict=True))


class Steps:
    """Told of each step of an optimizer."""

    def __init__(self, out: str) -> None:
        self.out = out
        self.began = 0.0
        self.first = 0
        self.events: list[Any] = []
        self.host: list[float] = []
        self.profiler: Any = None
        self.found: dict[str, Any] = {}
        self.clock = Clock()
        self.clock.start()

    def __call__(self, *_: Any) -> None:
        if self.profiler is not None:
            torch.cuda.synchronize()
            self.profiler.stop()
            self.found |= kernels_of(self.profiler)
            self.write()
            raise SystemExit(0)
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        now = time.perf_counter()
        self.events.append(event)
        self.host.append(now)
        if len(self.events) == 2:  # compiled by now
            torch.cuda.synchronize()
            self.began = time.perf_counter()
        if len(self.events) > 2 and not self.first and now - self.began > WARM_S:
            self.first = len(self.events) - 1
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self.began = time.perf_counter()
        if self.first and len(self.events) > self.first + LEAST and now - self.began > TIMED_S:
            torch.cuda.synchronize()
            self.timed()
            activities = torch.profiler.ProfilerActivity
            self.profiler = torch.profiler.profile(activities=[activities.CPU, activities.CUDA])
            self.profiler.start()

    def timed(self) -> None:
        """Iterations, the first after a pause left out."""
        kept = self.events[self.first + 1 :]
        times = [one.elapsed_time(two) / 1e3 for one, two in pairwise(kept)]
        ordered = sorted(times)
        self.found = {
            "iterations": len(times),
            "median_s": ordered[len(ordered) // 2],
            "mean_s": sum(times) / len(times),
            "least_s": ordered[0],
            "memory_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved(),
            **self.clock.mean(self.began, time.perf_counter()),
        }

    def write(self) -> None:
        """All that is known."""
        device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "CPU"
        known = {"arguments": sys.argv[1:], "device": device, "torch": torch.__version__}
        Path(self.out).write_text(json.dumps({**known, **self.found}))


def kernels_of(profiler: Any) -> dict[str, Any]:
    """Names, and [name, microseconds] of each kernel, copy and fill in the order in which they begin."""
    names: dict[str, int] = {}
    found = []
    launches = 0
    for event in profiler.profiler.kineto_results.events():
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            if not event.name().startswith("Optimizer."):  # a range of the optimizer's, no kernel
                name = names.setdefault(event.name()[:160], len(names))
                found.append((event.start_ns(), name, round(event.duration_ns() / 1e3, 2)))
        elif event.name().startswith(("cudaLaunch", "cuLaunch")):
            launches += 1
    return {
        "names": list(names),
        "kernels": [[name, us] for _, name, us in sorted(found)],
        "launches": launches,
    }


def main() -> None:
    out, script, *arguments = sys.argv[1:]
    sys.stdin.readline()
    steps = Steps(out)
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(steps)
    sys.argv = [script, *arguments, "--steps", "1000000"]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        if not steps.found:
            steps.found = {"failed": True}
        steps.write()


if __name__ == "__main__":
    main()
