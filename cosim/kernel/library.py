"""The shared object: found, checked, and called. The one file that knows ctypes."""

from __future__ import annotations

import ctypes
import operator
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import SimulationError
from cosim.kernel.layout import Parameter, header

_HOW_TO_BUILD = "build it by `python -m cosim.kernel.build`, or install cosim again by `pip install .`"
_NO_MEMORY = -(2**63)
_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__  # of every function pointer of ctypes
_RETURNS = {"int": ctypes.c_int64, "double": ctypes.c_double, "none": None}


class KernelLibraryError(SimulationError):
    """The kernel can't be loaded, or ran out of memory."""


class KernelLibrary:
    """Functions of the header as methods, its constants as attributes.

    Where the header has a container, a :class:`~cosim.kernel.columns.Columns` is given; where it has an
    array, a numpy array of that type in one piece, or bytes for int8 that are read. A call lets other threads
    run; what it is given is the caller's to keep from them.
    """

    def __init__(self) -> None:
        self._loaded: ctypes.CDLL | None = None

    def __getattr__(self, name: str) -> Any:
        known = header()
        if name in known.constants:
            made: Any = known.constants[name]
        else:
            try:
                function = known.function(name)
            except KeyError:
                raise AttributeError(f"the kernel has no {name}") from None
            if function.loop:
                raise AttributeError(f"{name} is called by its address")
            made = _callable(self.load(), name, function.parameters, function.returns)
        vars(self)[name] = made
        return made

    def why_not(self) -> str | None:
        """Why it can't be used, and how to build it, in a line; None: it can."""
        try:
            self.load()
        except KernelLibraryError as error:
            return str(error)
        return None

    def load(self) -> ctypes.CDLL:
        """The shared object.

        Raises
        ------
        KernelLibraryError
            It is not there, can't be loaded, or is of another version.
        """
        if self._loaded is None:
            self._loaded = _loaded()
            self.__getattr__("release_memory")  # at the end of the process, it couldn't be looked up any more
        return self._loaded

    def address(self, name: str) -> int:
        """Where a loop is."""
        return _address(getattr(self.load(), name))


def pointed_at(value: object) -> int:
    """The address of a function of C that somebody made: a ``numba.cfunc`` (or anything with ``address``), a
    function pointer of ctypes or cffi, or the address itself; 0: it is none of these.
    """
    if isinstance(value, _FUNCTION):
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    if type(value).__module__ == "_cffi_backend":
        import _cffi_backend

        try:
            return int(_cffi_backend.FFI().cast("uintptr_t", value))
        except TypeError:  # a struct, or a function of a module that cffi compiled, which is no pointer
            return 0
    value = getattr(value, "address", value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def open_library(file: Path) -> ctypes.CDLL:
    """A shared object, which stays to the end of the process.

    Raises
    ------
    OSError
        It can't be loaded.
    """
    # The system would load it, and end this process at its first page that isn't there.
    if not _is_whole(file):
        raise OSError(f"{file} is cut short")
    return ctypes.CDLL(str(file))


def function_in(library: ctypes.CDLL, name: str) -> int:
    """The address of a function; 0: there is none of this name."""
    return _address(getattr(library, name)) if hasattr(library, name) else 0


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def _loaded() -> ctypes.CDLL:
    from cosim.kernel.build import FILE, is_wanted, number  # it is run as a program, too, which comes first

    if not is_wanted():
        raise KernelLibraryError("the kernel is not used, as COSIM_KERNEL is none; unset it")
    file = Path(os.environ.get("COSIM_KERNEL") or FILE)
    if not file.is_file():
        raise KernelLibraryError(f"the kernel is not built, there is no {file}; {_HOW_TO_BUILD}")
    try:
        found = open_library(file)
    except OSError as error:
        raise KernelLibraryError(
            f"the kernel can't be loaded: {' '.join(str(error).split())}; {_HOW_TO_BUILD}"
        ) from error
    if not hasattr(found, "abi"):
        raise KernelLibraryError(f"{file} is no kernel of cosim's; {_HOW_TO_BUILD}")
    found.abi.restype = ctypes.c_int64
    if found.abi() != number():
        raise KernelLibraryError(
            f"the kernel {file} was built from other sources than this cosim's; {_HOW_TO_BUILD}"
        )
    return found


def _is_whole(file: Path) -> bool:
    """Whether an ELF file is as long as it says itself: the table of its sections lies at its end."""
    with file.open("rb") as opened:
        start = opened.read(64)
        size = opened.seek(0, os.SEEK_END)
    if len(start) < 64 or start[:5] != b"\x7fELF\x02":
        return True  # the system's to judge
    (table,), (each, count) = struct.unpack_from("=Q", start, 40), struct.unpack_from("=HH", start, 58)
    return bool(table + each * count <= size)


def _callable(
    library: ctypes.CDLL, name: str, parameters: tuple[Parameter, ...], returns: str
) -> Callable[..., Any]:
    """A function of the kernel, which checks what it is given, and raises where memory was short."""
    call = getattr(library, name)
    call.restype = _RETURNS[returns]
    call.argtypes = [_argument(name, one) for one in parameters]

    def called(*given: Any) -> Any:
        try:
            result = call(*given)
        except ctypes.ArgumentError as error:
            plain = [int(one) if isinstance(one, np.integer | np.bool_) else one for one in given]
            if any(map(operator.is_not, plain, given)):  # numbers of numpy's are no pointers
                return called(*plain)
            # Ctrl-C while arguments were looked at: ctypes makes one error of whatever is raised there.
            if "KeyboardInterrupt" in str(error):
                raise KeyboardInterrupt from None
            raise
        if result == _NO_MEMORY:
            raise KernelLibraryError("out of memory in the kernel")
        return result

    return called


def _argument(function: str, parameter: Parameter) -> Any:
    if parameter.kind == "container":
        return _container(function, parameter.of)
    if parameter.kind == "array":
        assert parameter.dtype is not None
        return _array(function, parameter.dtype, parameter.constant)
    # A whole number goes where a pointer would, which ctypes takes half the time for.
    return {"int": ctypes.c_void_p, "double": ctypes.c_double}[parameter.kind]


def _container(function: str, of: str) -> Any:
    class ContainerArgument:
        @staticmethod
        def from_param(columns: Any) -> Any:
            if columns.container != of:
                raise TypeError(f"{function} takes {of}, not {columns.container}")
            return columns.pointer

    return ContainerArgument


def _array(function: str, dtype: np.dtype[Any], constant: bool) -> Any:
    class Array:
        @staticmethod
        def from_param(array: NDArray[Any]) -> Any:
            if array.dtype is dtype or array.dtype == dtype:
                if array.flags.writeable:
                    return _START.from_buffer(array)  # a fraction of what `ctypes.data` takes
                if constant and array.flags.c_contiguous:
                    return array.ctypes.data_as(ctypes.c_void_p)
            what = "a constant" if not array.flags.writeable else str(array.dtype)
            raise TypeError(f"{function} takes {dtype} in one piece, not {what}")

    class ArrayOrBytes:
        @staticmethod
        def from_param(text: NDArray[Any] | bytes) -> Any:
            return ctypes.c_char_p(text) if isinstance(text, bytes) else Array.from_param(text)

    return ArrayOrBytes if constant and dtype == np.int8 else Array


_START: Any = ctypes.c_byte * 0


class _KernelMemory(ctypes.Array[ctypes.c_byte]):
    """Memory from an address on, however much; ``owner`` keeps it."""

    _type_ = ctypes.c_byte
    _length_ = 2**62
    owner: object


def memory(owner: object, address: int, dtype: np.dtype[Any], rows: int) -> NDArray[Any]:
    """A view of the kernel's memory, which is good until the kernel is called again."""
    if not rows:
        return np.empty(0, dtype)
    place: Any = _KernelMemory.from_address(address)
    place.owner = owner
    made: NDArray[Any] = np.frombuffer(place, dtype, rows)
    return made


def move(to: int, source: int, size: int) -> None:
    """Copy so many bytes."""
    ctypes.memmove(to, source, size)


def pointer(address: int) -> ctypes.c_void_p:
    """An address as functions of the kernel take it."""
    return ctypes.c_void_p(address)


kernel = KernelLibrary()
"""The kernel."""
