"""How loops are compiled: cached on disk, without reference counting.

Compiled functions here work on arrays that Python keeps alive, and never allocate. So numba's reference
counts are switched off (``_nrt``); with them, the congestion-aware loop took 20 times as long. There is
no fastmath: results are the same on any machine.

numba's cache asks whether the file of a function changed, but not those of the functions that were
compiled into it. Here the cache of each function also depends on every file of this room, so that an
edit in ``calendar`` can't leave an old calendar behind in the loop of ``aware``.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int64
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit
from numba import types as numba_types
from numba.extending import intrinsic

from cosim.network import twins
from cosim.network.compile_turns import in_turns
from cosim.network.pipeline import Pipeline
from cosim.network.tiers import Tiered, is_due, is_loop_interpreted
from cosim.topology.lean import load_without_compiler

_F = TypeVar("_F", bound=Callable[..., Any])


_OPTIONS: dict[str, Any] = {
    "cache": True,
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "pipeline_class": Pipeline,
}
_PART = _OPTIONS | {"no_cpython_wrapper": True, "cache": False}
"""Of what is only called by what is compiled, and lies in the cache as a part of that."""


def compiled(function: _F) -> _F:
    """Compile a function that is called from Python, or seldom; where it isn't worth it, interpret it."""
    made = in_turns(_watched(cast("Any", njit)(**_OPTIONS)(function)))
    made.__class__ = Tiered
    return cast("_F", _for_any_integer(made))


def inlined(function: _F) -> _F:
    """Compile a small function into its callers, all of them compiled: it can't be called from Python.

    The way in from Python would be a good part of what there is to compile; without it, a call from there
    ends the process.
    """
    made = cast("Any", njit)(forceinline=True, no_cpython_wrapper=True, **_OPTIONS | {"cache": False})(
        function
    )
    return cast("_F", _for_any_integer(_watched(made)))


def internal(function: _F) -> _F:
    """Compile a function that only compiled code calls, as a function of its own: for what is large, or used
    in many places. As with :func:`inlined`, a call from Python ends the process.
    """
    return cast("_F", _for_any_integer(cast("Any", njit)(**_PART)(function)))


def once(function: _F) -> _F:
    """Compile a function as if it were written in its only caller: nothing of it is compiled by itself."""
    return cast("_F", cast("Any", njit)(inline="always", **_OPTIONS)(function))


def _for_any_integer(dispatcher: Any) -> Any:
    """Have compiled callers give signed integers of any width, and literals, as 64 bits: one function is
    compiled where it would be one for each width. Unsigned ones, which wrap round, stay as they are.
    """
    given = dispatcher.get_call_template

    def template(arguments: Any, named: Any) -> Any:
        return given(tuple(map(_widened, arguments)), {name: _widened(kind) for name, kind in named.items()})

    dispatcher.get_call_template = template
    return dispatcher


def _widened(kind: Any) -> Any:
    plain = cast("Any", numba_types).unliteral(kind)
    return numba_types.int64 if plain in numba_types.signed_domain else kind


@cache
def compiled_for(function: Callable[..., None], signature: Any) -> Any:
    """A function for :func:`call_at`, which takes its ``address``; compiled once a process.

    Cached on disk where it is one of ours; others may call functions of files that nobody watches.
    """
    made = _by_address(function, signature)
    made.compile()
    return made


def is_missing(function: Callable[..., Any], signature: Any) -> bool:
    """Whether :func:`compiled_for` would have to compile it, and would keep it on disk."""
    made = _by_address(function, signature)
    if not hasattr(made._cache, "_index_key"):
        return False
    key = made._cache._index_key(made._sig, made._targetdescr.target_context.codegen())
    return key not in made._cache._cache_file._load_index()


def begins_interpreted(loop: Callable[..., Any]) -> bool:
    """Whether a loop, for :func:`compiled_for`, is interpreted at first, as none of it is kept yet."""
    return is_loop_interpreted(_kept_loops(loop))


@cache
def _kept_loops(loop: Callable[..., Any]) -> Any:
    """Numba's cache on disk of what is compiled of a loop."""
    return _by_address(loop, numba_types.void())._cache


def is_ours(function: Callable[..., Any] | None) -> bool:
    """Whether a function is none of a plug-in's."""
    plain = getattr(function, "py_func", function)
    return plain is None or plain.__module__.startswith("cosim.")


def _by_address(function: Callable[..., Any], signature: Any) -> Any:
    from numba.core.ccallback import CFunc

    plain, ours = getattr(function, "py_func", function), is_ours(function)
    more: dict[str, Any] = {"pipeline_class": Pipeline} if ours else {}
    types = signature.args, signature.return_type
    made = CFunc(plain, types, locals={}, options={"_nrt": False, "error_model": "numpy"}, **more)
    if ours:
        made.enable_caching()
        in_turns(_watched(made))
    return made


def _caller(returns: Any) -> Any:
    """An intrinsic that calls what :func:`compiled_for` made with a tuple of arguments, from compiled code
    that need not be compiled anew for each function.
    """

    def call(context: Any, address: Any, arguments: Any) -> Any:  # noqa: ARG001
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at, packed = values
            types = [context.get_value_type(one) for one in signature.args[1].types]
            function = ir.FunctionType(context.get_value_type(signature.return_type), types)
            parts = [builder.extract_value(packed, k) for k in range(len(types))]
            found = builder.call(builder.inttoptr(at, function.as_pointer()), parts)
            return context.get_dummy_value() if returns is numba_types.void else found

        return returns(address, arguments), code

    return cast("Any", intrinsic)(call)


def _word_at(context: Any, address: Any) -> Any:  # noqa: ARG001
    """The integer of 64 bits at an address."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return builder.load(builder.inttoptr(values[0], ir.IntType(64).as_pointer()))

    return numba_types.int64(numba_types.int64), code


word_at = cast("Any", intrinsic)(_word_at)
twins.means(word_at, lambda address: c_int64.from_address(address).value)

call_at = _caller(numba_types.void)
ask_at = _caller(numba_types.int64)
"""Returns the integer that the function does."""
twins.means(call_at)
twins.means(ask_at)


def _watched(dispatcher: Any) -> Any:
    cache = getattr(dispatcher, "_cache", None)
    index = getattr(cache, "_cache_file", None)
    if index is not None:
        load_without_compiler(cache)
        function = getattr(dispatcher, "py_func", None) or dispatcher._pyfunc  # a CFunc's is private
        in_engine = function.__module__.startswith("cosim.engine")
        index._source_stamp = (index._source_stamp, _sources("engine" if in_engine else "network"))
    return dispatcher


_ENGINE = (
    "state",
    "heap",
    "ranks",
    "rank_columns",
    "chunks",
    "collectives",
    "messages",
    "flows",
    "counters",
    "loop",
    "joint",
    "program_columns",
    "ports",
)


@lru_cache
def _sources(user: str) -> tuple[tuple[str, int, int], ...]:
    """(name, time, size) of this room's files with compiled functions, and the engine's for the engine's;
    controls, each used by itself alone, left out.
    """
    room = Path(__file__).parent
    files = sorted([*room.glob("*.py"), *room.glob("congestion/*.py"), *room.glob("balancing/*.py")])
    if user == "engine":
        files += [room.parent / "engine" / f"{name}.py" for name in _ENGINE]
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


@inlined
def is_enough() -> bool:
    """Whether to leave a loop, that it may be compiled: asked each turn, and never true of what is."""
    return False


twins.means(is_enough, is_due)
