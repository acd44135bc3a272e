"""Many arrays as one argument of compiled code: a pointer to their addresses and shapes.

A compiled loop works on some fifty arrays. Numba would take each of them apart, in every function that is
handed them: most of what there was to compile, and most of the time of a call from Python. So they go as one
pointer, to a table that has the address and the shape of each, and compiled code loads what it uses.

A subclass names its arrays by annotations::

    class Calendar(Arrays):
        events: Records
        heap: Records

and reads the same in Python and in compiled code: ``calendar.events[k].cause``. Arrays are C-contiguous; a
field may hold further :class:`Arrays`. In Python an object holds its arrays alive. Where one of them grows,
it is told of the new one (:meth:`Arrays.put`) between two calls of compiled code, which doesn't write to the
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from operator import is_, itemgetter
from typing import Any, ClassVar, Self, cast

import numpy as np
from llvmlite import ir
from numba import extending, typeof, types
from numba.core import cgutils, imputils
from numba.core.typing import templates
from numba.np import arrayobj

from cosim.network.described import MOST_WORDS, describe
from cosim.network.growing import address_of
from cosim.network.twins import View

# Numba has no types of its own.
_arrayobj, _cgutils, _extending = cast("Any", arrayobj), cast("Any", cgutils), cast("Any", extending)
_imputils, _templates = cast("Any", imputils), cast("Any", templates)


class Arrays:
    """Base of what compiled code is handed; see the module's text.

    Attributes
    ----------
    address
        Where the table is.
    """

    _names: ClassVar[tuple[str, ...]] = ()
    _fields_of: ClassVar[itemgetter[Any]]
    _parts: ClassVar[tuple[str, ...] | None] = None  # that are Arrays themselves, as the first object has it
    address: int
    _numba_type_: Any

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._names = tuple(cls.__annotations__)
        cls._fields_of = itemgetter(*cls._names)
        cls._parts = None

    def __init__(self, *arrays: Any, **named: Any) -> None:
        names, held = self._names, vars(self)
        if arrays:
            named = dict(zip(names, arrays, strict=not named)) | named
        held.update(named)
        self._table = np.zeros(MOST_WORDS * len(names), np.int64)
        self.address = address_of(self._table)
        if self._parts is None:
            type(self)._parts = tuple(name for name in names if isinstance(held[name], Arrays))
        self._numba_type_ = self._write()

    def _write(self) -> _ArraysType:
        """Write the table of the arrays as they are now; the type of this object, which numba takes of it."""
        held = vars(self)
        fields, parts = self._fields_of(held), [held[name] for name in self._parts or ()]
        kind = _type_of(type(self), fields, describe(fields, self._table), parts)
        for place, part in zip(kind.parts, parts, strict=True):
            self._table[place] = part.address
        return kind

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has a table of its own.
        return type(self), tuple(getattr(self, name) for name in self._names)

    @classmethod
    def of(cls, known: Self | None, **arrays: Any) -> Self:
        """``known`` with these arrays, where it can have them; else an object of them."""
        if known is None:
            return cls(**arrays)
        held = vars(known)
        if all(map(is_, cls._fields_of(held), cls._fields_of(arrays))):
            return known
        others = {name: arrays[name] for name in cls._names if held[name] is not arrays[name]}
        if known._takes(others):
            known.put(**others)
            return known
        return known.replaced(**others)

    def put(self, **arrays: Any) -> None:
        """Have other arrays, of the same types and dimensions, in some places."""
        self.hold(**arrays)
        self.tell()

    def hold(self, **arrays: Any) -> None:
        """The same, but that compiled code is to be told before it is called."""
        vars(self).update(arrays)
        # What is interpreted sees a view of its own, which may be part of another one: it is the same view.
        if "twin" in vars(self):
            self._view_().put(arrays)

    def tell(self) -> None:
        """Have compiled code see what is held."""
        assert self._write() is self._numba_type_

    def replaced(self, **arrays: Any) -> Self:
        """An object of its own, with other arrays in some places."""
        return type(self)(**{name: getattr(self, name) for name in self._names} | arrays)

    def _takes(self, arrays: Mapping[str, Any]) -> bool:
        """Whether with these arrays it is of the same type to compiled code."""
        return all(_shape(one) == _shape(getattr(self, name)) for name, one in arrays.items())

    def _view_(self) -> View:
        """What interpreted code sees of it."""
        known = vars(self)
        if "twin" not in known:
            known["twin"] = View()
            known["twin"].put({name: known[name] for name in self._names})
        view: View = known["twin"]
        return view


def _shape(one: Any) -> Any:
    """What the type of an object hangs on, of one of its fields."""
    return one._numba_type_ if isinstance(one, Arrays) else (one.dtype, one.ndim)


class _ArraysType(types.Type):
    """Numba's type of an :class:`Arrays`: the type of each field, and where it is in the table."""

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = dict(fields)
        self.place, at = {}, 0
        for field, kind in fields:
            self.place[field] = at
            at += 1 if isinstance(kind, _ArraysType) else 1 + kind.ndim
        self.parts = [self.place[field] for field, kind in fields if isinstance(kind, _ArraysType)]
        digest = sha256(repr(fields).encode()).hexdigest()[:12]
        super().__init__(f"{name}_{digest}")


_types: dict[tuple[Any, ...], _ArraysType] = {}
_known: dict[tuple[Any, ...], tuple[_ArraysType, list[Any]]] = {}
"""By what :func:`describe` says of arrays; with the types of these, which it names by where they are."""
_MOST_KNOWN = 1 << 10


def _type_of(owner: type[Arrays], fields: tuple[Any, ...], kinds: bytes, parts: list[Arrays]) -> _ArraysType:
    """The type of an object of some arrays, and of ``parts`` that are made of arrays themselves."""
    # By where types are, which are kept for good: numba's own hash of them is worked out in Python.
    key = (owner, kinds, *[id(part._numba_type_) for part in parts])
    known = _known.get(key)
    if known is None:
        if len(_known) == _MOST_KNOWN:  # numpy's types that somebody makes anew in each run
            _known.clear()
        shapes = (owner, *map(_shape, fields))
        if shapes not in _types:
            typed = zip(owner._names, map(cast("Any", typeof), fields), strict=True)
            _types[shapes] = _ArraysType(owner.__name__, tuple(typed))
        known = _known[key] = _types[shapes], [getattr(one, "dtype", None) for one in fields]
    return known[0]


def _unbox(_: _ArraysType, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return _extending.NativeValue(pointer, is_error=_cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


class _ArraysAttributes(templates.AttributeTemplate):
    key: Any = _ArraysType
    generic_resolve: Any = staticmethod(lambda kind, name: kind.fields.get(name))


def _load(context: Any, builder: Any, kind: _ArraysType, value: Any, name: str) -> Any:
    word = ir.IntType(64)
    table = builder.bitcast(value, word.as_pointer())

    def entry(number: int) -> Any:
        found = builder.load(builder.gep(table, [ir.Constant(word, kind.place[name] + number)]))
        # Nobody writes to the table while compiled code runs: a load need not be done again after a store.
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    field = kind.fields[name]
    if isinstance(field, _ArraysType):
        return builder.inttoptr(entry(0), context.get_value_type(field))
    made = _arrayobj.make_array(field)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(field.dtype))
    shape = [entry(1 + k) for k in range(field.ndim)]
    strides: list[Any] = []
    step = ir.Constant(word, size)
    for length in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, length)
    data = builder.inttoptr(entry(0), context.get_data_type(field.dtype).as_pointer())
    itemsize = ir.Constant(word, size)
    _arrayobj.populate_array(made, data, shape, strides, itemsize, meminfo=None)
    return made._getvalue()


_extending.register_model(_ArraysType)(_extending.models.OpaqueModel)
_extending.unbox(_ArraysType)(_unbox)
_extending.typeof_impl.register(Arrays)(lambda value, _: value._numba_type_)
_templates.infer_getattr(_ArraysAttributes)
_imputils.lower_getattr_generic(_ArraysType)(_load)
