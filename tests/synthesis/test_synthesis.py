"""Traces that are learned and made: like the source, valid, scaled, and with nothing of it that is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.context import HERE
from cosim.errors import InputError
from cosim.formats.chakra.read import ChakraWorkload
from cosim.formats.chakra.write_nodes import node, write_trace
from cosim.synthesis.audit import audit
from cosim.synthesis.draw import Scale, read_scale, synthesise
from cosim.synthesis.files import write_traces
from cosim.synthesis.learn import learn
from cosim.synthesis.model import read_model, write_model
from cosim.synthesis.sources import read_sources
from cosim.workload.program import Workload
from tests.synthesis.figures import figures
from tests.synthesis.sources import iteration_ps, traces


def read(path: Path) -> Workload:
    return read_sources([path], world_size=None, gpu=None, dependencies="all")


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return read(traces(tmp_path_factory.mktemp("six") / "traces", layers=6))


def test_made_traces_have_the_figures_of_their_source_and_are_read_back(
    six: Workload, tmp_path: Path
) -> None:
    write_model(learn(six), tmp_path / "model.json")
    made = synthesise(read_model(tmp_path / "model.json"), seed=3)
    write_traces(made, tmp_path / "made")
    source, found = figures(six), figures(read(tmp_path / "made"))
    assert (source.depth, source.width) == (found.depth, found.width)
    for name, kind in source.kinds.items():
        assert (kind.count, kind.size_bytes) == (found.kinds[name].count, found.kinds[name].size_bytes)
    run = ChakraWorkload(path=str(tmp_path / "made")).build(HERE)
    for rate in ("10Gbps", "100Gbps"):
        assert iteration_ps(run, rate) == pytest.approx(iteration_ps(six, rate), rel=0.02)


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    return read(traces(tmp_path_factory.mktemp("twelve") / "traces", layers=12))


@pytest.mark.parametrize("hide", [1, 20])
def test_twice_the_layers_is_the_model_that_has_them(six: Workload, twelve: Workload, hide: int) -> None:
    made = synthesise(learn(six, hide=hide), seed=3, scale=Scale(layers=2))
    source, found = figures(twelve), figures(made)
    for name, kind in source.kinds.items():
        assert found.kinds[name].count == pytest.approx(kind.count, rel=0.02), name
        assert found.kinds[name].size_bytes == pytest.approx(kind.size_bytes, rel=0.1), name
    assert found.depth == pytest.approx(source.depth, rel=0.02)
    assert found.width == source.width
    for rate in ("10Gbps", "100Gbps", *(["400Gbps"] if hide == 1 else [])):
        assert iteration_ps(made, rate) == pytest.approx(iteration_ps(twelve, rate), rel=0.1)


def test_half_the_layers_is_less_than_one_and_more_than_none(six: Workload) -> None:
    for hide in (1, 20):
        source, half = figures(six), figures(synthesise(learn(six, hide=hide), scale=Scale(layers=0.5)))
        assert half.kinds["all_gather"].count == pytest.approx(source.kinds["all_gather"].count / 2, rel=0.1)
        assert 0.4 < half.depth / source.depth < 0.6


def test_more_ranks_make_data_parallel_groups_larger_and_more_of_the_others(six: Workload) -> None:
    made = synthesise(learn(six), ranks=16)
    groups = {one.ranks for program in made.programs for one in program.operations if one.collective}
    assert {len(group or ()) for group in groups} == {2, 8}
    assert (14, 15) in groups
    assert (0, 2, 4, 6, 8, 10, 12, 14) in groups
    assert iteration_ps(made) > iteration_ps(six)


def test_bytes_are_scaled_and_seeds_differ(six: Workload) -> None:
    model = learn(six)
    one = figures(synthesise(model, scale=Scale(bytes=1.5)))
    assert one.kinds["all_gather"].size_bytes == 1.5 * figures(six).kinds["all_gather"].size_bytes
    hidden = learn(six, hide=20)
    first, again, other = (synthesise(hidden, seed=seed).programs for seed in (1, 1, 2))
    assert first[0].operations == again[0].operations != other[0].operations


def test_a_hidden_model_has_nothing_of_its_source_and_its_figures(six: Workload, tmp_path: Path) -> None:
    model = learn(six, hide=20)
    write_model(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text(encoding="utf-8")
    assert not [word for word in ("micro-batch", "norm", "gradient", "mlp") if word in text]
    made = synthesise(read_model(tmp_path / "model.json"), seed=3)
    source, found = figures(six), figures(made)
    assert audit(six, 20, model) == []
    assert audit(six, 20, made) == []
    for name, kind in source.kinds.items():
        assert found.kinds[name].count == kind.count
        assert found.kinds[name].size_bytes == pytest.approx(kind.size_bytes, rel=0.04)
    assert found.depth == pytest.approx(source.depth, rel=0.02)
    assert found.width == source.width
    for rate in ("10Gbps", "100Gbps"):
        assert iteration_ps(made, rate) == pytest.approx(iteration_ps(six, rate), rel=0.1)


def test_an_audit_finds_names_sizes_and_chains_that_were_not_hidden(six: Workload) -> None:
    found = audit(six, 20, synthesise(learn(six)))
    assert {one.what for one in found} >= {"name", "size"}
    assert audit(six, 20, learn(six))


def test_files_of_ranks_are_read_as_their_folder_is(tmp_path: Path) -> None:
    folder = traces(tmp_path / "traces", layers=1)
    files = sorted(folder.glob("*.et"))
    one = read_sources(files, world_size=None, gpu=None, dependencies="all")
    assert [program.operations for program in one.programs] == [
        program.operations for program in read(folder).programs
    ]
    with pytest.raises(InputError, match="one kind"):
        read_sources([*files, folder / "comm_groups.json"], world_size=None, gpu=None, dependencies="all")


@pytest.mark.parametrize(
    ("ranks", "scale", "words"),
    [
        (12, "layers=1", "give a multiple: 8"),
        (0, "bytes=2", "0 ranks"),
        (8, "depth=2", "layers=2"),
        (8, "bytes=0", "bytes=1.5"),
    ],
)
def test_ranks_and_scales_that_do_not_fit_say_what_would(
    six: Workload, ranks: int, scale: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        synthesise(learn(six), ranks=ranks, scale=read_scale(scale))


@pytest.mark.parametrize("hide", [1, 2])
def test_where_no_block_repeats_no_layers_are_multiplied(hide: int, tmp_path: Path) -> None:
    write_trace(
        tmp_path / "trace.0.et",
        [node(at, name, "COMP", (), 10**6, is_cpu_op=False) for at, name in enumerate("abc")],
    )
    model = learn(read(tmp_path), hide=hide)
    assert len(synthesise(model).programs[0].operations) == 3
    with pytest.raises(InputError, match="no block of the traces repeats"):
        synthesise(model, scale=Scale(layers=2))


def test_hide_refuses_too_few(six: Workload) -> None:
    with pytest.raises(InputError, match="at most, or more traces"):
        learn(six, hide=10**6)


def test_damaged_models_and_traces_say_where(six: Workload, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    write_model(learn(six), path)
    text = path.read_text(encoding="utf-8")
    for damaged, words in [
        (text[: len(text) // 2], "not JSON"),
        ("", "not JSON"),
        ("[]", "no model of traces"),
        (text.replace('"ranks":8', '"ranks":9'), "one role"),
        (text.replace('"hide":1', '"hide":20'), "hidden model"),
        (text.replace('"times_ps":[[', '"times_ps":[[9223372036854775808,'), "ascending"),
    ]:
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(InputError, match=words) as raised:
            read_model(path)
        assert str(path) in str(raised.value)
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "none.et")
    (tmp_path / "empty.et").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        read(tmp_path / "empty.et")
    (tmp_path / "et.json").write_text('{"schema": "1.0.1", "nodes": []}', encoding="utf-8")
    with pytest.raises(InputError, match="--gpu"):
        read_sources([tmp_path / "et.json"], world_size=2, gpu=None, dependencies="all")


def test_a_trace_that_is_cut_or_cyclic_says_its_place(tmp_path: Path) -> None:
    folder = traces(tmp_path / "traces", layers=1)
    first = folder / "trace.0.et"
    whole = first.read_bytes()
    first.write_bytes(whole[:-5])
    with pytest.raises(InputError, match=r"trace\.0\.et.*byte \d+"):
        read(folder)
    write_trace(
        first, [node(number, "x", "COMP", (3 - number,), 10**6, is_cpu_op=False) for number in (1, 2)]
    )
    with pytest.raises(InputError, match="wait for each other"):
        read(folder)
