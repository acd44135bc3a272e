"""Values that are known: small tensors on the host are computed as the script would compute them.

A fake tensor may carry its values (``constant``, torch's own name for it). A factory gives them: on the host
up to ``MOST_ON_HOST`` elements, random ones too, from the generator that the script seeded; on the GPU up to
``MOST_MADE_ON_GPU``, and nothing random. An operator whose operands are all known is carried out on the
values besides being recorded; what it gives on the GPU stays known up to ``MOST_ON_GPU``, whole numbers
(tokens' experts, their places) up to ``MOST_WHOLE_ON_GPU``. Whatever is written with an unknown value is
unknown from then on, its views too. Larger random tensors are not drawn and don't move the generator on.
Parameters are never known.

Units: elements. Not modelled: bits of a GPU's arithmetic (values are the host's).
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_map_only

from cosim.profiler.inside import fakes
from cosim.profiler.inside.answers import ChosenTokens
from cosim.profiler.inside.kernels import goes_by_places
from cosim.profiler.inside.routing import TokenRouting, follows

_HOST = torch.device("cpu")
MOST_ON_HOST = 1 << 20
MOST_ON_GPU = 1 << 16
MOST_WHOLE_ON_GPU = 1 << 22
MOST_MADE_ON_GPU = 1 << 20
MOST_EMPTY_ON_GPU = 1 << 10

_FACTORIES = frozenset(
    {
        "arange", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace", "logspace",
        "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones", "ones_like",
        "scalar_tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
    }
)  # fmt: skip
_DRAWS = frozenset(
    {"rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "normal"}
)
_BY_VALUES = frozenset({"bincount", "histc", "masked_select", "nonzero"})
"""Their results' shapes or values are stood in for where they aren't known."""
_CAT = torch.ops.aten.cat.default
_DYNAMIC = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
_EXCHANGES = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd"})
"""What comes out of these, ``exchanged`` knows."""
_ELSEWHERE = frozenset({"set_", "resize_", "_pin_memory", "is_pinned", "record_stream"})
_SETTLED = {"bitwise_and": False, "logical_and": False, "bitwise_or": True, "logical_or": True}
"""What one known operand is enough for, and what it then has throughout: any of a mask or all of it."""
_BY_VALUE = DynamicOutputShapeException, DataDependentOutputException, UnsupportedOperatorException


def carry(mode: FakeTensorMode, values: torch.Tensor, device: torch.device) -> FakeTensor:
    """A fake tensor on ``device`` that has these values (a tensor of the host's, kept as it is)."""
    with no_dispatch():
        shape = torch.empty_strided(values.size(), values.stride(), dtype=values.dtype, device="meta")
        made = FakeTensor(mode, shape, device, constant=values)
    mode.fake_tensor_converter.add_constant_storage_mapping(made)
    return made


def tell(mode: FakeTensorMode, tensor: Any, values: torch.Tensor) -> None:
    """Let a fake tensor have values, of its own shape and type."""
    tensor.constant = values
    mode.fake_tensor_converter.add_constant_storage_mapping(tensor)


def forget(mode: FakeTensorMode, tensor: Any) -> None:
    """What was written with values that nobody knows is unknown, and so are its views."""
    if isinstance(tensor, FakeTensor):
        values = tensor.constant
        if values is None:
            return
        # torch's own list of who shares the storage: views made earlier must not go on being known.
        mode.fake_tensor_converter.invalidate_constant_aliases(values)
        tensor.constant = None
    else:
        values = tensor
    with no_dispatch():
        # Tensors of the host's own have no `constant`: their storage is marked instead, which its views
        # share.
        values.untyped_storage()._cosim_unknown = True


def values_of(tensor: Any) -> torch.Tensor | None:
    """The values of a tensor, if they are known."""
    if isinstance(tensor, FakeTensor):
        return tensor.constant  # type: ignore[no-any-return]
    if (
        type(tensor) is not torch.Tensor
        or tensor.numel() > MOST_ON_HOST
        or tensor.layout is not torch.strided
    ):
        return None
    with no_dispatch():
        return None if hasattr(tensor.untyped_storage(), "_cosim_unknown") else tensor


class KnownValues:
    """Carries operators out beside the fake mode's doing, where all operands are known."""

    def __init__(self, mode: FakeTensorMode, routing: TokenRouting, tokens: ChosenTokens) -> None:
        self.mode, self.routing, self.tokens = mode, routing, tokens
        self._random: dict[Any, bool] = {}

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operator, fake, with its values where they follow from what is known."""
        if func.namespace in _EXCHANGES:
            return self._waited(args[0], _without_values(func, args, kwargs, _tensors(args, kwargs)))
        if torch._C._functorch.get_dynamic_layer_stack_depth():  # under vmap: values are of a whole batch
            return _without_values(func, args, kwargs, _tensors(args, kwargs))
        operands = _tensors(args, kwargs)
        short = func._opname
        if short == "from_file":  # memory-mapped: nothing is read until it is asked for
            with no_dispatch():
                mapped = func(*args, **kwargs)
            return carry(self.mode, mapped, _HOST)
        if short in _FACTORIES or short in _DRAWS:
            return self._make(func, short, args, kwargs, operands)
        if not operands or any(values_of(t) is None for t in operands):
            self._written(func, args, kwargs)
            # A mask among them stays known: it says how many there are.
            by_values = not _DYNAMIC.isdisjoint(func.tags) or short in _BY_VALUES
            if by_values or goes_by_places(func):
                self.routing.used(values for values in map(values_of, operands) if values is not None)
            out = fakes.joined(self.mode, *args) if func is _CAT and not kwargs else None
            if out is None:
                out = func(*args, **kwargs) if by_values else _without_values(func, args, kwargs, operands)
            return self._settled(func, operands, self._routed(func, args, out))
        if not self._can_be_known(func, operands):
            self._written(func, args, kwargs)
            return _without_values(func, args, kwargs, operands)
        if any(type(t) is torch.Tensor for t in operands):
            args, kwargs = tree_map_only(torch.Tensor, self._fake, (args, kwargs))
            operands = _tensors(args, kwargs)
        if short.startswith("lift"):
            return args[0]
        return self._both(func, args, kwargs, operands)

    def _waited(self, given: Any, out: Any) -> Any:
        """``wait_tensor`` gives another tensor of the same values."""
        values = values_of(given) if isinstance(given, FakeTensor) else None
        if (
            values is not None
            and isinstance(out, FakeTensor)
            and out.shape == given.shape
            and out is not given
        ):
            tell(self.mode, out, values)
        return out

    def _routed(self, func: Any, args: Any, out: Any) -> Any:
        """A router's choice of experts is known, and what is asked of the tokens of an answer."""
        chosen = self.routing.choose(func, args, out)
        if chosen is not None:
            tell(self.mode, out[1], chosen)
        found = self.tokens.compared(func, out)
        if found is not None:
            tell(self.mode, out, found)
        return out

    def _settled(self, func: Any, operands: list[Any], out: Any) -> Any:
        """What is false and anything is false; what is true or anything is true."""
        truth = _SETTLED.get(func._opname.rstrip("_"))
        if truth is None or not isinstance(out, FakeTensor) or out.numel() > MOST_ON_GPU:
            return out
        with no_dispatch():
            found = [v for v in map(values_of, operands) if v is not None]
            settled = any(bool((v == truth).all()) for v in found if not truth or v.dtype is torch.bool)
            made = torch.full(tuple(out.shape), truth, dtype=out.dtype) if settled else None
        if made is not None:
            tell(self.mode, out, made)
        return out

    def _can_be_known(self, func: Any, operands: list[Any]) -> bool:
        """Not what a GPU draws, or what changes whose memory a tensor has."""
        if func._opname in _ELSEWHERE:
            return False
        return not self._is_random(func) or all(t.device.type == "cpu" for t in operands)

    def _written(self, func: Any, args: Any, kwargs: Any) -> None:
        """What an operator writes with values that aren't known."""
        schema = func._schema
        if not schema.is_mutable:
            return
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            for tensor in _tensors((value,), {}):
                forget(self.mode, tensor)

    def _make(self, func: Any, short: str, args: Any, kwargs: Any, operands: list[Any]) -> Any:
        # torch's rules of fake tensors first: they raise what the operator itself would.
        out = _without_values(func, args, kwargs, operands)
        if not isinstance(out, FakeTensor) or out.layout is not torch.strided:
            return out
        host = out.device.type == "cpu"
        on_gpu = MOST_EMPTY_ON_GPU if "empty" in short else MOST_MADE_ON_GPU
        # A GPU draws from a generator whose numbers the host's doesn't have.
        if out.numel() > (MOST_ON_HOST if host else on_gpu) or (short in _DRAWS and not host):
            return out
        if short == "normal" and operands:  # of means that may not be known
            return out
        with no_dispatch():
            if operands:
                args, kwargs = tree_map_only(torch.Tensor, _hollow, (args, kwargs))
            if short.startswith(("empty", "new_empty")):  # whoever reads it reads what was written into it
                made = torch.zeros_like(torch.empty_strided(out.size(), out.stride(), dtype=out.dtype))
            else:
                made = func(*tree_map_only(torch.device, lambda _: _HOST, args), **_on_host(kwargs))
        tell(self.mode, out, made)
        return out

    def _both(self, func: Any, args: Any, kwargs: Any, operands: list[Any]) -> Any:
        """The fake result, by torch's rules of shapes and devices, and the values beside it."""
        if not any("Tensor" in str(each.type) for each in func._schema.returns):
            with no_dispatch():
                found = func(*_real(args), **_on_host(_real(kwargs)))
            for each in operands:
                self.routing.read(each.constant, found)
            return found
        try:
            out = None if func._opname in _BY_VALUES else _without_values(func, args, kwargs, operands)
        except _BY_VALUE:
            out = None
        if isinstance(out, FakeTensor) and out.numel() > _most(out):
            if func._schema.is_mutable:
                for tensor in operands:
                    forget(self.mode, tensor)
            return out
        with no_dispatch():
            # On the values themselves: what is written in place is written in them, as the script's own
            # tensor would be.
            given = _real(args)
            if func._opname == "histc" and not given[0].is_floating_point():  # on a GPU, whole numbers too
                real = func(given[0].double(), *given[1:], **_real(kwargs)).to(given[0].dtype)
            else:
                real = func(*given, **_on_host(_real(kwargs)))
        known = [t.constant for t in operands]
        if out is None or not _DYNAMIC.isdisjoint(func.tags):  # its length depends on values
            self.routing.used(known)
        for each in real if isinstance(real, list | tuple) else (real,):
            follows(each, known)
        home = next((t.device for t in operands if t.device.type != "cpu"), _HOST)
        return self._joined(out, real, home)

    def _joined(self, out: Any, real: Any, home: torch.device) -> Any:
        if isinstance(real, torch.Tensor):
            if not isinstance(out, FakeTensor) or out.shape != real.shape:  # its length depends on values
                return carry(self.mode, real, home)
            if out.constant is not real:
                tell(self.mode, out, real)
            return out
        if isinstance(real, list | tuple):
            fakes = out if isinstance(out, list | tuple) else [None] * len(real)
            return type(real)(self._joined(o, r, home) for o, r in zip(fakes, real, strict=True))
        return real

    def _fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of the host's own, seen by torch's rules; the same memory."""
        if isinstance(tensor, FakeTensor):
            return tensor
        fake = self.mode.fake_tensor_converter.from_real_tensor(self.mode, tensor)
        if fake.constant is None:
            with no_dispatch():
                own = tensor.detach()
            tell(self.mode, fake, own)
        return fake

    def _is_random(self, func: Any) -> bool:
        found = self._random.get(func)
        if found is None:
            found = self._random[func] = torch.Tag.nondeterministic_seeded in func.tags
        return found


def _without_values(func: Any, args: Any, kwargs: Any, operands: list[Any]) -> Any:
    """The fake result by shapes alone: torch would carry it out on the values itself."""
    known = [(t, t.constant) for t in operands if isinstance(t, FakeTensor) and t.constant is not None]
    for tensor, _ in known:
        # torch would run the operator on constants by itself, and skip the modes that record it.
        tensor.constant = None
    try:
        return func(*args, **kwargs)
    finally:
        for tensor, values in known:
            tensor.constant = values


def _most(tensor: torch.Tensor) -> int:
    if tensor.device.type == "cpu":
        return MOST_ON_HOST
    return MOST_ON_GPU if tensor.is_floating_point() else MOST_WHOLE_ON_GPU


def _hollow(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same shape and type, with whatever values: a factory asks for no more."""
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)


def _real(values: Any) -> Any:
    """Values for fake tensors, the host for any device."""
    values = tree_map_only(torch.Tensor, lambda t: t.constant, values)
    return tree_map_only(torch.device, lambda _: _HOST, values)


def _on_host(kwargs: Any) -> Any:
    left = {key: value for key, value in kwargs.items() if key != "pin_memory"}
    return {**left, "device": _HOST} if left.get("device") is not None else left


def _tensors(args: Any, kwargs: Any) -> list[Any]:
    found: list[Any] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(_tensors(value, {}))
    return found
