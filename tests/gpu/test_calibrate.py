from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml

from cosim.context import HERE, Context
from cosim.errors import InputError, WorkloadError
from cosim.gpu.calibrate import fit, fit_training, table_of, write_table
from cosim.gpu.catalogue import H100_SXM, names, read
from cosim.gpu.device_name import named_by_driver
from cosim.gpu.efficiency import Efficiency
from cosim.gpu.gpus import GpuTable
from cosim.gpu.kernels import matmul
from cosim.gpu.measured_kernels import Measurement, kernels_to_measure, measure, number_type
from cosim.gpu.measured_training import TrainingMeasured, element_wise
from cosim.gpu.timer import GpuTimer
from cosim.models.transformer import Transformer
from cosim.units import PS_PER_S


@pytest.mark.slow
def test_a_fit_finds_the_parameters_that_made_the_measurements() -> None:
    truth = Efficiency(
        matmul_peak=0.66,
        matmul_depth=250,
        memory_peak=0.9,
        attention_peak=0.4,
        attention_backward=0.7,
        kernel_time="4us",
        unaligned=0.6,
    )
    # The GPU's tiles are known, and kernels are measured alone.
    kept = {
        name: getattr(H100_SXM.efficiency, name)
        for name in (
            "tiles",
            "split_inner",
            "matmul_overlap",
            "attention_ramp",
            "attention_head",
            "attention_tile",
            "causal_saves",
        )
    }
    truth = truth.model_copy(update=kept)
    clock = GpuTimer(H100_SXM.model_copy(update={"efficiency": truth}), "bf16", alone=True)
    made = [
        Measurement(kernel, clock.kernel_ps(kernel) / PS_PER_S, 7e-6)
        for kernel in kernels_to_measure("bf16", 8192)
    ]
    found, error = fit(made, H100_SXM, "bf16")
    for name in ("matmul_peak", "memory_peak", "attention_peak", "attention_backward", "unaligned"):
        assert getattr(found.efficiency, name) == pytest.approx(getattr(truth, name), rel=0.03)
    assert found.efficiency.matmul_depth == pytest.approx(250, abs=40)
    assert found.efficiency.kernel_time == pytest.approx(4e6, rel=0.01)
    assert (found.host.operator_time, found.host.step_time) == (7_000_000, 0)
    assert error < 0.02
    rng = np.random.default_rng(1)
    noisy = [Measurement(one.kernel, one.seconds * rng.uniform(0.9, 1.1), one.host_s) for one in made]
    assert 0.03 < fit(noisy, H100_SXM, "bf16")[1] < 0.12


def test_a_table_is_a_gpu_that_a_scenario_can_name(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("table")
    efficiency = Efficiency(matmul_peak=0.5)
    gpu = H100_SXM.model_copy(update={"efficiency": efficiency})
    write_table(folder / "h100.yaml", table_of(gpu, {"device": "made up"}, []))
    assert yaml.safe_load((folder / "h100.yaml").read_text())["provenance"] == {"device": "made up"}
    assert GpuTable(path="h100.yaml").build(Context(folder)) == gpu
    shape = {"layers": 1, "hidden": 64, "heads": 1, "vocabulary": 64, "sequence": 64}
    named = Transformer.model_validate({**shape, "gpu": {"kind": "table", "path": "h100.yaml"}})
    direct = Transformer.model_validate({**shape, "gpu": gpu})
    assert named.build(Context(folder)).programs[0].operations == direct.build(HERE).programs[0].operations
    with pytest.raises(WorkloadError, match=r"h100\.yaml: there is no such file\n.*cosim calibrate"):
        named.build(Context(folder / "elsewhere"))
    (folder / "h100.yaml").write_text("gpu: {}")
    with pytest.raises(WorkloadError, match=r"h100\.yaml:1: gpu\.peak_flops: Field required"):
        named.build(Context(folder))


def test_number_types_that_cannot_be_measured_are_refused() -> None:
    with pytest.raises(InputError, match="no number type 'int4'"):
        number_type("int4")


@pytest.mark.slow
def test_a_cpu_can_be_measured_and_a_gpu_that_is_not_there_is_refused() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install '.[profile]'")
    found, provenance = measure("cpu", "fp32", largest=64)
    assert len(found) == len(kernels_to_measure("fp32", 64))
    assert all(one.seconds > 0 for one in found)
    assert provenance["device"].startswith("CPU")
    assert provenance["torch"] == torch.__version__
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="there is no cuda here"):
            measure("cuda", "fp32")
    with pytest.raises(InputError, match="device 'tpu' isn't known"):
        measure("tpu", "fp32")


DRIVERS = {  # what drivers say: name, multiprocessors, MiB
    ("NVIDIA H100 80GB HBM3", 132, 81079): "H100-SXM5",
    ("NVIDIA H100 PCIe", 114, 81079): "H100-PCIe",
    ("NVIDIA H200", 132, 143167): "H200-SXM",
    ("NVIDIA H20", 78, 97508): "H20",
    ("NVIDIA B200", 148, 182642): "B200",
    ("NVIDIA GB200", 152, 188416): "GB200",
    ("NVIDIA A100-SXM4-80GB", 108, 81050): "A100-SXM4-80GB",
    ("NVIDIA A100-SXM4-40GB", 108, 40326): "A100-SXM4-40GB",
    ("NVIDIA L40S", 142, 45596): "L40S",
    ("Tesla V100-SXM2-32GB", 80, 32501): "V100-SXM2",
    ("AMD Instinct MI300X", 304, 196288): "MI300X",
    ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 42, 19968): None,
    ("NVIDIA GeForce RTX 4090", 128, 24080): "RTX-4090",
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 188, 97887): "RTX-PRO-6000",
    ("NVIDIA GeForce RTX 3090", 82, 24126): None,
}


@pytest.mark.parametrize(("said", "name"), DRIVERS.items())
def test_a_device_is_the_catalogues_by_what_its_driver_says(
    said: tuple[str, int, int], name: str | None
) -> None:
    device, multiprocessors, mib = said
    found = named_by_driver(device, multiprocessors, mib << 20, map(read, names()))
    assert (None if found is None else found.name) == name


def test_what_a_training_has_of_its_own_gives_the_seconds_measured_there() -> None:
    truth = H100_SXM.efficiency.model_copy(update={"sustained_clock": 0.9, "memory_training": 0.6})
    clock = GpuTimer(H100_SXM.model_copy(update={"efficiency": truth}), "bf16")
    product, moved = matmul(8192, 8192, 8192, 2), 10**9
    kernel_ps = truth.kernel_time
    seconds = (clock.kernel_ps(product) - kernel_ps) / PS_PER_S
    memory_s = moved * 8 / H100_SXM.memory_rate / 0.6
    alone = H100_SXM.model_copy(update={"efficiency": truth.model_copy(update={"kernel_time": 0})})
    found = fit_training(TrainingMeasured((product,), seconds, moved, memory_s, 2e-5), alone, "bf16")
    assert found.efficiency.sustained_clock == pytest.approx(0.9, rel=1e-3)
    assert found.efficiency.memory_training == pytest.approx(0.6)
    assert found.host.operator_time == 20_000_000
    fast = TrainingMeasured((product,), seconds / 2, moved, memory_s, 2e-5)
    assert fit_training(fast, alone, "bf16").efficiency.sustained_clock == 1


def test_operators_between_products_move_what_they_are_said_to() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install '.[profile]'")
    wide = [torch.randn(128, 512).bfloat16() for _ in range(3)]
    operators, moved = element_wise(torch, wide, torch.bfloat16, 2)
    passes = 0
    for operator in operators[:-1]:
        out: Any = operator()
        passes += out.numel() * out.element_size()  # what is written; AdamW's step gives nothing
    numbers = 128 * 512
    operators[-1]()
    # Read: fp32, x, y, x and z, the sum's two, the norm's, x; and AdamW's 28 bytes on a quarter.
    read_bytes = (4 + 2 + 2 + 4 + 4 + 4 + 2) * numbers
    assert moved == passes + read_bytes + 7 * numbers
