"""Megatron-LM's script, profiled, is the catalogue's ``framework: megatron`` in FLOPs and exchanges."""

from __future__ import annotations

import importlib.util

import pytest

from tests.validation.crosscheck_megatron import exchanged, made, script

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not script().is_file() or importlib.util.find_spec("pybind11") is None,
        reason="needs Megatron-LM: COSIM_SCRIPTS=FOLDER, see tests.benchmarks.public_scripts_data",
    ),
]


@pytest.mark.parametrize("name", ["tp", "tp-pp"])
def test_flops_and_exchanges_of_megatrons_script_are_the_catalogues(name: str) -> None:
    found = made(name)
    for theirs, ours in zip(found.profiled, found.catalogue, strict=True):
        assert theirs.flops == ours.flops
        assert exchanged(theirs) == exchanged(ours)
