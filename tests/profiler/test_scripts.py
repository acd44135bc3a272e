"""Unmodified scripts: what comes out, what is said when they fail, and that it is the same every time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cosim
from cosim.context import Context
from cosim.errors import InputError, WorkloadError
from cosim.profiler import file
from cosim.profiler.launch import ProfileRequest, profile
from cosim.profiler.scale import profile_scaled
from tests.cli.processes import PATIENCE_S
from tests.profiler.profiled import SCRIPTS, flops, needs_torch, needs_transformers, profiled, sizes


def _script(folder: Path, body: str) -> ProfileRequest:
    path = folder / "train.py"
    path.write_text(body)
    return ProfileRequest(str(path), world_size=4)


def test_importing_cosim_brings_no_torch() -> None:
    program = (
        "import sys, cosim, cosim.cli, cosim.experiment.run; cosim.profile; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@needs_torch
@needs_transformers
@pytest.mark.slow
def test_transformers_llama_in_a_plain_loop() -> None:
    made = profiled("hf_llama.py", world_size=1)
    h, f, v, kv, tokens, layers = 256, 512, 1000, 128, 4 * 128, 2
    matrices = layers * (2 * h * h + 2 * h * kv + 3 * h * f) + h * v
    attention = layers * 4 * 4 * 128 * 128 * h
    rotary = 2 * 128 * 32 // 2  # positions times frequencies is a product, too
    forward = flops(made, "forward")
    assert 0 <= forward - (2 * tokens * matrices + attention) <= 16 * rotary
    assert flops(made, "backward") == 4 * tokens * matrices + attention * 5 // 2
    assert any(k[0] == "aten._scaled_dot_product_flash_attention" for k in made.kernels), "autocast to bf16"
    assert any(k[0] == "aten._foreach_norm" for k in made.kernels), "gradients are clipped"


@needs_torch
@needs_transformers
@pytest.mark.slow
def test_transformers_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = profiled("hf_llama.py", "--trainer", world_size=4)
    h, f, v, kv, layers = 256, 512, 1000, 128, 2
    parameters = layers * (2 * h * h + 2 * h * kv + 3 * h * f + 2 * h) + 2 * h * v + h
    tensors = layers * 9 + 3
    used = tensors * 4  # Trainer has DDP find unused parameters: ranks tell each other which were used
    assert sizes(made, "all_reduce", "dp")[used] == 1
    assert sum(size * n for size, n in sizes(made, "all_reduce", "dp").items()) == parameters * 4 + used


@needs_torch
@pytest.mark.slow
def test_layers_predicted_are_layers_profiled(tmp_path: Path) -> None:
    script = str(SCRIPTS / "llama_blocks.py")
    made, _ = profile_scaled(
        ProfileRequest(script, ("--tp", "2"), world_size=4), ["layers=2,3,4"], ["layers=7"], print
    )
    whole, _ = profile_scaled(
        ProfileRequest(script, ("--tp", "2", "--layers=7"), world_size=4), [], [], print
    )
    places = tmp_path / "predicted.yaml", tmp_path / "profiled.yaml"
    for path, each in zip(places, (made, whole), strict=True):
        file.write(each, path)
    predicted, profiled_ = (
        [line for line in path.read_text().splitlines() if not line.startswith("made:")] for path in places
    )
    assert predicted == profiled_
    assert made.made["arguments"] == whole.made["arguments"]


@needs_torch
def test_a_script_gives_the_same_bytes_each_time_and_a_scenario_runs_them(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    made, _ = profile_scaled(ProfileRequest(str(SCRIPTS / "experts.py"), world_size=8), [], [], print)
    again, _ = profile_scaled(ProfileRequest(str(SCRIPTS / "experts.py"), world_size=8), [], [], print)
    file.write(made, path)
    first = path.read_bytes()
    file.write(again, path)
    assert path.read_bytes() == first
    assert file.read(path) == made
    times = []
    for gpu in ("h100-sxm", "a100-80gb"):
        scenario = cosim.loads(
            "topology: {kind: switch, endpoints: 8, rate: 50GB/s, latency: 1us}\nnetwork: fair_share\n"
            f"jobs: [{{name: moe, workload: {{kind: profile, path: job.yaml, gpu: {gpu}}}}}]\n",
            base=tmp_path,
        )
        took = cosim.run(scenario).summary.jobs[0].iteration_mean_ps
        assert took is not None
        times.append(took)
    assert times[0] < times[1], "another GPU, no other profile"


@pytest.mark.slow
@needs_torch
def test_without_a_compiler_cuda_is_remapped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSIM_PROFILE_SHIM", "off")
    made, _ = profile(ProfileRequest(str(SCRIPTS / "ddp_mlp.py"), ("--layers=2",), world_size=2))
    assert any("remapped to cpu" in text for text in made.assumed)
    assert flops(made, "forward") == 2 * 2 * 32 * 1024 * 1024
    assert (
        sum(size * n for size, n in sizes(made, "all_reduce", "dp").items()) == 2 * (1024 * 1024 + 1024) * 4
    )


@pytest.mark.slow  # tests/api runs its example
@needs_torch
def test_profile_as_a_with_statement(tmp_path: Path) -> None:
    body = f"""
import cosim
with cosim.profile({str(tmp_path / "job.yaml")!r}, world_size=16):
    import torch, torch.distributed as dist
    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64, bias=False).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
    subprocess.run(
        [sys.executable, "-c", body],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        timeout=PATIENCE_S,
    )
    made = file.read(tmp_path / "job.yaml")
    assert made.mesh == {"dp": 16}
    assert sizes(made, "all_reduce", "dp") == {64 * 64 * 4: 1}


@needs_torch
def test_a_failing_script_shows_its_own_lines(tmp_path: Path) -> None:
    request = _script(
        tmp_path, "import torch\n\ndef work(x):\n    return torch.mm(x, x)\n\nwork(torch.ones(2, 3))\n"
    )
    with pytest.raises(WorkloadError) as caught:
        profile(request)
    text = str(caught.value)
    assert "train.py:4 in work: return torch.mm(x, x)" in text
    assert "train.py:6 in <module>" in text
    assert "dispatch" not in text.partition("raised at")[0]


@needs_torch
def test_a_script_without_an_optimizer_step_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"without an optimizer step[\s\S]*one training iteration"):
        profile(_script(tmp_path, "import torch\ntorch.ones(3).sum()\n"))


@needs_torch
def test_what_cannot_be_profiled_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such script"):
        profile(ProfileRequest(str(tmp_path / "no.py")))
    with pytest.raises(WorkloadError, match="did you mean 'h100-sxm'"):
        profile(ProfileRequest(str(SCRIPTS / "ddp_mlp.py"), gpu="h100-smx"))
    with pytest.raises(InputError, match="at least 1"):
        profile(ProfileRequest(str(SCRIPTS / "ddp_mlp.py"), world_size=0))
    with pytest.raises(InputError, match="busiest expert"):
        profile(ProfileRequest(str(SCRIPTS / "ddp_mlp.py"), imbalance=0.5))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not YAML"),
        ("a: 1", "is not a profile"),
        ("cosim_profile: 9", "of format 9"),
        ("cosim_profile: 1\nname: x", "is broken"),
        (  # found by tests.lab.fuzz: a mesh is a mapping
            "cosim_profile: 1\nname: x\ngpu: h100-sxm\nmesh: 8\nkernels: []\nprograms: []",
            "is broken: AttributeError",
        ),
        (
            "cosim_profile: 1\nname: x\ngpu: h100-sxm\nmesh: {dp: 2}\nkernels: []\n"
            "programs: [{at: {}, operations: [[forward, compute, [3], [[0, 1]]]]}]",
            "waits for",
        ),
        (  # found by tests.lab.fuzz: infinity is no integer
            "cosim_profile: 1\nname: x\ngpu: h100-sxm\nmesh: {dp: 2}\n"
            "kernels: [[aten.mm, matmul, bf16, 1e999, 24, 1, 2, 2, 2]]\nprograms: []",
            "is broken: OverflowError",
        ),
    ],
)
def test_a_broken_profile_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=said):
        file.read(path)


def test_a_gpu_without_the_number_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "cosim_profile: 1\nname: x\ngpu: h100-sxm\nmesh: {dp: 2}\n"
        "kernels: [[aten.mm, matmul, bf16, 16, 24, 1, 2, 2, 2]]\n"
        "programs: [{at: {}, operations: [[forward, compute, [], [[0, 1]]]]}]\n"
    )
    from cosim.profiler.workload import ProfileWorkload

    assert ProfileWorkload(path="job.yaml").build(Context(tmp_path)).world_size == 2
    with pytest.raises(WorkloadError, match="bf16, which V100-SXM2 doesn't have"):
        ProfileWorkload.model_validate({"path": "job.yaml", "gpu": "v100-sxm2"}).build(Context(tmp_path))
