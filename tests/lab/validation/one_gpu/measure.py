"""Measures one GPU with PyTorch: kernels alone, and training scripts as they are. Needs nothing of cosim.

``python tests/lab/validation/one_gpu/measure.py FOLDER`` writes ``kernels.json`` and, for each job of
``jobs.json``, ``NAME.json``: 5 minutes on an H100. ``--only kernels|jobs``; ``--shapes FILE`` has products
and attention to time (:mod:`tests.lab.validation.one_gpu.shapes` writes it).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]


def start(job: dict[str, object], folder: Path) -> subprocess.Popen[str]:
    """A job's process, which has imported torch and waits for a line."""
    arguments = [str(ROOT / str(job["script"])), *str(job["arguments"]).split()]
    return subprocess.Popen(
        [sys.executable, str(HERE / "timed.py"), str(folder / f"{job['name']}.json"), *arguments],
        stdin=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def main() -> None:
    read = argparse.ArgumentParser()
    read.add_argument("folder", type=Path)
    read.add_argument("--only", choices=("kernels", "jobs"))
    read.add_argument("--names", help="jobs, with commas")
    read.add_argument("--shapes", type=Path)
    options = read.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.only != "jobs":
        subprocess.run(
            [sys.executable, str(HERE / "kernels.py"), str(options.folder / "kernels.json")]
            + ([str(options.shapes)] if options.shapes else []),
            check=False,
        )
    if options.only == "kernels":
        return
    jobs = json.loads((HERE / "jobs.json").read_text())
    if options.names:
        jobs = [job for job in jobs if job["name"] in options.names.split(",")]
    waiting = start(jobs[0], options.folder) if jobs else None
    for place in range(len(jobs)):
        now, waiting = waiting, None
        assert now is not None
        assert now.stdin is not None
        now.stdin.write("go\n")
        now.stdin.flush()
        if place + 1 < len(jobs):  # imports while the one before runs
            waiting = start(jobs[place + 1], options.folder)
        try:
            code = now.wait(timeout=120)
        except subprocess.TimeoutExpired:
            now.kill()
            code = -9
        print(jobs[place]["name"], "ended with" if code else "done", code or "", flush=True)


if __name__ == "__main__":
    main()
