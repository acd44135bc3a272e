"""Results of checks; how a check fails, or is skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Result:
    """One check. ``about`` is its rule, ``detail`` why it failed or was skipped."""

    name: str
    about: str
    verdict: Literal["passed", "failed", "skipped"]
    detail: str = ""
    took_s: float = 0.0


@dataclass(frozen=True)
class Report:
    """What came of all checks; ``print`` shows a line for each."""

    simulator: str
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """No check failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of checks that failed."""
        return tuple(result.name for result in self.results if result.verdict == "failed")

    @property
    def skipped(self) -> tuple[str, ...]:
        """Names of checks that were skipped: of what isn't claimed."""
        return tuple(result.name for result in self.results if result.verdict == "skipped")

    def __str__(self) -> str:
        width = max((len(result.name) for result in self.results), default=0)
        lines = [f"conformance of {self.simulator}"]
        for result in self.results:
            text = result.detail if result.verdict != "passed" else result.about
            lines.append(f"  {result.verdict:<7} {result.name:<{width}}  {text}")
        count = len(self.results) - len(self.failed) - len(self.skipped)
        lines.append(f"{count} passed, {len(self.failed)} failed, {len(self.skipped)} skipped")
        return "\n".join(lines)


class ConformanceError(AssertionError):
    """A network broke a rule of the seam. ``report`` has every check."""

    def __init__(self, report: Report) -> None:
        self.report = report
        broken = [
            f"{result.name} ({result.about}): {result.detail}"
            for result in report.results
            if result.verdict == "failed"
        ]
        super().__init__(
            "\n  ".join([f"{report.simulator} breaks {len(broken)} of {len(report.results)} rules", *broken])
        )


class CheckFailed(Exception):  # noqa: N818 - a check's verdict, caught by the kit
    """A check failed; the text says what was seen and what would be right."""


class CheckSkipped(Exception):  # noqa: N818 - a check's verdict, caught by the kit
    """A check of something that isn't claimed; the text says of what."""


def expect(condition: bool, text: str) -> None:
    """Fail the check unless ``condition``.

    Raises
    ------
    CheckFailed
        With the text.
    """
    if not condition:
        raise CheckFailed(text)
