"""Parameters that made measurements are found again; the closed forms are what the replay takes."""

import pytest
import yaml

from cosim.pattern.config import CollectiveConfig
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_fit import MeasuredCollective, fit_nccl, host_s, scenario_lines
from cosim.pattern.template import Collective
from tests.pattern.test_nccl import alone

RATE = 300e9
KINDS = [kind for kind in Collective if kind is not Collective.BARRIER]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_closed_forms_are_what_the_replay_takes(kind: Collective, ranks: int) -> None:
    ranks = 2 if kind is Collective.SEND_RECV else ranks
    for size in (ranks * 8, ranks << 14, ranks << 20, ranks * 9 << 20):
        assert alone(kind.value, size, ranks) / 1e12 == pytest.approx(
            host_s(Nccl(), kind, ranks, size, RATE), rel=0.02
        )


def test_a_fit_finds_the_parameters_that_made_the_measurements() -> None:
    given = {"latency": "61us", "least_latency": "9us", "nvlink_efficiency": 0.84, "loop_gap": "12us"}
    truth = Nccl.model_validate(given)
    made = [
        MeasuredCollective(kind, ranks, size, host_s(truth, kind, ranks, size, RATE))
        for kind in KINDS
        for ranks in (2, 8)
        for size in (8 << power for power in range(0, 27, 3))
    ]
    odd = MeasuredCollective(Collective.ALL_REDUCE, 8, 1 << 25, 1.0)  # one that the machine hiccuped in
    found, error = fit_nccl([*made, odd], RATE)
    assert found.latency == pytest.approx(truth.latency, rel=0.02)
    assert found.least_latency == pytest.approx(truth.least_latency, rel=0.02)
    assert found.nvlink_efficiency == pytest.approx(truth.nvlink_efficiency, rel=0.01)
    assert found.loop_gap == pytest.approx(truth.loop_gap, rel=0.05)
    assert error < 0.02
    said = CollectiveConfig.model_validate(yaml.safe_load(scenario_lines(found))["collectives"])
    assert isinstance(said.broadcast, Nccl)
    assert said.broadcast.latency == pytest.approx(found.latency, rel=1e-3)
