"""What a scenario says of an event: a link, a node or a rank that fails, slows down and comes back."""

from __future__ import annotations

from pydantic import Field, model_validator

from cosim.spec import LongPs, RateBps, Spec


class Event(Spec):
    """A link, a node or a rank that fails, slows down and comes back: once, every so often, or drawn"""

    link: int | str = Field(
        "",
        description="its number or its name, 'leaf0 -> spine1' (every link from one to the other), or "
        "'leaf0 <-> spine1' for both directions; * and ? stand for any text. Of several, each is drawn alone",
    )
    node: str = Field("", description="a node instead, by its name: all of its links, both ways")
    rank: int | str | None = Field(None, description="a rank instead, or '*' for each one")
    job: str = Field("", description="whose rank, by the job's name; omitted: the only job's")
    down: bool = Field(False, description="the link or node is dead")
    rate: RateBps | None = Field(None, description="the link, or each of the node's, has this rate")
    slow: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="the rank's computations take so many times as long"
    )
    fails: bool = Field(
        False, description="the rank is gone, and its job starts again from its last checkpoint (training)"
    )
    cause: str = Field(
        "", description="of failures of ranks: how the page calls them; omitted: event 0, 1 ..."
    )
    at: LongPs = Field(0, ge=0, description="when, or from when on it is drawn")
    until: LongPs | None = Field(None, gt=0, description="when all is as before; omitted: never")
    every: LongPs | None = Field(None, gt=0, description="again so long after it began, and so on")
    times: int | None = Field(None, ge=1, description="so often in all; omitted: as long as the run lasts")
    mtbf: LongPs | None = Field(
        None,
        gt=0,
        description="drawn: mean time, exponential, until it happens, and from its end until it does again",
    )
    repair: LongPs | None = Field(
        None,
        gt=0,
        description="drawn: how long it lasts each time; of a rank that fails: until its job can start again",
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> Event:
        for wrong in (self._what(), self._when()):
            if wrong:
                raise ValueError(wrong)
        return self

    def _what(self) -> str:
        """What is wrong with what it says that happens; empty: nothing."""
        given = [name for name in ("link", "node", "rank") if name in self.model_fields_set]
        if len(given) != 1:
            this = " and ".join(given) or "none"
            return f"an event is of a link, a node or a rank, one of them; this has {this}"
        happens = [name for name in ("down", "rate", "slow", "fails") if getattr(self, name)]
        of_rank = given == ["rank"]
        can = ("slow", "fails") if of_rank else ("down", "rate")
        if len(happens) != 1 or happens[0] not in can:
            what = "slow: 1.3 or fails: true" if of_rank else "down: true or rate: 50Gbps"
            return f"of a {given[0]}, say what happens: {what}; this has {' and '.join(happens) or 'neither'}"
        if self.slow == 1:
            return "slow: 1 changes nothing"
        if self.job and not of_rank:
            return "job is for events of a rank"
        if self.cause and not self.fails:
            return "cause is for ranks that fail"
        return ""

    def _when(self) -> str:
        """What is wrong with when it says that it happens; empty: nothing."""
        if self.until is not None and self.until <= self.at:
            return "until is before at: it ends after it began"
        if self.fails:
            return self._when_it_fails()
        if self.mtbf is not None:
            if self.until is not None or self.every is not None:
                return "an event that is drawn (mtbf) has a repair, neither until nor every"
            if self.repair is None:
                return "an event that is drawn (mtbf) needs a repair: how long it lasts"
            return ""
        if self.repair is not None:
            return "repair is for events that are drawn (mtbf); others have until"
        if self.every is None:
            return "times is for events that happen again: every or mtbf" if self.times is not None else ""
        if self.until is None or self.until - self.at >= self.every:
            return "an event that happens again (every) has an until, less than that after at"
        return ""

    def _when_it_fails(self) -> str:
        if self.until is not None:
            return "a rank that fails has a repair, no until: its job starts again"
        if self.mtbf is not None and self.every is not None:
            return "a failure comes every so often, or is drawn (mtbf), not both"
        if self.times is not None and self.mtbf is None and self.every is None:
            return "times is for events that happen again: every or mtbf"
        return ""

    def uses_seed(self) -> bool:
        """Where it is drawn."""
        return self.mtbf is not None
