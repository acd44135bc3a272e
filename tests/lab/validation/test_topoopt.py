"""Jobs that TopoOpt's authors simulated packet by packet on links without switches."""

import numpy as np
import pytest

from tests.lab.validation.topoopt import PUBLISHED, direct

JOBS = {job.name: job for job in PUBLISHED}


@pytest.mark.parametrize("degree", [4, 8])
@pytest.mark.parametrize("name", ["CANDLE", "DLRM"])
@pytest.mark.filterwarnings("ignore")
def test_jobs_that_wait_for_the_network_take_as_long_as_published(name: str, degree: int) -> None:
    theirs = (JOBS[name].published_ms or {})[degree]
    assert JOBS[name].iteration_ms(16, direct(16, degree)) == pytest.approx(
        float(np.median(theirs)), rel=0.03
    )


@pytest.mark.filterwarnings("ignore")
def test_a_job_that_waits_for_its_gpus_gains_nothing_from_more_links() -> None:
    few, many = (JOBS["VGG-16"].iteration_ms(16, direct(16, degree)) for degree in (4, 8))
    assert few == pytest.approx(many, rel=0.001)
