"""What a design is chosen by: measures of its runs, what is known before, and what follows from both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cosim.registry import nearest
from cosim.results.measures import MEASURES, Measured
from cosim.units import PS_PER_S


@dataclass(frozen=True)
class DesignFacts:
    """What is known of a design before it is run.

    Attributes
    ----------
    price
        US dollars.
    power
        Watts.
    total_rate, endpoint_rate
        Bits per second: of all links, each direction counted; out of an endpoint, on average.
    endpoints
        How many.
    memory
        Bytes on the fullest GPU; 0: not known.
    tokens
        That an iteration of all jobs works on; 0: not known.
    """

    price: float = 0.0
    power: float = 0.0
    total_rate: float = 0.0
    endpoint_rate: float = 0.0
    endpoints: int = 0
    memory: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Quantity(Measured):
    """A number of a design.

    ``of`` takes the facts, and the mean over seeds of the measure ``needs`` (0 where it needs none), in which
    it is monotone: so a bound of the one is a bound of the other. ``facts`` are those that it needs.
    """

    of: Callable[[DesignFacts, float], float]
    needs: str = ""
    facts: tuple[str, ...] = ()


def _seconds(iteration_ps: float) -> float:
    return iteration_ps / PS_PER_S


def _per(amount: float, cost: float) -> float:
    return amount / cost if cost else 0.0


def _fact(name: str, text: str, kind: str) -> Quantity:
    return Quantity(text, kind, lambda facts, _: float(getattr(facts, name)), facts=(name,))


def _measured(name: str) -> Quantity:
    measure = MEASURES[name]
    return Quantity(
        measure.text,
        measure.kind,
        lambda _, value: value,
        needs=name,
        less_is_better=measure.less_is_better,
    )


QUANTITIES: dict[str, Quantity] = {
    **{name: _measured(name) for name in MEASURES},
    "price": _fact("price", "what the cluster costs, by the table `cost`", "dollars"),
    "power": _fact("power", "what the cluster draws, by the table `cost`", "watts"),
    "total_rate": _fact("total_rate", "rates of all links, each direction counted", "rate"),
    "endpoint_rate": _fact("endpoint_rate", "rates of all links out of an endpoint, mean", "rate"),
    "endpoints": _fact("endpoints", "how many endpoints the topology has", "count"),
    "memory": _fact("memory", "bytes on the fullest GPU", "bytes"),
    "energy": Quantity(
        "energy of an iteration: the cluster's power for as long as it takes",
        "joules",
        lambda facts, iteration: facts.power * _seconds(iteration),
        needs="iteration",
        facts=("power",),
    ),
    "tokens_per_s": Quantity(
        MEASURES["tokens_per_s"].text,
        "tokens/s",
        lambda facts, iteration: _per(facts.tokens, _seconds(iteration)),
        needs="iteration",
        facts=("tokens",),
        less_is_better=False,
    ),
    "tokens_per_s_per_dollar": Quantity(
        "tokens a second for each dollar that the cluster costs",
        "tokens/s/$",
        lambda facts, iteration: _per(_per(facts.tokens, _seconds(iteration)), facts.price),
        needs="iteration",
        facts=("tokens", "price"),
        less_is_better=False,
    ),
    "tokens_per_joule": Quantity(
        "tokens for each joule that the cluster draws",
        "tokens/J",
        lambda facts, iteration: _per(facts.tokens, _seconds(iteration) * facts.power),
        needs="iteration",
        facts=("tokens", "power"),
        less_is_better=False,
    ),
}
"""What runs, sweeps and searches can be asked for, and what constraints can be of."""


def quantity_of(name: str, facts: DesignFacts, measures: Mapping[str, float]) -> float:
    """A quantity of a run: what was measured of it, or what follows from that and the facts."""
    if name in MEASURES:
        return measures[name]
    quantity = QUANTITIES[name]
    return quantity.of(facts, measures[quantity.needs] if quantity.needs else 0.0)


def check_quantity(name: str) -> None:
    """See that it is one.

    Raises
    ------
    ValueError
        It isn't; says which there are.
    """
    if name not in QUANTITIES:
        raise ValueError(
            f"there is no measure {name!r}{nearest(name, QUANTITIES)}\n  there are: {', '.join(QUANTITIES)}"
        )
