"""Damaged traces: whatever is in a file, the answer is a workload or an error that names the file."""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.context import Context
from cosim.errors import CosimError
from cosim.formats.pytorch.read import PyTorchWorkload
from cosim.gpu.catalogue import V100_SXM2
from cosim.workload.check import check
from tests.formats.pytorch.trace_files import data_parallel

_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "wait", "send", "allreduce", "ProfilerStep#3", "record_param_comms", "cuda:0"]),
    st.text(max_size=5),
    st.lists(st.integers(-2, 9), max_size=6),
    st.dictionaries(st.sampled_from(["id", "name", "values", "stream"]), st.integers(-1, 3), max_size=2),
)
_MADE = [data_parallel(rank, 2, late=60 * rank) for rank in range(2)]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in _places(item, (*path, key)))]


def _build(texts: dict[str, bytes], **given: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            path = Path(folder) / name
            path.mkdir()
            (path / "rank0.json").write_bytes(text)
            (path / "rank1.json").write_text(json.dumps(getattr(_MADE[1], name)()))
        with contextlib.suppress(CosimError):
            check(PyTorchWorkload(**{"et": "et", "kineto": "kineto", **given}).build(Context(Path(folder))))


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(data=st.data(), which=st.sampled_from(["et", "kineto"]))
def test_a_value_changed_or_gone_anywhere_is_never_a_traceback(data: st.DataObject, which: str) -> None:
    traces = {"et": _MADE[0].et(), "kineto": _MADE[0].kineto()}
    damaged = copy.deepcopy(traces[which])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_places(damaged)[1:]))
        inside: Any = damaged
        for key in path[:-1]:
            inside = inside[key]
        if data.draw(st.booleans()):
            inside[path[-1]] = data.draw(_VALUES)
        else:
            del inside[path[-1]]
    texts = {name: json.dumps(damaged if name == which else trace).encode() for name, trace in traces.items()}
    _build(texts)
    if which == "et":
        _build(texts, kineto=None, gpu=V100_SXM2)


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(data=st.data(), which=st.sampled_from(["et", "kineto"]))
def test_bytes_changed_or_cut_are_never_a_traceback(data: st.DataObject, which: str) -> None:
    texts = {"et": json.dumps(_MADE[0].et()).encode(), "kineto": json.dumps(_MADE[0].kineto()).encode()}
    text = bytearray(texts[which])
    for _ in range(data.draw(st.integers(0, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    texts[which] = bytes(text[: data.draw(st.integers(0, len(text)))])
    _build(texts)
