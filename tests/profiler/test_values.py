"""Numbers that scripts read: tensors on the host, what collectives carry, what is said of the rest."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from cosim.errors import WorkloadError
from cosim.profiler.file import Profile
from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import SCRIPTS, flops, needs_torch, profiled

pytestmark = needs_torch

TRAIN = """
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(2, 4, device="cuda")).sum().backward()
    optimizer.step()
"""


def carried_out(folder: Path, body: str, **given: object) -> Profile:
    """The profile of some lines followed by a little training."""
    path = folder / "train.py"
    path.write_text("import copy, os, sys, torch, torch.distributed as dist\n" + body + TRAIN)
    request = ProfileRequest(str(path), world_size=4, **given)  # type: ignore[arg-type]
    return profile(request)[0]


def refused(folder: Path, body: str, **given: object) -> str:
    with pytest.raises(WorkloadError) as caught:
        carried_out(folder, body, **given)
    return str(caught.value)


def test_random_numbers_on_the_host_are_those_of_the_seed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install '.[profile]'")
    draw = torch.Generator().manual_seed(5)
    expected = torch.randint(5, 9, (3,), generator=draw).tolist()
    order = torch.randperm(4, generator=draw).tolist()
    carried_out(
        tmp_path,
        "torch.manual_seed(5)\n"
        f"assert torch.randint(5, 9, (3,)).tolist() == {expected}\n"
        f"assert torch.randperm(4).tolist() == {order}\n"
        "x = torch.arange(6).view(2, 3)\nx[0] += 2\nassert x.t().tolist() == [[2, 3], [3, 4], [4, 5]]\n"
        "assert torch.nonzero(x > 3).tolist() == [[0, 2], [1, 1], [1, 2]]\n"
        "assert torch.tensor([3.0], device='cuda').cpu().item() == 3.0\n",
    )


def test_memory_mapped_batches_at_random_places_have_their_elements() -> None:
    made = profiled("plain_gpt.py")
    h, words, rows, length = 64, 96, 4, 32
    products = 2 * rows * length * (2 * 12 * h * h + h * words)
    assert flops(made, "forward") == products + 2 * 4 * rows * length * length * h
    assert flops(made, "backward") == 2 * products + 2 * 10 * rows * length * length * h


def test_what_is_known_comes_out_of_collectives(tmp_path: Path) -> None:
    body = """
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
flags = torch.tensor([12, 3] if rank == 0 else [0, 0], device="cuda")
dist.broadcast(flags, 0)
assert flags.tolist() == [12, 3], flags.tolist()
each = torch.arange(3051, device="cuda") if rank == 0 else torch.full((3051,), -1, device="cuda")
dist.broadcast(each, 0)  # a number for each parameter, as DeepSpeed compares
assert each.tolist() == list(range(3051))
for op, expected in (("SUM", 20), ("MAX", 5), ("AVG", 5)):
    x = torch.tensor(5.0, device="cuda")
    dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
    assert x.item() == expected, (op, x.item())
parts = [torch.zeros(2, device="cuda") for _ in range(4)]
dist.all_gather(parts, torch.full((2,), 3.0, device="cuda"))
assert [p.tolist() for p in parts] == [[3, 3]] * 4
whole = torch.empty(4, device="cuda")
dist.all_gather_into_tensor(whole, torch.full((1,), 2.0, device="cuda"))
assert whole.tolist() == [2] * 4
import torch.distributed._functional_collectives as functional
assert functional.all_reduce(torch.ones(2, device="cuda"), "sum", dist.group.WORLD).tolist() == [4, 4]
said = [{"steps": 7, "ids": torch.tensor([1, 2])}] if rank == 0 else [None]
dist.broadcast_object_list(said, 0)
assert said[0]["steps"] == 7
on_host = torch.tensor([3])
dist.all_reduce(on_host)
assert on_host.item() == 12
"""
    made = carried_out(tmp_path, body, verify=True)
    assert made.made["verified"] == 3, "the last rank, which gets what rank 0 broadcasts"
    assert not any("isn't known" in text for text in made.assumed)


def test_what_a_view_writes_is_unknown_in_the_whole(tmp_path: Path) -> None:
    body = """
known = torch.zeros(3, device="cuda")
known[1:].copy_(torch.randn(2, device="cuda"))
assert known.tolist() == [1.0] * 3
host = torch.zeros(2)
host[0] = torch.randn((), device="cuda")
assert host.tolist() == [1.0] * 2
"""
    made = carried_out(tmp_path, body)
    assert [text for text in made.assumed if "isn't known" in text] == [
        "train.py:5: the value of a tensor isn't known; it reads as 1.0",
        "train.py:8: the value of a tensor isn't known; it reads as 1.0",
    ]


def test_tensors_are_copied_and_made_as_on_a_gpu(tmp_path: Path) -> None:
    carried_out(
        tmp_path,
        """
held = copy.deepcopy({"sum": torch.tensor(2.0), "like": torch.ones(2, device="cuda", requires_grad=True)})
assert held["sum"].item() == 2 and held["like"].requires_grad and held["like"].is_cuda
copied = copy.deepcopy(torch.nn.Linear(2, 2).cuda())
assert isinstance(copied.weight, torch.nn.Parameter) and copied.weight.is_cuda
torch.cuda.set_device(3)
for made in (torch.tensor(1.0, device="cuda"), torch.zeros(1, device="cuda"), torch.cuda.FloatTensor([1.0])):
    assert made.device.index == 3, made.device
scalar = torch.tensor(2.0, device="cuda")
assert torch.tensor([[scalar, 1.0]]).tolist() == [[2, 1]]
assert isinstance(torch.cuda.LongTensor(3), torch.cuda.LongTensor)
import torch._inductor.runtime.triton_heuristics
import torch.utils.cpp_extension
assert torch.utils.cpp_extension.CUDA_HOME
twice = torch.cuda._compile_kernel('extern "C" __global__ void twice(float* x) {}', "twice")
twice((1, 1, 1), (32, 1, 1), (torch.zeros(8, device="cuda"),))
import triton
try:
    raise triton.runtime.OutOfResources
except triton.runtime.OutOfResources:
    pass
""",
    )


def test_an_extension_that_cuda_would_be_compiled_for_is_recorded_by_what_it_is_given(tmp_path: Path) -> None:
    body = """
import torch.utils.cpp_extension
from torch.utils.cpp_extension import load
adam = load("adam", ["adam.cpp", "adam.cu"])
inline = torch.utils.cpp_extension.load_inline("twice", "", cuda_sources="__global__ ...")
plain = torch.optim.SGD.step
def step(self, closure=None):
    weights = [p for group in self.param_groups for p in group["params"]]
    adam.multi_tensor(2048, [weights, [p.grad for p in weights]], 0.1)
    inline.twice(weights[0])
torch.optim.SGD.step = torch.optim.Optimizer.profile_hook_step(step)
"""
    made = carried_out(tmp_path, body)
    found = {kernel[0]: kernel[4] for kernel in made.kernels if kernel[0].startswith("extension.")}
    assert found == {
        "extension.adam.multi_tensor": 2 * 4 * (4 * 4 + 4),
        "extension.twice.twice": 4 * 4 * 4,
    }
    assert made.unknown["extension.adam.multi_tensor"] == 2
    said = refused(
        tmp_path, "from torch.utils.cpp_extension import load\nif load('adam', ['a.cu']).ready(): pass\n"
    )
    assert "the result of adam.ready isn't known" in said


def test_an_empty_batch_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = torch.nn.Linear(4, 4).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "rows = torch.randint(1, 9, (1,), device='cuda').item()\n"
        "for _ in range(3):\n    model(torch.randn(rows, 4, device='cuda')).sum().backward()\n"
        "    optimizer.step()\n"
    )
    with pytest.raises(WorkloadError) as caught:
        profile(ProfileRequest(str(tmp_path / "train.py")))
    assert re.search(r"train.py:6: aten.(addmm|mm), a matrix product without elements", str(caught.value))
    assert "train.py:4: the value of a tensor isn't known; it reads as 0" in str(caught.value)


def test_an_iteration_without_flops_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nweight = torch.nn.Parameter(torch.ones(4, device='cuda'))\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "for _ in range(3):\n    (weight * 2).sum().backward()\n    optimizer.step()\n"
    )
    with pytest.raises(WorkloadError, match="the iteration has no FLOPs"):
        profile(ProfileRequest(str(tmp_path / "train.py")))


def test_collectives_that_only_one_rank_calls_are_an_error(tmp_path: Path) -> None:
    body = 'dist.init_process_group("nccl")\nif dist.get_rank() == 0:\n    dist.barrier()\n'
    text = refused(tmp_path, body, verify=True)
    assert "ranks 0 and 3 don't call the same collectives" in text
    assert "rank 0 calls barrier at train.py:4" in text


def test_a_rank_that_computes_more_is_said(tmp_path: Path) -> None:
    more = "    if os.environ['RANK'] == '3':\n        model(torch.randn(2, 4, device='cuda'))\n"
    path = tmp_path / "train.py"
    path.write_text(
        "import os, torch\n" + TRAIN.replace("    optimizer.step()\n", more + "    optimizer.step()\n")
    )
    made, _ = profile(ProfileRequest(str(path), world_size=4, verify=True))
    assert any(text.startswith("rank 3, profiled too, has") for text in made.assumed)
    same, _ = profile(ProfileRequest(str(SCRIPTS / "ddp_mlp.py"), world_size=4, verify=True))
    assert not any("profiled too" in text for text in same.assumed)


def test_a_script_that_exits_shows_what_it_said(tmp_path: Path) -> None:
    body = "import argparse\nread = argparse.ArgumentParser()\nread.add_argument('--width', required=True)\n"
    text = refused(tmp_path, body + "read.parse_args()\n")
    assert "the script stopped itself: exit code 2" in text
    assert "train.py:5 in <module>: read.parse_args()" in text
    assert "the following arguments are required: --width" in text


_CLOSURE = """import torch
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def closure():
    optimizer.zero_grad()
    loss = model(torch.randn(2, 4, device="cuda")).sum()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(CLOSURE)
"""


@pytest.mark.parametrize("way", ["closure", "closure=closure"])
def test_forward_in_a_closure_is_forward(tmp_path: Path, way: str) -> None:
    (tmp_path / "train.py").write_text(_CLOSURE.replace("CLOSURE", way))
    made, _ = profile(ProfileRequest(str(tmp_path / "train.py")))
    assert flops(made, "forward") == flops(made, "backward") == 2 * 2 * 4 * 4
    assert flops(made, "optimizer") == 0


_GROUPS = """
dist.init_process_group("nccl")
for place in range(2):
    ranks = [2 * place, 2 * place + 1]
    group = dist.new_group(ranks, group_desc="TENSOR_MODEL_PARALLEL_GROUP")
    tensor = group if dist.get_rank() in ranks else tensor if place else None
for place in range(2):
    ranks = [place, place + 2]
    group = dist.new_group(ranks, group_desc="DATA_PARALLEL_GROUP")
    data = group if dist.get_rank() in ranks else data if place else None
"""


def test_axes_are_named_as_the_frameworks_name_their_groups(tmp_path: Path) -> None:
    made = carried_out(tmp_path, _GROUPS)
    assert made.mesh == {"dp": 2, "tp": 2}
    body = """
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cuda", (4,))
parallelize_module(torch.nn.Linear(8, 8).cuda(), mesh, ColwiseParallel())
"""
    assert carried_out(tmp_path, body).mesh == {"tp": 4}


@pytest.mark.slow
def test_a_long_evaluation_is_said_and_can_be_skipped() -> None:
    said: list[str] = []
    request = ProfileRequest(str(SCRIPTS / "plain_gpt.py"), ("--evaluations=180",), world_size=4)
    made, cost = profile(request, said.append)
    assert any(re.search(r"5,\d{3} operators and no optimizer step yet; now at plain_gpt", t) for t in said)
    assert any("--skip-evaluation" in text for text in said)
    skipped, less = profile(
        ProfileRequest(
            str(SCRIPTS / "plain_gpt.py"), ("--evaluations=180",), world_size=4, skip_evaluation=True
        )
    )
    assert (skipped.programs, skipped.kernels) == (made.programs, made.kernels)
    assert less.kernels < cost.kernels / 4


def test_an_evaluation_inside_the_iteration_is_said(tmp_path: Path) -> None:
    body = TRAIN.replace(
        "    optimizer.step()\n",
        "    optimizer.step()\n    with torch.no_grad():\n        for _ in range(30):\n"
        "            model(torch.randn(2, 4, device='cuda'))\n",
    )
    (tmp_path / "train.py").write_text("import torch\n" + body)
    made, _ = profile(ProfileRequest(str(tmp_path / "train.py")))
    assert any("ask for no gradients: it holds an evaluation" in text for text in made.assumed)
    assert not any("ask for no gradients" in text for text in profiled("plain_gpt.py").assumed)


def test_a_mapped_file_is_read_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "tokens.bin").write_bytes(bytes(range(64)))
    carried_out(
        tmp_path,
        f"tokens = torch.from_file({str(tmp_path / 'tokens.bin')!r}, False, 64, dtype=torch.uint8)\n"
        "assert tokens[10:13].tolist() == [10, 11, 12]\n",
    )


def test_a_mask_that_is_not_known_is_taken_to_be_full_and_said(tmp_path: Path) -> None:
    made = carried_out(
        tmp_path,
        "mask = torch.randn(3, 4, device='cuda') > 0\n"
        "assert torch.randn(3, 4, 2, device='cuda')[mask].shape == (12, 2)\n"
        "assert torch.randn(3, 4, device='cuda').masked_select(mask).shape == (12,)\n"
        "known = torch.tensor([[1, 0], [1, 1]], device='cuda')\n"
        "assert torch.nonzero(known).shape == (3, 2)\n"
        "assert torch.randn(2, 2, device='cuda')[known.bool()].shape == (3,)\n",
    )
    said = [text for text in made.assumed if "which places of a mask are set" in text]
    assert [text.partition(":  ")[0].partition(" which")[0] for text in said] == [
        "train.py:3:",
        "train.py:4:",
    ]


def test_products_of_another_result_type_have_their_flops(tmp_path: Path) -> None:
    wide = "    left = torch.randn(8, 16, device='cuda', dtype=torch.bfloat16)\n"
    wide += "    total = torch.zeros(8, 8, device='cuda')\n"
    wide += "    torch.addmm(total, left, left.t(), out_dtype=torch.float32, out=total)\n"
    (tmp_path / "train.py").write_text("import torch\n" + TRAIN.replace("range(3):\n", "range(3):\n" + wide))
    made, _ = profile(ProfileRequest(str(tmp_path / "train.py")))
    assert flops(made, "forward") == 2 * 8 * 16 * 8 + 2 * 2 * 4 * 4


def test_latent_attention_and_experts_that_are_filled_up_have_their_flops(tmp_path: Path) -> None:
    """Values narrower than keys; rows after the last expert's aren't multiplied."""
    body = """
def attend(width):
    return torch.ones(2, 4, 8, width, device="cuda", dtype=torch.bfloat16)
mixed = torch.nn.functional.scaled_dot_product_attention(attend(24), attend(24), attend(16), is_causal=True)
assert mixed.shape == (2, 4, 8, 16)
ends = torch.tensor([16, 48], dtype=torch.int32, device="cuda")
rows = torch.ones(80, 32, device="cuda", dtype=torch.bfloat16)
torch._grouped_mm(rows, torch.ones(2, 32, 64, device="cuda", dtype=torch.bfloat16), offs=ends)
"""
    made = carried_out(tmp_path, body, iteration=0)
    attention, experts = 2 * 2 * 4 * 8 * 8 * (24 + 16), 2 * 48 * 32 * 64
    assert flops(made, "forward") == attention + experts + 2 * 2 * 4 * 4


def test_what_one_operand_settles_is_known(tmp_path: Path) -> None:
    carried_out(
        tmp_path,
        """
unknown = torch.randn(3, device="cuda") > 0
left = torch.ones(3, dtype=torch.long, device="cuda")
over = torch.zeros(3, dtype=torch.bool, device="cuda") | unknown  # as generation in transformers stops
assert not over.all().isnan()
over = over | torch.full((3,), True, device="cuda")
assert over.tolist() == [True] * 3
left = left & ~over
assert left.max().item() == 0
left &= (unknown & False).long()
assert left.tolist() == [0] * 3
assert torch.logical_or(unknown, over).all()
""",
    )


def test_files_of_safetensors_are_read(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="pip install safetensors")
    body = """
from safetensors import safe_open
from safetensors.torch import load_file, save_file
name = sys.argv[0] + ".safetensors"
load = lambda device: {k: v.device.type for k, v in load_file(name, device=device).items()}
assert load("cpu") == {"a": "cpu"} and load("cuda") == {"a": "cuda"}
with safe_open(name, framework="pt", device="cuda:1") as file:
    assert file.get_tensor("a").tolist() == [0, 1, 2] and file.get_tensor("a").get_device() == 1
    assert file.get_slice("a")[1:].tolist() == [1, 2] and file.get_slice("a").get_shape() == [3]
    assert list(file.keys()) == ["a"]
"""
    head = b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
    numbers = b"".join(struct.pack("<f", each) for each in (0, 1, 2))
    (tmp_path / "train.py.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + numbers)
    carried_out(tmp_path, body)


def test_what_frameworks_ask_of_the_host(tmp_path: Path) -> None:
    """As torchtune, torchtitan and TorchRec do: meshes copied, memory shared, fakes and files of theirs."""
    body = """
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("nccl")
assert dist.is_nccl_available()
assert copy.deepcopy({"mesh": init_device_mesh("cuda", (4,))})["mesh"].size() == 4
assert torch.tensor(3).share_memory_().item() == 3

torch.library.define("mine::three", "(Tensor x) -> Tensor")
torch.library.register_fake("mine::three", lambda x: x.new_empty(3))
said = torch._library.simple_registry.singleton.find("mine::three").fake_impl.kernels[0].source
assert sys.argv[0] in said, said

got = torch.zeros(8, dtype=torch.int64, device="cuda")
dist.all_to_all_single(got, torch.tensor([7, 1, 7, 1, 6, 1, 5, 1], device="cuda"))
assert got.tolist() == [7, 1] * 4  # each rank sends as this one does, so rank 0 gets what is rank 0's
"""
    carried_out(tmp_path, body)


def test_checkpoints_of_safetensors_are_not_written(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="pip install safetensors")
    body = """
from safetensors.torch import save_file
save_file({"a": torch.ones(3, device="cuda")}, sys.argv[0] + ".safetensors")
"""
    assert any("checkpoints are not written" in text for text in carried_out(tmp_path, body).assumed)
    assert not (tmp_path / "train.py.safetensors").exists()


def test_a_librarys_error_is_shown_with_what_it_was_raised_from(tmp_path: Path) -> None:
    body = """
try:
    {}["what is missing"]
except KeyError as error:
    raise RuntimeError("it went wrong") from error
"""
    said = refused(tmp_path, body)
    assert "RuntimeError: it went wrong, because of KeyError: 'what is missing'" in said


@pytest.mark.parametrize("how", ["find_unused_parameters", "static_graph"])
def test_ddp_reduces_what_is_not_used_and_says_which_are(tmp_path: Path, how: str) -> None:
    """A bucket of both layers, as gloo processes have it; unless the graph is static, a map of four."""
    path = tmp_path / "train.py"
    path.write_text(
        "import os, torch, torch.distributed as dist\n"
        "dist.init_process_group('nccl')\n"
        "class Half(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.used, self.unused = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)\n"
        "    def forward(self, x):\n"
        "        return self.used(x)\n"
        f"model = torch.nn.parallel.DistributedDataParallel(Half().cuda(), {how}=True)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(3):\n"
        "    model(torch.randn(4, 8, device='cuda')).sum().backward()\n"
        "    optimizer.step(); optimizer.zero_grad()\n"
    )
    made, _ = profile(ProfileRequest(str(path), world_size=4))
    parameters, each = 2 * (8 * 8 + 8), 4
    expected = [each * parameters] + ([4 * each] if how == "find_unused_parameters" else [])
    assert [step.size_bytes for step in made.programs[0].steps if step.kind == "all_reduce"] == expected


def test_streams_are_given_by_name(tmp_path: Path) -> None:
    carried_out(
        tmp_path,
        """
side = torch.cuda.Stream()
with torch.cuda.stream(stream=side):
    assert torch.cuda.current_stream() == side
torch.cuda.set_stream(stream=torch.cuda.default_stream())
""",
    )


def test_unknown_tensors_of_one_shape_are_equal(tmp_path: Path) -> None:
    made = carried_out(
        tmp_path,
        """
a, b = torch.randn(3, device="cuda"), torch.randn(3, device="cuda")
assert torch.equal(a, b) and not torch.equal(a, b[:2])
assert not torch.equal(torch.ones(2), torch.zeros(2)) and torch.equal(torch.ones(2), torch.ones(2))
""",
    )
    assert any("train.py:4: whether two tensors are equal" in text for text in made.assumed)


def test_loaders_are_made_again_with_their_settings(tmp_path: Path) -> None:
    carried_out(
        tmp_path,
        """
import inspect
from torch.utils.data import DataLoader
loader = DataLoader(torch.arange(8), batch_size=4)
names = set(inspect.signature(DataLoader.__init__).parameters) & vars(loader).keys()  # as Lightning does
assert {"batch_size", "dataset", "drop_last"} <= names
""",
    )


def test_objects_broadcast_in_one_group_reach_those_of_its_shape(tmp_path: Path) -> None:
    body = """
dist.init_process_group("nccl")
rank = dist.get_rank()
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
said = [{"pair": 7}] if rank % 2 == 0 else [None]
dist.broadcast_object_list(said, src=rank // 2 * 2, group=pairs[rank // 2])
assert said == [{"pair": 7}]
"""
    assert carried_out(tmp_path, body, verify=True).made["verified"] == 3


def test_parameters_made_in_a_thread_take_what_is_on_a_gpu(tmp_path: Path) -> None:
    carried_out(
        tmp_path,
        """
import threading  # modes are a thread's own: what transformers loads in others is real
made = []
thread = threading.Thread(target=lambda: made.append(torch.nn.Linear(4, 4)))
thread.start()
thread.join()
flat = torch.cat([p.data.reshape(-1) for p in made[0].parameters()]).cuda()
for p, at in zip(made[0].parameters(), (0, 16)):  # as DeepSpeed's ZeRO does
    p.data = flat.narrow(0, at, p.numel()).view(p.shape).data
    assert p.is_cuda and p.is_leaf and p.requires_grad and isinstance(p, torch.nn.Parameter)
made[0](torch.randn(2, 4, device="cuda")).sum().backward()
assert made[0].weight.grad.shape == (4, 4)
""",
    )


def test_a_monitored_barrier_gives_nothing(tmp_path: Path) -> None:
    body = """
dist.init_process_group("nccl")
assert dist.group.WORLD.monitored_barrier() is None
"""
    carried_out(tmp_path, body)
