"""Each kind of wrong server is noticed, by the check that says what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cosim.testing.conformance.kit import check_names
from tests.protocol.mutants import MUTANTS, Mutant, noticed

UNMUTATED = {
    "time", "endurance", "determinism", "cuts", "replay", "idle", "causes",
    "cancel", "budget", "peek", "dependents", "start_dependents", "past_dependents", "given_later", "queues",
    "rates", "link_rates", "detours", "live_changes", "live_control", "socket",
}  # fmt: skip
"""Checks without a mutant here, but with a fault of cosim's own server."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    assert noticed(mutant, tmp_path) == (mutant.check,)


def test_every_check_stands_beside_its_rule_on_the_protocol_s_page() -> None:
    page = (Path(__file__).parents[2] / "proto/cosim/protocol/v1/README.md").read_text(encoding="utf-8")
    table = page.partition("## Which check holds which rule")[2].partition("\n## ")[0]
    said = {name for row in table.splitlines() if row.startswith("|") for name in re.findall(r"`(\w+)`", row)}
    assert said == {*check_names("server")}
    assert f"one mistake at a time, {len(MUTANTS)} of them" in table


def test_every_check_has_a_mutant_or_a_fault_of_cosim_s_own_server() -> None:
    assert {mutant.check for mutant in MUTANTS} | UNMUTATED == {*check_names("server")}
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
