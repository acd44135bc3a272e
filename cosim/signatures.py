"""What a plug-in should have been, in a line: the methods that its base leaves to it, as they are written."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1000)  # a sweep asks for each of its runs
def wrong_methods(kind: Any, base: Any) -> tuple[str, ...]:
    """Abstract methods of ``base`` that ``kind`` lacks, or has with other arguments, as they should be."""
    found = [f"{_signature(kind, name)}, which it lacks" for name in sorted(kind.__abstractmethods__)]
    others = sorted(base.__abstractmethods__ - kind.__abstractmethods__)
    found += [
        f"{_signature(base, name)}, and has {_signature(kind, name)}"
        for name in others
        if not _takes(getattr(kind, name), getattr(base, name))
    ]
    return tuple(found)


def what_to_write(base: Any, found: Any) -> str:
    """What to write in place of ``found``, which has not that base."""
    name = found.__name__ if isinstance(found, type) else "Mine"
    if isinstance(found, type) and "build" in base.__abstractmethods__:
        made = inspect.signature(base.build).return_annotation
        if made in (each.__name__ for each in found.__mro__):
            return (
                f"it is what build gives\n"
                f"  from cosim.plugins import {base.__name__}\n\n"
                f"  class {name}Spec({base.__name__}):\n"
                f'      """What it is, in a line"""\n\n'
                f"      def build(self, context):\n"
                f"          return {name}()"
            )
    methods = [_signature(base, each) for each in sorted(base.__abstractmethods__)] + base.lacks()
    wanted = f" with {', '.join(methods)}" if methods else ""
    return f"write class {name}({base.__name__}){wanted}; {base.__name__} is in cosim.plugins"


def _signature(kind: type, name: str) -> str:
    """``build(self, context: Context) -> NetworkSimulator``."""
    text = str(inspect.signature(getattr(kind, name))).replace("'", "")
    return f"{name}{text}"


def _takes(method: Any, contract: Any) -> bool:
    """Whether ``method`` can be called as ``contract`` says."""
    parameters = inspect.signature(contract).parameters.values()
    try:
        inspect.signature(method).bind(
            *(None for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD),
            **{one.name: None for one in parameters if one.kind is one.KEYWORD_ONLY},
        )
    except TypeError:
        return False
    return True
