"""A home that can't be written to, and no cache: containers, modules of a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.inputs import ROOT


def test_a_run_with_a_compiled_plug_in_needs_no_home(tmp_path: Path) -> None:
    """Below /proc nobody can write, root neither."""
    for name in ("my_compiled.py", "my_control.py", "aimd.c", "my-control.yaml"):
        shutil.copy(ROOT / "docs/howto/files" / name, tmp_path)
    scenario = tmp_path / "my-control.yaml"
    scenario.write_text(scenario.read_text().replace("my_control.py:Aimd", "my_compiled.py:AimdInC"))
    command = [sys.executable, "-m", "cosim", "run", str(scenario), "--out", str(tmp_path / "out")]
    there = {**os.environ, "HOME": "/proc", "XDG_CACHE_HOME": "/proc/none"}
    done = subprocess.run(command, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("aimd.c is compiled in each run, for nothing can be kept") == 1
    assert (tmp_path / "out/summary.json").is_file()
