"""``kind: script``: profiled when what it hangs on is new, and the job that ``kind: profile`` is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.profiler import file, kept
from cosim.profiler.launch import ProfileRequest
from cosim.profiler.scale import profile_scaled
from cosim.profiler.script import ScriptWorkload
from cosim.profiler.workload import ProfileWorkload
from cosim.workload.program import Workload
from tests.profiler.profiled import needs_torch

pytestmark = needs_torch

TRAIN = """
import sys, torch
from layers import made
rows = int(open("rows.txt").read())
model = made(int(sys.argv[1])).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(rows, 16, device="cuda")).sum().backward()
    optimizer.step()
"""
LAYERS = "import torch\ndef made(columns):\n    return torch.nn.Linear(16, columns)\n"


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Scripts that were profiled, none being kept of before."""
    done: list[str] = []

    def counted(request: ProfileRequest, *rest: Any) -> Any:
        done.append(request.script)
        return profile_scaled(request, *rest)

    monkeypatch.setattr(kept, "cache_folder", lambda part: tmp_path / "cache" / part)
    monkeypatch.setattr(kept, "profile_scaled", counted)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "layers.py").write_text(LAYERS)
    (tmp_path / "rows.txt").write_text("4")
    return done


def built(folder: Path, **settings: Any) -> Workload:
    given = {"script": "train.py", "world_size": 1, "arguments": [32], **settings}
    return ScriptWorkload.model_validate(given).build(Context(folder))


def flops(workload: Workload) -> float:
    return sum(op.flops for op in workload.programs[0].operations)


def test_a_script_is_profiled_again_when_a_module_a_file_or_a_setting_is_another(
    tmp_path: Path, profiles: list[str]
) -> None:
    products = 2 * 2 * 4 * 16 * 32  # forward, and the weight's gradient
    first = built(tmp_path)
    assert flops(first) == products
    again = built(tmp_path)
    assert again.programs[0].operations == first.programs[0].operations
    assert len(profiles) == 1
    (tmp_path / "rows.txt").write_text("8")
    assert flops(built(tmp_path)) == 2 * products
    (tmp_path / "layers.py").write_text(LAYERS.replace("(16, columns)", "(16, 2 * columns)"))
    assert flops(built(tmp_path)) == 4 * products
    assert flops(built(tmp_path, arguments=[64])) == 8 * products
    assert len(profiles) == 4
    built(tmp_path)
    built(tmp_path, gpu="a100-80gb")  # timed anew only
    assert len(profiles) == 4


@pytest.mark.slow
def test_it_is_the_job_of_the_same_script_profiled_by_hand(tmp_path: Path, profiles: list[str]) -> None:
    found = built(tmp_path)
    request = ProfileRequest(str(tmp_path / "train.py"), ("32",), folder=str(tmp_path))
    made, _ = profile_scaled(request, (), (), lambda _: None)
    file.write(made, tmp_path / "job.yaml")
    by_hand = ProfileWorkload(path="job.yaml").build(Context(tmp_path))
    assert found.programs[0].operations == by_hand.programs[0].operations
    assert len(profiles) == 1


@pytest.mark.slow
def test_a_stored_run_of_a_script_stands_until_what_the_script_reads_changes(
    tmp_path: Path, profiles: list[str]
) -> None:
    (tmp_path / "job.yaml").write_text(
        "network: fair_share\n"
        "topology: {kind: switch, endpoints: 2, rate: 1Gbps, latency: 1us}\n"
        "jobs: [{workload: {kind: script, script: train.py, world_size: 1, arguments: [32]}}]\n"
    )

    def run() -> str:
        return type(cosim.run(str(tmp_path / "job.yaml"), store=str(tmp_path / "store"))).__name__

    assert [run(), run()] == ["Run", "StoredRun"]
    (tmp_path / "layers.py").write_text(LAYERS + "# changed\n")
    assert [run(), run()] == ["Run", "StoredRun"]
    assert len(profiles) == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"script": "other.py"}, ["other.py", "no such script"]),
        ({"arguments": []}, ["IndexError", "train.py:5"]),
        ({"profile_for": "h1000"}, ["h1000"]),
        ({"routing": "zipf"}, ["routing"]),
    ],
)
@pytest.mark.usefixtures("profiles")
def test_what_can_not_be_profiled_is_refused(
    tmp_path: Path, settings: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(WorkloadError) as refusal:
        built(tmp_path, **settings)
    for each in said:
        assert each in str(refusal.value)


@pytest.mark.slow
def test_variables_beside_are_the_scripts(tmp_path: Path, profiles: list[str]) -> None:
    (tmp_path / "train.py").write_text(
        TRAIN.replace('open("rows.txt").read()', '__import__("os").environ["ROWS"]')
    )
    assert flops(built(tmp_path, environment={"ROWS": 2})) * 2 == flops(
        built(tmp_path, environment={"ROWS": 4})
    )
    assert len(profiles) == 2


@pytest.mark.slow
def test_a_variable_that_a_script_asks_for_is_part_of_what_it_read(
    tmp_path: Path, profiles: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TRAIN.replace("import sys", "import os, sys").replace(
        'open("rows.txt").read()', 'os.environ.get("ROWS", "4")'
    )
    (tmp_path / "train.py").write_text(text)
    monkeypatch.delenv("ROWS", raising=False)
    first = flops(built(tmp_path))
    assert flops(built(tmp_path)) == first
    assert len(profiles) == 1
    monkeypatch.setenv("ROWS", "8")
    assert flops(built(tmp_path)) == 2 * first
    monkeypatch.delenv("ROWS")
    assert flops(built(tmp_path)) == first
    assert len(profiles) == 3


def test_a_script_that_starts_a_program_is_profiled_each_time_and_not_stored(
    tmp_path: Path, profiles: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    text = TRAIN.replace("import sys", "import subprocess, sys").replace(
        'open("rows.txt").read()', 'subprocess.run(["cat", "rows.txt"], capture_output=True).stdout'
    )
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "s.yaml").write_text("""
topology: {kind: ring, endpoints: 2, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: script, script: train.py, world_size: 1, arguments: [32]}}]
""")
    cosim.run(tmp_path / "s.yaml", store=tmp_path / "store")
    assert "not kept: it starts a program" in caplog.text
    assert "not in the store: train.py starts a program" in caplog.text
    before = len(profiles)
    (tmp_path / "rows.txt").write_text("8")
    assert not isinstance(cosim.run(tmp_path / "s.yaml", store=tmp_path / "store"), cosim.StoredRun)
    assert len(profiles) > before
