"""The YAML reader against PyYAML's own, and where it differs on purpose."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cosim.errors import ScenarioError
from cosim.files.located_yaml import parse, plain_scalar


def _only_ours(text: str) -> bool:
    """A number to us, as in YAML 1.2, but not to PyYAML, which doesn't quote it: 1e9."""
    return not isinstance(plain_scalar(text), str) and isinstance(yaml.safe_load(text), str)


KEYS = st.text("abcxyz", min_size=1, max_size=4)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=12).filter(lambda text: not _only_ours(text))
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=30)


@given(VALUES, st.booleans())
def test_what_pyyaml_writes_is_read_as_it_was(value: Any, flow: bool) -> None:
    assert parse(yaml.safe_dump(value, default_flow_style=flow), "x.yaml").value == value


def test_each_key_and_item_has_its_line() -> None:
    document = parse("a:\n  - 1\n  - {b: 2,\n     c: 3}\n", "x.yaml")
    lines = {path: document.locate(path).line for path in [("a",), ("a", 0), ("a", 1, "b"), ("a", 1, "c")]}
    assert lines == {("a",): 1, ("a", 0): 2, ("a", 1, "b"): 3, ("a", 1, "c"): 4}


def test_an_alias_is_a_copy_and_a_merged_key_yields_to_one_that_is_given() -> None:
    text = "x: &x {a: 1, b: [2]}\ny: *x\nz: {a: 5, <<: [{b: 3}, *x]}\n"
    document = parse(text, "x.yaml")
    assert document.value == {"x": {"a": 1, "b": [2]}, "y": {"a": 1, "b": [2]}, "z": {"a": 5, "b": 3}}
    document.value["y"]["b"].append(7)
    assert document.value["x"]["b"] == [2]
    assert document.locate(("y", "b")).line == 1  # where it is said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3: a: the key 'a' was already given in line 1"),
        ("a: &a [1, *a]\n", "x.yaml:1: a[1]: this value contains itself"),
        ("a: 1\n--- 2\n", "x.yaml:2: a second document begins here"),
        (
            "a: !!python/object:os.system x\n",
            "x.yaml:1: a: the tag tag:yaml.org,2002:python",
        ),
        ('a: "\\ud800"\n', "x.yaml:1: a: holds the character '\\ud800', half of one"),
        ("[" * 100_000, "x.yaml:1: nested more than 100 deep"),
        (
            "a0: &a0 [1]\n"
            + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(12)),
            "aliases of aliases make more than can be read",
        ),
    ],
    ids=["twice", "itself", "two documents", "object", "surrogate", "deep", "bomb"],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text, "x.yaml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e9", 1e9),
        ("1:30", "1:30"),
        ("012", "012"),
        ("2020-01-01", "2020-01-01"),
        ("0x1F", 31),
        ("no", False),
    ],
)
def test_numbers_are_those_of_yaml_1_2(text: str, value: object) -> None:
    assert parse(f"a: {text}", "x.yaml").value == {"a": value}
