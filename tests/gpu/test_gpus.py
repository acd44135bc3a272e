from importlib.metadata import entry_points

import pytest

from cosim.gpu import catalogue
from cosim.gpu.gpus import Gpu

CATALOGUE = [catalogue.read(name) for name in catalogue.names()]


def test_the_catalogue_has_the_usual_gpus() -> None:
    assert {gpu.name for gpu in CATALOGUE} >= {"V100-SXM2", "A100-SXM4-80GB", "H100-SXM5", "H200-SXM", "B200"}


@pytest.mark.parametrize("gpu", CATALOGUE, ids=lambda gpu: gpu.name)
def test_entries_name_a_source_and_rank_their_types(gpu: Gpu) -> None:
    assert "datasheet" in gpu.source or "data sheet" in gpu.source or "Architecture" in gpu.source
    assert gpu.peak("fp16") > gpu.peak("fp32")
    assert 0.8e12 <= gpu.memory_rate / 8 <= 8e12
    if "fp8" in gpu.peak_flops:
        assert gpu.peak("fp8") == pytest.approx(2 * gpu.peak("fp16"), rel=1e-3)
    if "tf32" in gpu.peak_flops:
        assert gpu.peak("tf32") == pytest.approx(gpu.peak("fp16") / 2, rel=1e-3)


def test_peaks_are_exact_numbers_of_flops() -> None:
    assert catalogue.A100_80GB.peak("bf16") == 312e12
    assert catalogue.A100_80GB.memory_rate == 2039 * 8e9
    assert catalogue.H100_SXM.peak("fp8") == 1978.9e12


def test_an_unknown_number_type_is_refused() -> None:
    with pytest.raises(ValueError, match="V100-SXM2 has no bf16; it has fp16, fp32, fp64"):
        catalogue.V100_SXM2.peak("bf16")
    with pytest.raises(ValueError, match="at least one number type"):
        Gpu.model_validate({"peak_flops": {}, "memory_rate": "1TB/s"})


@pytest.mark.parametrize("like", [{}, {"like": "h100-sxm"}])
@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("power", "many", "valid number"),
        ("power", float("inf"), "finite number"),
        ("power", [300], "valid number"),
        ("peak_flops", {"bf16": float("inf")}, "finite number"),
        ("peak_flops", {"bf16": 400}, "greater than or equal to 1000000"),
        ("peak_flops", {"bf16": "abc"}, "valid number"),
        ("peak_flops", [], "valid dictionary"),
        ("multiprocessors", -1, "greater than 0"),
    ],
)
def test_numbers_of_a_data_sheet_that_cant_be_are_refused_as_such(
    like: dict[str, str], field: str, value: object, why: str
) -> None:
    sheet = {"peak_flops": {"bf16": 1e15}, "memory_rate": "1TB/s", "power": 700, field: value} | like
    with pytest.raises(ValueError, match=why):
        Gpu.model_validate(sheet)


def test_every_gpu_is_named_in_a_scenario_and_to_scripts() -> None:
    named = {point.name for point in entry_points(group="cosim.gpus")} - {"custom", "table"}
    assert named == {*catalogue.names()}


def test_what_is_known_of_a_gpu_says_how_far_off_it_may_be() -> None:
    h100, h200, h20, mi355x = (catalogue.read(name) for name in ("h100-sxm", "h200-sxm", "h20", "mi355x"))
    assert h100.trust("bf16").startswith("calibrated on")
    assert h200.trust("bf16").endswith("what its kernels weren't measured for is as on h100-sxm")
    assert h20.trust("bf16").endswith("the efficiencies are as on h200-sxm")
    assert mi355x.trust("bf16").endswith("another GPU's")
    apart = [sum(part**2 for part in gpu.error("bf16")) ** 0.5 for gpu in (h100, h200, h20, mi355x)]
    assert apart[0] < apart[1] == apart[2] < apart[3]
    # 2.7 watts for each TFLOP/s of its peak, an H200 0.7: no power limit holds it back.
    assert h200.efficiency.sustained_clock == h100.efficiency.sustained_clock < h20.efficiency.sustained_clock
    assert h20.efficiency.sustained_clock == 1


def test_a_data_sheets_products_reach_what_watts_allow_and_fill_in_their_time() -> None:
    near, far = catalogue.read("h200-sxm"), catalogue.read("h20")
    assert far.efficiency.matmul_peak == 0.9  # as much as any GPU reached that was measured
    each = [gpu.peak("bf16") / gpu.multiprocessors for gpu in (near, far)]
    assert far.efficiency.matmul_depth / each[1] == pytest.approx(
        near.efficiency.matmul_depth / each[0], rel=0.01
    )
    alike = catalogue.read("h800-sxm").efficiency
    assert alike.matmul_peak == catalogue.read("h100-sxm").efficiency.matmul_peak
    # GB300 has 0.56 W for each TFLOP/s, GB200 0.48; trainings keep what the power limit gives them.
    near, far = catalogue.read("gb200"), catalogue.read("gb300")
    assert far.efficiency.matmul_peak == pytest.approx(near.efficiency.matmul_peak + 0.2 * 0.08, abs=1e-3)
    reached = [gpu.efficiency.sustained_clock * gpu.efficiency.matmul_peak for gpu in (near, far)]
    assert reached[1] / reached[0] == pytest.approx(1400 / 1200, rel=2e-3)


def test_a_neighbours_clock_goes_with_its_watts_for_each_flop() -> None:
    near, far = catalogue.read("gb200"), catalogue.read("gb300")
    assert far.like == "gb200"
    assert "sustained_clock" not in far.fitted
    assert near.power is not None
    assert far.power is not None
    per_flop = (far.power / far.peak("bf16")) / (near.power / near.peak("bf16"))
    alone = far.efficiency.matmul_peak / near.efficiency.matmul_peak
    expected = near.efficiency.sustained_clock * per_flop / alone  # of what a kernel alone reaches
    assert far.efficiency.sustained_clock == pytest.approx(expected, abs=0.001)
    values = {"name": "mine", "like": "gb200", "peak_flops": {"bf16": 1e12}, "memory_rate": "1TB/s"}
    assert Gpu.model_validate(values).efficiency.sustained_clock == near.efficiency.sustained_clock
    assert Gpu.model_validate(values | {"power": 1200}).efficiency.sustained_clock == 1
    given = values | {"power": 1200, "efficiency": {"sustained_clock": 0.5}}
    assert Gpu.model_validate(given).efficiency.sustained_clock == 0.5
