"""Libraries that communicate from a GPU: whose kernels a trace's communication is, and where its bytes stand.

A kernel's name says whose it is. What it sends stands elsewhere: NCCL's and RCCL's in PyTorch's
``record_param_comms``, others' in the tensors of the operator that launches it, or nowhere. A kernel of which
the bytes aren't known keeps its measured time, as communication.

Not modelled: computation that a kernel does beside its communication (fused products, norms, quantisation).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, field_validator

from cosim.spec import SizeBytes, Spec

_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier")


@dataclass(frozen=True)
class TracedOperator:
    """An operator of a trace: ``shapes`` and ``types`` of its inputs, and their ``values`` as the trace has
    them (texts; empty for a tensor).
    """

    name: str
    shapes: Sequence[Any] = ()
    types: Sequence[str] = ()
    values: Sequence[Any] = ()


class SentBytes(NamedTuple):
    """What an operator sends: the kind as :class:`~cosim.pattern.template.Collective` names it and counts its
    bytes, and the name of its process group; "": the trace's only group of several ranks, of several none.
    """

    kind: str
    size_bytes: int
    group: str


class CommunicationLibrary(Spec):
    """Base of the libraries in the group ``cosim.communications``. Fields are settings."""

    @abstractmethod
    def kind(self, kernel: str) -> str | None:
        """What a kernel does, by its name: ``all_reduce`` ..., ``""`` where that isn't said; None: it is none
        of this library's.
        """

    def sends(self, operator: TracedOperator) -> SentBytes | None:  # noqa: ARG002 - where bytes stand there
        """What an operator sends that launches such a kernel; None: it is none, or doesn't say so.

        Of a kernel that no such operator launches it is asked by the kernel's name, without shapes.
        """
        return None


class KernelNames(CommunicationLibrary):
    """Kernels known by patterns of their names, operators by theirs: the first tensor is what is sent"""

    kernels: dict[str, str] = Field(
        {},
        description="regular expressions of kernels' names, each with what such a kernel does; '': not said",
    )
    operators: dict[str, str] = Field(
        {}, description="likewise of operators whose first tensor is sent, and whose last text is the group"
    )
    names_group: bool = Field(
        True, description="false: no operator says its group, which is the trace's only"
    )
    sizes: dict[str, SizeBytes] = Field(
        {},
        description="regular expressions of kernels' names, each with the bytes that a rank sends in such a "
        "kernel, where no operator says them; counted as `kind: collective` counts its size",
    )
    group: str = Field(
        "", description="process group of kernels with `sizes`; omitted: the trace's only one, or all ranks"
    )

    @field_validator("kernels", "operators", "sizes")
    @classmethod
    def _check(cls, table: dict[str, Any]) -> dict[str, Any]:
        for pattern, kind in table.items():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
            if isinstance(kind, str) and kind and kind not in _COLLECTIVES:
                raise ValueError(f"{kind!r} is no collective: there are {', '.join(_COLLECTIVES)}")
        return table

    def kind(self, kernel: str) -> str | None:
        """The first pattern that is found in the name."""
        return _first(self._kernels, kernel)

    def sends(self, operator: TracedOperator) -> SentBytes | None:
        """Bytes of the first tensor, over the group that is named last; of a kernel, those of ``sizes``."""
        if (stated := _first(self._sizes, operator.name)) is not None and (moves := self.kind(operator.name)):
            return SentBytes(moves, stated, self.group)
        kind = _first(self._operators, operator.name)
        if not kind:
            return None
        place = next((k for k, one in enumerate(operator.shapes) if _is_shape(one)), None)
        if place is None or place >= len(operator.types):
            return None
        from cosim.formats.pytorch.communication import width_of

        shape, width, group = operator.shapes[place], width_of(operator.types[place]), ""
        if self.names_group:
            named = [one for one in operator.values if isinstance(one, str)]
            group = next((one for one in reversed(named) if re.match(r"[A-Za-z_]|\d+$", one)), "")
        if width is None or (self.names_group and not group):
            return None
        size = width
        for side in shape:
            size *= side
        return SentBytes(kind, size, group)

    @cached_property
    def _kernels(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(pattern), kind) for pattern, kind in self.kernels.items()]

    @cached_property
    def _sizes(self) -> list[tuple[re.Pattern[str], int]]:
        return [(re.compile(pattern), size) for pattern, size in self.sizes.items()]

    @cached_property
    def _operators(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(pattern), kind) for pattern, kind in self.operators.items()]


T = TypeVar("T")


def _first(table: Sequence[tuple[re.Pattern[str], T]], name: str) -> T | None:
    """What stands beside the first pattern that is found in a name."""
    for pattern, found in table:
        if pattern.search(name):
            return found
    return None


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(side) is int and side >= 0 for side in value)


def every_library(further: Sequence[CommunicationLibrary] = ()) -> Mapping[str, CommunicationLibrary]:
    """The registered ones by name, those of a scenario before them."""
    from cosim.registry import find, names

    own = {f"libraries[{number}]": one for number, one in enumerate(further)}
    group = "cosim.communications"
    return own | {name: find(group, name)() for name in names(group)}


_KINDS = {
    "all_?reduce": "all_reduce",
    "all_?gather": "all_gather",
    "reduce_?scatter": "reduce_scatter",
    "all_?to_?all": "all_to_all",
    "broadcast": "broadcast",
}


def _of(begin: str) -> dict[str, str]:
    """Names that begin so, with what the rest of the name says."""
    return {f"(?i:{begin}.*{pattern})": kind for pattern, kind in _KINDS.items()} | {f"(?i:{begin})": ""}


class NcclKernels(KernelNames):
    """NCCL, RCCL and MSCCL; PyTorch writes what they send"""

    kernels: dict[str, str] = Field(
        _of(r"^(void )?(nccl|rccl|msccl(kernel|run))"), description="see KernelNames"
    )


class DeepEP(KernelNames):
    """DeepEP, its forks, pplx-kernels and MORI: dispatch and combine of experts"""

    kernels: dict[str, str] = Field(
        {
            r"(\bdeep_ep|\bep)::\w+::(\w+::)?(dispatch|combine)": "all_to_all",
            r"\b(intranode|internode(_ll)?|hybrid_ep)::(\w+::)?(dispatch|combine)": "all_to_all",
            r"\b(deep_ep|intranode|internode(_ll)?|hybrid_ep)::": "",
            r"pplx::|(^|\W)all_to_all::(AllToAll|a2a)": "all_to_all",
            r"mori::.*Ep(Dispatch|Combine)": "all_to_all",
            r"\bmori::": "",
        },
        description="see KernelNames",
    )


class Nvshmem(KernelNames):
    """NVSHMEM, rocSHMEM and Intel SHMEM"""

    kernels: dict[str, str] = Field(_of(r"(nvshmem|rocshmem|ishmem)"), description="see KernelNames")


class Mscclpp(KernelNames):
    """MSCCL++"""

    kernels: dict[str, str] = Field(_of(r"(mscclpp|msccl::)"), description="see KernelNames")


class SymmetricMemory(KernelNames):
    """PyTorch's symmetric memory"""

    kernels: dict[str, str] = Field(
        {
            r"(one_shot|two_shot|multimem(_one_shot|_two_shot)?)_all_reduce": "all_reduce",
            r"multimem_all_gather": "all_gather",
            r"symm(etric)?_mem(ory)?|multimem_": "",
            r"^(void )?\(?(anonymous namespace\)::|c10d::)?(barrier|put_signal|wait_signal)_kernel": "",
        },
        description="see KernelNames",
    )
    operators: dict[str, str] = Field(
        {
            r"^symm_mem::(one_shot|two_shot|multimem(_one_shot)?)_all_reduce": "all_reduce",
            r"^symm_mem::multimem_all_gather": "all_gather",
        },
        description="see KernelNames",
    )


class Vllm(KernelNames):
    """All-reduces of vLLM, SGLang and AITER"""

    kernels: dict[str, str] = Field(
        {
            r"cross_device_reduce_(1|2)stage": "all_reduce",
            r"quickreduce::|quick_?all_?reduce|allreduce_prototype": "all_reduce",
        },
        description="see KernelNames",
    )
    operators: dict[str, str] = Field(
        {r"^(_C_custom_ar|sgl_kernel)::all_reduce$": "all_reduce"}, description="see KernelNames"
    )
    names_group: bool = Field(False, description="see KernelNames")


class TensorRTLLM(KernelNames):
    """TensorRT-LLM's and FlashInfer's"""

    kernels: dict[str, str] = Field(
        {
            r"(?i)(one|two)_?shot_?all_?reduce|allreduce_fusion_kernel": "all_reduce",
            r"(?i)tensorrt_llm::.*(moe_?comm|moe_?all_?to_?all|alltoall)|moeAllToAll": "all_to_all",
            r"(?i)tensorrt_llm::.*all_?reduce": "all_reduce",
            r"(?i)tensorrt_llm::.*all_?gather": "all_gather",
        },
        description="see KernelNames",
    )


class Userbuffers(KernelNames):
    """Transformer Engine's userbuffers"""

    kernels: dict[str, str] = Field(
        {
            r"userbuffers_\w*(allreduce|sum_inplace)": "all_reduce",
            r"userbuffers_\w*(rs_oop|reduce_?scatter|_rs_)": "reduce_scatter",
            r"userbuffers_\w*(ag_|all_?gather)": "all_gather",
            r"userbuffers": "",
        },
        description="see KernelNames",
    )


class Hccl(KernelNames):
    """Huawei's and Habana's HCCL, oneCCL, XCCL"""

    kernels: dict[str, str] = Field(
        _of(r"^(void )?(hccl|hcom_|lccl|oneccl|ccl_kernel|xccl)"), description="see KernelNames"
    )
