"""Each job by itself: how much slower the others make it."""

from __future__ import annotations

from statistics import fmean

from cosim.experiment.alone import jobs_alone
from cosim.experiment.scenario import Scenario
from cosim.experiment.studies.contract import Study, StudyRounds, StudyRun
from cosim.results.alone import JobsAlone


class AloneStudy(Study):
    """Each job also by itself: slowdowns and Jain's index"""

    def ask(self, scenario: Scenario) -> StudyRounds:
        """Ask for the scenario, and each of its jobs."""
        numbers = jobs_alone(scenario)
        runs = [StudyRun(f"{name} by itself", scenario, job=job) for job, name in numbers.items()]
        together, *each = yield [StudyRun(scenario.name, scenario), *runs]
        if together is None or None in each:
            raise KeyboardInterrupt
        jobs = [summary.jobs[0] for summary in each]
        return JobsAlone(together, {job.name: fmean(job.iteration_ps) for job in jobs if job.iteration_ps})
