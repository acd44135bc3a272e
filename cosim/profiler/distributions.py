"""What no profile can know, as an argument: experts of tokens, lengths of answers, acceptance of drafts.

The same words on the command line and in ``cosim.profile``:

=====================  ==============================================================================
``512``                each the same
``uniform:64:512``     all between as likely; whole numbers, of lengths
``geometric:200``      lengths: as likely to end after each token, 200 on average
``lognormal:200:0.8``  lengths: median 200, the logarithm's standard deviation 0.8
``zipf:1.1``           lengths: k in proportion to k ** -1.1; of experts, the k-th most popular
``even``               experts: each as many
``FILE``               its numbers, in turn; of experts a line of counts, in turn
=====================  ==============================================================================

Units: lengths are tokens, acceptance is a probability. What is drawn depends on the seed alone.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, cycle
from pathlib import Path
from random import Random

from cosim.errors import InputError, Location

_NUMBERS = {"uniform": 2, "geometric": 1, "lognormal": 2, "zipf": 1}
"""How many numbers follow each word."""


@dataclass(frozen=True)
class Unknown:
    """One of the arguments: its words and what a number of it may be."""

    name: str
    words: tuple[str, ...]
    lowest: float
    highest: float
    bounds: str
    right: str


LENGTHS = Unknown(
    "lengths", ("uniform", "geometric", "lognormal", "zipf"), 1, math.inf, "1 or more",
    "512, uniform:64:512, geometric:200, lognormal:200:0.8, zipf:1.1 or a file of lengths, in tokens",
)  # fmt: skip
ACCEPTANCE = Unknown(
    "acceptance", ("uniform",), 0, 1, "0 to 1", "0.7, uniform:0.5:0.9 or a file of probabilities"
)
ROUTING = Unknown(
    "routing", ("zipf",), 0, math.inf, "0 or more", "even, zipf:1.1 or a file of counts, a line a layer"
)


class Distribution:
    """Lengths or acceptances as they were asked for; ``seed`` says which are drawn."""

    def __init__(self, said: str, of: Unknown, seed: int = 0) -> None:
        word, numbers = parsed(said, of)
        self._draw = _drawing(word, numbers, Random(f"{of.name} {seed}"))
        self.said = shown(said)

    def length(self, most: int) -> int:
        """A length of 1 to ``most``."""
        return max(1, min(most, round(self._draw(most))))

    def probability(self) -> float:
        """An acceptance."""
        return self._draw(1)


def check(routing: str, lengths: str, acceptance: str) -> None:
    """Refuse what can't be meant, before anything is started.

    Raises
    ------
    InputError
        Which argument (of a file: which line), the value, and what would be right.
    """
    if is_file(routing):
        read_counts(routing)
    elif routing != "even":
        parsed(routing, ROUTING)
    for said, of in ((lengths, LENGTHS), (acceptance, ACCEPTANCE)):
        if said:
            parsed(said, of)


def parsed(said: str, of: Unknown) -> tuple[str, list[float]]:
    """The word (of a file ``file``, of a number alone ``uniform``) and its numbers.

    Raises
    ------
    InputError
        As ``check``.
    """
    if is_file(said):
        rows = _rows(said, of.name)
        for line, row in rows:
            for number in row:
                if not of.lowest <= number <= of.highest:
                    raise InputError(
                        f"{number:g} is not {of.bounds}", location=Location(said, line), hint=of.right
                    )
        return "file", [number for _, row in rows for number in row]
    word, *texts = said.split(":")
    try:
        numbers = [float(text) for text in (texts or [word])]
    except ValueError:
        numbers = []
    plain = not texts and len(numbers) == 1 and of is not ROUTING
    if not plain and (word not in of.words or len(numbers) != _NUMBERS.get(word)):
        raise InputError(f"{of.name} {said!r}: neither a file nor a distribution", hint=of.right)
    wrong = _wrong(word, numbers, of)
    if wrong:
        raise InputError(f"{of.name} {said!r}: {wrong}", hint=of.right)
    return ("uniform", numbers * 2) if plain else (word, numbers)


def _wrong(word: str, numbers: list[float], of: Unknown) -> str:
    """What is wrong with numbers, if anything."""
    if not all(map(math.isfinite, numbers)):
        return "its numbers have to be finite"
    bounded = numbers[:1] if word == "lognormal" else [] if word == "zipf" else numbers
    outside = [number for number in bounded if not of.lowest <= number <= of.highest]
    if outside:
        return f"{outside[0]:g} is not {of.bounds}"
    if word in ("zipf", "lognormal") and numbers[-1] < 0:
        return f"{numbers[-1]:g} is not 0 or more"
    if word == "uniform" and numbers[0] > numbers[1]:
        return f"{numbers[0]:g} is more than {numbers[1]:g}"
    return ""


def _drawing(word: str, numbers: list[float], random: Random) -> Callable[[int], float]:
    """Gives a number each time it is called, with the most that is of use."""
    if word == "file":
        turn = cycle(numbers)
        return lambda _: next(turn)
    if word == "lognormal":
        return lambda _: numbers[0] * math.exp(random.gauss(0, numbers[1]))
    if word == "geometric":
        goes_on = 1 - 1 / numbers[0]
        return lambda _: 1 + math.log(1 - random.random()) // math.log(goes_on) if goes_on else 1
    if word == "zipf":
        return lambda most: 1 + bisect_left(_zipf(numbers[0], most), random.random())
    low, high = numbers
    if low == high:
        return lambda _: low
    if high > 1:
        return lambda _: random.randint(round(low), round(high))
    return lambda _: random.uniform(low, high)


@cache
def _zipf(exponent: float, most: int) -> list[float]:
    """Up to which share of all 1, 2, ... ``most`` go."""
    sums = list(accumulate(k**-exponent for k in range(1, most + 1)))
    return [each / sums[-1] for each in sums[:-1]]


def is_file(said: str) -> bool:
    """Whether a file is meant, and not a word."""
    return Path(said).is_file()


def placed(said: str, base: Path) -> str:
    """The same, a file's path from ``base`` on made absolute."""
    return str((base / said).absolute()) if said and (base / said).is_file() else said


def shown(said: str) -> str:
    """A word as it is, of a file its name."""
    return Path(said).name if is_file(said) else said


def read_counts(path: str) -> list[list[float]]:
    """Counts of experts, a list for each line.

    Raises
    ------
    InputError
        Something that is no count, or no line at all.
    """
    rows = _rows(path, "counts")
    for line, row in rows:
        if min(row) < 0 or not 0 < sum(row) < math.inf:
            raise InputError(
                "counts are 0 or more, and not all 0", location=Location(path, line), hint=ROUTING.right
            )
    return [row for _, row in rows]


def _rows(path: str, what: str) -> list[tuple[int, list[float]]]:
    rows = [(number, _numbers(text, path, number, what)) for number, text in _lines(path)]
    if not rows:
        raise InputError(f"no {what} in it", location=Location(path))
    return rows


def _lines(path: str) -> Iterator[tuple[int, str]]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't be read: {error}", location=Location(path)) from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _numbers(text: str, path: str, line: int, what: str) -> list[float]:
    try:
        return [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(f"{text.strip()!r} is no list of {what}", location=Location(path, line)) from None
