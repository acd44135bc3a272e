"""Errors get the place in the scenario that led to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cosim.errors import CosimError, InputError, Location, SimulationError
from cosim.plugin_file import plugin_errors


@contextmanager
def at(place: Location | None, *only: type[CosimError]) -> Iterator[None]:
    """Give an error (of ``only`` these classes, where given) the place in the scenario that led to it."""
    try:
        with plugin_errors():
            yield
    except InputError as error:
        if place is None or (only and not isinstance(error, only)):
            raise
        if error.location is not None:
            within = str(error.location) if place.key is None else f"{place.key}: {error.location}"
            place = Location(place.file, place.line, within)
        raise type(error)(error.message, location=place, hint=error.hint) from error
    except SimulationError as error:
        if place is not None and not only:
            error.args = (f"{place}: {error}",)
        raise
