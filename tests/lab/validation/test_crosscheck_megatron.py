"""Megatron-LM's script, profiled, is the catalogue's ``framework: megatron`` with local layers."""

from __future__ import annotations

import importlib.util

import pytest

from tests.lab.validation.crosscheck import TOLERANCE
from tests.lab.validation.crosscheck_megatron import alike, made, script

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not script().is_file() or importlib.util.find_spec("pybind11") is None,
        reason="needs Megatron-LM: COSIM_SCRIPTS=FOLDER, see tests.lab.benchmarks.public_scripts_data",
    ),
]


@pytest.mark.parametrize("name", ["tp", "tp-pp"])
def test_work_exchanges_and_times_of_megatrons_script_are_the_catalogues(name: str) -> None:
    found = made(name)
    assert alike(found)
    assert abs(found.difference) < TOLERANCE
