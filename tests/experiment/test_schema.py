"""The JSON schema takes every scenario that is shipped, and refuses what a scenario would."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from cosim.experiment.schema import schema
from cosim.registry import GROUPS, names
from tests.inputs import ROOT

FILES = sorted([*(ROOT / "scenarios").glob("*.yaml"), *(ROOT / "docs" / "howto" / "files").glob("*.yaml")])
QUICKSTART = yaml.safe_load((ROOT / "scenarios" / "quickstart.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


@pytest.mark.slow
def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_is_valid(path: Path, validator: Draft202012Validator) -> None:
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert [error.message for error in validator.iter_errors(value)] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("topology", "leafs"), 4),
        (("topology", "kind"), "leaf_spin"),
        (("topology", "leaves"), "four"),
        (("network",), "fairshare"),
        (("jobs", 0, "iteration"), 3),
        (("jobs", 0, "iterations"), 0),
        (("jobs",), []),
        (("release",), "nobody"),
        (("network",), {"plugin": "my.txt:Network"}),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else repr(value),
)
def test_a_mistake_is_refused(path: tuple[Any, ...], value: Any, validator: Draft202012Validator) -> None:
    scenario = copy.deepcopy(QUICKSTART)
    here = scenario
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    assert not validator.is_valid(scenario)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("network",), {"plugin": "my.py:Network", "anything": 1}),
        (("network",), "my.py:Network"),
        (("network",), {"simulator": "ns3"}),
        (("jobs", 0, "workload"), {"plugin": "my.py:Workload"}),
        (("topology", "routing"), {"kind": "ecmp", "seed": 3}),
    ],
    ids=str,
)
def test_other_ways_to_say_it_are_valid(
    path: tuple[Any, ...], value: Any, validator: Draft202012Validator
) -> None:
    scenario = copy.deepcopy(QUICKSTART)
    here = scenario
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    assert validator.is_valid(scenario)


def test_every_name_is_offered() -> None:
    made = schema()["$defs"]
    for group in GROUPS:
        assert made[group]["anyOf"][0]["enum"] == list(names(group))
        assert all(f"{group}.{name}" in made for name in names(group))
