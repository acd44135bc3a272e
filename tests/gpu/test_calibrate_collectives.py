"""Collectives are measured where there are several ranks; where not, the table says why."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cosim.cli import app
from cosim.context import Context
from cosim.errors import InputError
from cosim.gpu import calibrate as calibration
from cosim.gpu.collectives import (
    COLLECTIVES,
    CollectivesMeasured,
    CollectiveTime,
    _collect,
    _TimedRank,
    groups_to_measure,
    sizes_to_measure,
    why_none,
)
from cosim.gpu.gpus import GpuTable
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_fit import host_s
from cosim.pattern.template import Collective


def made_up(device: str, ranks: int, **_: object) -> CollectivesMeasured:
    """What two A100s would show, were they as the catalogue has them."""
    assert device == "cpu"
    times = [
        CollectiveTime(kind, ranks, size, host_s(Nccl(), Collective(kind), ranks, size, 300e9))
        for kind in COLLECTIVES
        for size in sizes_to_measure(1 << 26)
    ]
    return CollectivesMeasured(tuple(times), ("barrier: made up",), 0.25, "none")


def test_sizes_and_groups_are_those_of_nccl_tests() -> None:
    assert sizes_to_measure(1 << 30) == [1 << power for power in range(3, 31)]
    assert [groups_to_measure(ranks) for ranks in (1, 2, 3, 6, 8)] == [[1], [2], [2, 3], [2, 3, 6], [2, 4, 8]]


def test_one_gpu_says_why_it_measures_none() -> None:
    assert "need two GPUs and this is 1" in str(why_none("cuda", 1, None))
    assert "none measured on a CPU" in str(why_none("cpu", 0, None))
    assert why_none("cuda:0", 8, None) is None
    assert why_none("cuda", 8, 1) is not None
    assert why_none("cpu", 0, 2) is None
    with pytest.raises(InputError, match="4 ranks need 4 GPUs, and there are 2"):
        why_none("cuda", 2, 4)


def test_a_group_measures_every_collective_and_what_a_product_loses(tmp_path: Path) -> None:
    """One rank, in this process: gloo and the clock are real, no other rank is waited for."""
    pytest.importorskip("torch", reason="needs PyTorch: pip install '.[profile]'")
    timed = _TimedRank("gloo", 0, 1, str(tmp_path / "meet"), 60)
    try:
        times, skipped, lost = timed.run(sizes_to_measure(64), 32)
    finally:
        timed.leave()
    assert skipped == []
    assert [(one.collective, one.size_bytes) for one in times] == [
        (kind, size) for kind in COLLECTIVES for size in (8, 16, 32, 64)
    ]
    assert all(one.seconds > 0 for one in times)
    assert lost >= 0


@pytest.mark.slow
def test_the_table_keeps_what_was_measured_and_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install '.[profile]'")
    real = calibration.calibrate

    def with_made_up(*args: Any, **how: Any) -> calibration.Calibrated:
        found = real(*args, **how, measure_others=made_up)
        gpu = found.gpu.model_copy(update={"name": "A100-SXM4-80GB"})
        return calibration.Calibrated(gpu, found.table, found.collectives, found.why_none)

    monkeypatch.setattr(calibration, "calibrate", with_made_up)
    out = tmp_path / "table.yaml"
    asked = ["calibrate", "--device", "cpu", "--dtype", "fp32", "--largest", "64", "-o", str(out)]
    done = CliRunner().invoke(app, [*asked, "--ranks", "8"])
    assert done.exit_code == 0, done.output
    assert "interference: 0.25 (of a matrix product beside all-reduces)" in done.output
    assert "# not measured: barrier: made up" in done.output
    table = yaml.safe_load(out.read_text())
    assert len(table["collectives"]["measured"]) == len(COLLECTIVES) * 24
    fitted = yaml.safe_load("\n".join(table["collectives"]["fitted"]))["collectives"]
    said = CollectiveConfig.model_validate(fitted).broadcast
    assert isinstance(said, Nccl)
    assert said.latency == pytest.approx(Nccl().latency, rel=0.02)
    assert GpuTable(path="table.yaml").build(Context(tmp_path)).efficiency.interference == 0.25
    done = CliRunner().invoke(app, asked)
    assert "none measured on a CPU" in done.output
    assert "none measured" in yaml.safe_load(out.read_text())["collectives"]


class _Answers(list[Any]):
    """A queue with what processes have put there."""

    def empty(self) -> bool:
        return not self

    def get(self) -> Any:
        return self.pop(0)


class _Ended:
    exitcode = 9

    def is_alive(self) -> bool:
        return False


def test_a_rank_that_fails_is_an_error_and_not_a_hang() -> None:
    with pytest.raises(InputError, match=r"rank 3: RuntimeError: NCCL"):
        _collect([_Ended()], _Answers([("failed", "rank 3: RuntimeError: NCCL")]), "nccl")
    with pytest.raises(InputError, match=r"processes ended with \[9\]"):
        _collect([_Ended()], _Answers(), "nccl")
