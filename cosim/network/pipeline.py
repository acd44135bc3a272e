"""How numba compiles our loops: what its own way computes, for two thirds of the time.

Most of what compiling takes is Python: numba's own passes. Ours leave out what loops over arrays never
need, and do once what numba does again and again. What a function computes doesn't change by it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.inline_closurecall import InlineWorker
from numba.core.typed_passes import NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.types import Dispatcher, Type, intp
from numba.core.typing.context import Context
from numba.core.untyped_passes import (
    FixupArgs,
    InlineInlinables,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)
from numba.np import arrayobj

_arrayobj = cast("Any", arrayobj)


def _passes(name: str, *passes: Any) -> Any:
    made = cast("Any", PassManager)(name)
    for one in passes:
        made.add_pass(one, one.__name__)
    made.finalize()
    return made


def _reading(_: Any) -> Any:
    return _passes("once", TranslateByteCode, FixupArgs, IRProcessing, _Inlining)


class _OwnBlock(ir.Block):
    """A block of a function that was read for one place only: what numba copies twice need not be copied."""

    def __deepcopy__(self, memo: Any) -> _OwnBlock:
        return self


class _InlineReader(InlineWorker):
    """Reads a function for the place where it is to stand."""

    def run_untyped_passes(self, func: Any, enable_ssa: bool = False) -> Any:
        """The function's representation, which nobody else has."""
        self._compiler_pipeline: Any = _reading
        made = super().run_untyped_passes(func, enable_ssa)
        for block in made.blocks.values():
            block.__class__ = _OwnBlock
        return made


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inlining(InlineInlinables):
    """Writes what is called *once* (see :func:`cosim.network.jit.once`) into its caller."""

    _name = "cosim_inlining"

    def _do_work(self, state: Any, work: Any, block: Any, i: int, call: Any, worker: Any) -> bool:
        worker.__class__ = _InlineReader
        return bool(super()._do_work(state, work, block, i, call, worker))


class _Typing(Context):
    """A typing context that remembers which signature an operator or a builtin has for which arguments.

    numba tries some ten templates for each ``a[i]`` and each ``a < b``.
    """

    known: dict[Any, Any]

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature, asked for once for each combination of types."""
        # Our own functions aren't asked twice, and an argument may be a value: a[0].
        if kws or isinstance(func, Dispatcher) or not all(isinstance(one, Type) for one in args):
            return super().resolve_function_type(func, args, kws)
        key = func, *args
        if key not in self.known:
            found = super().resolve_function_type(func, args, kws)
            if found is None:
                return None
            self.known[key] = found
        return self.known[key]


def _remembering(context: Any) -> _Typing:
    """The context itself, as far as it goes: it shares all that the other knows and learns."""
    made: Any = object.__new__(_Typing)
    made.__dict__ = context.__dict__
    vars(made).setdefault("known", {})
    return cast("_Typing", made)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Types(NopythonTypeInference):
    _name = "cosim_types"

    def run_pass(self, state: Any) -> bool:
        whole, state.typingctx = state.typingctx, _remembering(state.typingctx)
        done = super().run_pass(state)
        state.typingctx = whole
        return bool(done)


class _LinkedCode(JITCodeLibrary):
    """Code that only other code of ours calls: there to be linked in, no machine code is made of it."""

    @property
    def codegen(self) -> Any:
        """Stands in for what would have the environment of a function called from Python."""
        return self

    def set_env(self, *_: Any) -> None:
        """Nobody calls from Python."""

    def get_pointer_to_function(self, name: str) -> int:
        """None."""
        del name
        self._ensure_finalized()
        return 0

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """What it is linked into is optimized as a whole."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Whole(JITCodeLibrary):
    """Code that is called from outside, optimized in one go: numba's passes over each function, and its cheap
    one over the whole, are there to count fewer references. At level 1 our loops run as fast as at 3, where
    unrolling and vectorizing find nothing in them.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager(opt=1)
        passes.run(self._final_module, builder)


def _place(context: Any, builder: Any, kind: Any, index: Any, _: Any) -> Any:
    return context.cast(builder, index, kind, intp)


@contextmanager
def _from_the_front() -> Iterator[None]:
    """Have indices count from the front, as all of ours do: numba asks of each whether it is negative and so
    counts from the end, which is a shift and a multiplication more for each access to a record.
    """
    kept, _arrayobj.fix_integer_index = _arrayobj.fix_integer_index, _place
    try:
        yield
    finally:
        _arrayobj.fix_integer_index = kept


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "cosim_lowering"

    def run_pass(self, state: Any) -> bool:
        is_part = state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper
        kind = _LinkedCode if is_part else _Whole
        state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()  # as numba does, for the cache on disk
        with _from_the_front():
            return bool(super().run_pass(state))


class Pipeline(CompilerBase):
    """What numba does to a function, without what loops over arrays never need (closures, literal arguments,
    array expressions, reference counts).
    """

    def define_pipelines(self) -> list[Any]:
        """The passes, in order."""
        return [
            _passes(
                "cosim",
                TranslateByteCode,
                FixupArgs,
                IRProcessing,
                _Inlining,
                ReconstructSSA,
                _Types,
                PreLowerStripPhis,
                _PartLowering,
                NoPythonBackend,
            )
        ]

    def _compile_core(self) -> Any:
        # Nearly all that is made here stays to the end: looking for garbage in it is a sixth of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collects:
                gc.enable()
