"""Errors on the wire: a reason of the protocol, as google.rpc.ErrorInfo, and back as cosim's own errors."""

from __future__ import annotations

from typing import Any

from cosim.errors import (
    CausalityError,
    FeatureError,
    NetworkError,
    OverloadError,
    RefusedError,
    UnreachableError,
    VersionError,
)

DOMAIN = "cosim.protocol.v1"

STATUS = {
    "VERSION": "FAILED_PRECONDITION",
    "FEATURE_MISSING": "FAILED_PRECONDITION",
    "INVALID_OPEN": "INVALID_ARGUMENT",
    "STATE": "FAILED_PRECONDITION",
    "SEQUENCE": "FAILED_PRECONDITION",
    "CAUSALITY": "FAILED_PRECONDITION",
    "INVALID_FLOWS": "INVALID_ARGUMENT",
    "NO_PATH": "FAILED_PRECONDITION",
    "OVERLOADED": "RESOURCE_EXHAUSTED",
    "TOO_LARGE": "RESOURCE_EXHAUSTED",
    "SIMULATOR": "INTERNAL",
}
"""Every reason, and the gRPC status that goes with it."""


class Refusal(Exception):  # noqa: N818 - an answer, not a mistake of this program
    """A server's answer that is an error. ``metadata`` is for programs, the message for people."""

    def __init__(self, reason: str, message: str, **metadata: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.metadata = {key: str(value) for key, value in metadata.items()}


def refusal_of(error: Exception) -> Refusal:
    """What a server says for an error of an in-process network."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, CausalityError):
        return Refusal("CAUSALITY", str(error))
    if isinstance(error, UnreachableError):
        return Refusal("NO_PATH", str(error))
    if isinstance(error, NetworkError):
        return Refusal("INVALID_FLOWS", str(error))
    return Refusal("SIMULATOR", f"{type(error).__name__}: {error}")


def to_status(refusal: Refusal) -> Any:
    """As what ``ServicerContext.abort_with_status`` takes."""
    import grpc
    from google.protobuf.any_pb2 import Any as AnyMessage
    from google.rpc.error_details_pb2 import ErrorInfo
    from google.rpc.status_pb2 import Status
    from grpc_status import rpc_status

    detail = AnyMessage()
    detail.Pack(ErrorInfo(reason=refusal.reason, domain=DOMAIN, metadata=refusal.metadata))
    code = getattr(grpc.StatusCode, STATUS[refusal.reason]).value[0]
    return rpc_status.to_status(Status(code=code, message=str(refusal), details=[detail]))


def reason_of(error: Any) -> tuple[str, str, dict[str, str]]:
    """(Reason, message, metadata) of a ``grpc.RpcError``; the reason is empty where the peer gave none."""
    from google.rpc.error_details_pb2 import ErrorInfo
    from grpc_status import rpc_status

    try:
        status = rpc_status.from_call(error)
    except ValueError:  # details that contradict the status
        status = None
    for detail in status.details if status is not None else ():
        info = ErrorInfo()
        if detail.Is(ErrorInfo.DESCRIPTOR) and detail.Unpack(info) and info.domain == DOMAIN:
            return info.reason, status.message, dict(info.metadata)
    return "", error.details() or "", {}


def error_of(reason: str, message: str, name: str) -> NetworkError:
    """The error of cosim's tree for a reason."""
    text = f"{name}: {message}"
    if reason == "CAUSALITY":
        return CausalityError(text)
    if reason == "VERSION":
        return VersionError(text)
    if reason in ("FEATURE_MISSING",):
        return FeatureError(text)
    if reason in ("OVERLOADED", "TOO_LARGE"):
        return OverloadError(text)
    return RefusedError(text, reason=reason)
