"""What a design is chosen by: measures of its runs, what is known before, and what follows from both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosim.results.measures import MEASURES, show_value
from cosim.units import PS_PER_S, format_rate, format_size, parse_rate, parse_size, parse_time


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
        Bits per second: of all links, each direction counted; out of an endpoint, in the mean.
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
class Quantity:
    """A number of a design, for people and for comparing.

    ``of`` takes the facts, and the mean over seeds of the measure ``needs`` (0 where it needs none), in which
    it is monotone: so a bound of the one is a bound of the other. ``facts`` are those that it needs.
    """

    text: str
    show: Callable[[float], str]
    read: Callable[[str | float], float]
    of: Callable[[DesignFacts, float], float]
    needs: str = ""
    facts: tuple[str, ...] = ()
    less_is_better: bool = True

    @property
    def sign(self) -> int:
        """1 where less is better, else -1."""
        return 1 if self.less_is_better else -1


def read_number(value: str | float) -> float:
    """A number, also as ``10M``, ``1.5k``.

    Raises
    ------
    ValueError
        It is none.
    """
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number")
    text = str(value).strip().removesuffix("$").strip()
    scale = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1.0)
    try:
        return float(text if scale == 1.0 else text[:-1]) * scale
    except ValueError:
        raise ValueError(f"{value!r} is not a number; write 10e6, or 10M") from None


def _short(value: float, unit: str) -> str:
    for letter, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {letter}{unit}"
    return f"{value:.4g} {unit}".rstrip()


def _in(unit: str) -> Callable[[float], str]:
    return lambda value: _short(value, unit)


def _seconds(iteration_ps: float) -> float:
    return iteration_ps / PS_PER_S


def _per(amount: float, cost: float) -> float:
    return amount / cost if cost else 0.0


def _fact(
    name: str,
    text: str,
    show: Callable[[float], str],
    read: Callable[[str | float], float] = read_number,
) -> Quantity:
    return Quantity(text, show, read, lambda facts, _: float(getattr(facts, name)), facts=(name,))


def _measured(name: str) -> Quantity:
    measure = MEASURES[name]
    reads: dict[str, Callable[[str | float], float]] = {
        "time": lambda value: float(parse_time(value)),
        "bytes": lambda value: float(parse_size(value)),
    }
    return Quantity(
        measure.text,
        lambda value: show_value(name, value),
        reads.get(measure.unit, read_number),
        lambda _, value: value,
        needs=name,
        less_is_better=measure.less_is_better,
    )


QUANTITIES: dict[str, Quantity] = {
    **{name: _measured(name) for name in MEASURES},
    "price": _fact("price", "what the cluster costs, by the table `cost`", _in("$")),
    "power": _fact("power", "what the cluster draws, by the table `cost`", _in("W")),
    "total_rate": _fact("total_rate", "rates of all links, each direction counted", format_rate, parse_rate),
    "endpoint_rate": _fact(
        "endpoint_rate", "rates of all links out of an endpoint, mean", format_rate, parse_rate
    ),
    "endpoints": _fact("endpoints", "how many endpoints the topology has", _in("")),
    "memory": _fact(
        "memory", "bytes on the fullest GPU", format_size, lambda value: float(parse_size(value))
    ),
    "energy": Quantity(
        "energy of an iteration: the cluster's power for as long as it takes",
        _in("J"),
        read_number,
        lambda facts, iteration: facts.power * _seconds(iteration),
        needs="iteration",
        facts=("power",),
    ),
    "tokens_per_s": Quantity(
        MEASURES["tokens_per_s"].text,
        _in("tokens/s"),
        read_number,
        lambda facts, iteration: _per(facts.tokens, _seconds(iteration)),
        needs="iteration",
        facts=("tokens",),
        less_is_better=False,
    ),
    "tokens_per_s_per_dollar": Quantity(
        "tokens a second for each dollar that the cluster costs",
        _in("tokens/s/$"),
        read_number,
        lambda facts, iteration: _per(_per(facts.tokens, _seconds(iteration)), facts.price),
        needs="iteration",
        facts=("tokens", "price"),
        less_is_better=False,
    ),
    "tokens_per_joule": Quantity(
        "tokens for each joule that the cluster draws",
        _in("tokens/J"),
        read_number,
        lambda facts, iteration: _per(facts.tokens, _seconds(iteration) * facts.power),
        needs="iteration",
        facts=("tokens", "power"),
        less_is_better=False,
    ),
}
"""What `cosim search` can be asked for, and what constraints can be of."""
