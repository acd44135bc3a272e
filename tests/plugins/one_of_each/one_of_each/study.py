"""How much faster twice the rate is."""

from typing import Any

from pydantic import Field

from cosim.plugins import Study, StudyRounds, StudyRun, StudyTable


def messages(run: Any) -> int:
    return int(run.messages.num_rows)


class TwiceTheRate(Study):
    """How long a run takes on links of another rate, and how many messages it sends"""

    rate: str = Field("160Gbps", description="the other")

    def ask(self, scenario: Any) -> StudyRounds:
        faster = scenario.with_settings({"topology.rate": self.rate})
        now, then, sent = yield [
            StudyRun("now", scenario),
            StudyRun("then", faster),
            StudyRun("messages", scenario, read=messages),
        ]
        return StudyTable([["now", "then", "messages"], [str(now.end_ps), str(then.end_ps), str(sent)]])
