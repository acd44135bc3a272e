"""The compiled part of a congestion control or a load balancer: where it is.

A class has it as ``kernel``, a function of C of five arguments. It is one of these:

- ``"my.c"``, a file beside the class's own, which is compiled when a run first needs it; the function is
  ``my``, or the one that is named: ``("my.c", "function")``. The file begins with ``#include "kernel.h"``,
  which has the records;
- what ``numba.cfunc(Control.numba_signature())`` makes of a function (or that of ``Balancer``), or anything
  else with an ``address``;
- a function pointer of ctypes or cffi, or an address;
- the name of one that is built in: ``"update_dctcp"``, ``"choose_spray"``.

Nobody checks what such a function reads and writes. What it answers is checked as any answer is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from cosim.errors import NetworkError
from cosim.kernel.layout import header, record
from cosim.kernel.library import kernel, pointed_at
from cosim.plugin_file import named_in_file

_CAN_BE = (
    "it can be the name of a C file beside the class ('my.c'), a numba.cfunc, a function pointer of ctypes "
    "or cffi, or an address"
)


def state_width(plugin: Any) -> int:
    """How many state columns a control or a balancer has.

    Raises
    ------
    NetworkError
        More than there is room for.
    """
    if len(plugin.state) > kernel.MOST_STATES:
        raise NetworkError(
            f"{type(plugin).__name__} has {len(plugin.state)} state columns, at most {kernel.MOST_STATES} fit"
        )
    return len(plugin.state)


def address_of_kernel(owner: type) -> int:
    """Where the ``kernel`` of a class is; 0: it has none, and is asked in Python.

    Raises
    ------
    NetworkError
        It is nothing that can be called from C, or a C file that is not there or doesn't compile.
    """
    value: Any = getattr(owner, "kernel", None)
    if value is None:
        return 0
    if (names := _names(value)) is not None:
        return _named(owner, *names)
    address = pointed_at(value)
    if not address:
        what = f"{value!r}, which is no function of C"
        if callable(value):
            what = f"a function of Python ({getattr(value, '__name__', value)}), which the kernel can't call"
        raise NetworkError(f"{owner.__name__}.kernel is {what}; {_CAN_BE}")
    return address


def library_of_kernel(owner: type) -> tuple[Path, str] | None:
    """The shared object that has the ``kernel`` of a class, and the function's name in it, for a program that
    loads it; None: the kernel is no C file.

    Raises
    ------
    NetworkError
        The file is not there.
    InputError
        It doesn't compile, with the compiler's first error.
    """
    names = _names(getattr(owner, "kernel", None))
    if names is None or not names[0].endswith(".c"):
        return None
    from cosim.kernel import plugin

    file, function = names
    return plugin.library(_file_of(owner, file), function), function


def _names(value: Any) -> tuple[str, str] | None:
    """File or built-in function, and function, of a ``kernel`` that is named; None: it is something else."""
    if isinstance(value, str):
        return value, Path(value).stem
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str) for each in value):
        return value
    return None


def _named(owner: type, file: str, function: str) -> int:
    if file.endswith(".c"):
        from cosim.kernel import plugin

        loaded: int = plugin.load(_file_of(owner, file), function)
        return loaded
    known = sorted(name for name, each in header().functions.items() if each.loop and each.returns == "none")
    if file not in known:
        raise NetworkError(
            f"{owner.__name__}.kernel is {file!r}: neither a C file (NAME.c) nor one of {', '.join(known)}"
        )
    address: int = kernel.address(file)
    return address


def _file_of(owner: type, file: str) -> Path:
    path = _folder_of(owner) / file
    if not path.is_file():
        raise NetworkError(f"{owner.__name__}.kernel is {file!r}, but there is no file {path}")
    return path


def _folder_of(owner: type) -> Path:
    """The folder of the class that says what the kernel is, which may be a base."""
    says = next(each for each in owner.__mro__ if "kernel" in vars(each))
    file = named_in_file(says) or getattr(sys.modules.get(says.__module__), "__file__", None)
    # A base in a file beside a plug-in's is known by no name of its own.
    return Path(file or named_in_file(owner) or "").parent


def numba_signature(row: str, more: str) -> Any:
    """The types of a kernel whose rows and further records are these of the header, as numba has them."""
    from numba import types
    from numba.np.numpy_support import from_dtype

    numbers: Any = types.float64
    pointer: Any = types.CPointer
    given = (from_dtype(record(row)), from_dtype(record(more)), numbers, numbers)
    return types.void(types.int64, *map(pointer, given))
