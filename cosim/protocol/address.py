"""Where a server listens: ``unix:/path`` or ``host:port``. Off loopback only with TLS."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cosim.errors import LaunchError
from cosim.protocol.unix_socket import LONGEST


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a TLS connection: the roots to trust, and own certificate and key (a server needs both)."""

    roots: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def read(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """What is in roots, key and certificate, as gRPC takes them.

        Raises
        ------
        LaunchError
            A file can't be read.
        """
        try:
            roots, key, certificate = (
                None if path is None else path.read_bytes()
                for path in (self.roots, self.key, self.certificate)
            )
        except OSError as error:
            raise LaunchError(f"can't read {error.filename} for TLS: {error.strerror}") from error
        return roots, key, certificate


def check_address(address: str, tls: Tls | None = None) -> str:
    """The address as gRPC takes it.

    Raises
    ------
    LaunchError
        Not an address; or off loopback without TLS, where anybody could read and write along.
    """
    if address.startswith("unix:"):
        path = address.removeprefix("unix:").removeprefix("//")
        if not path or len(path.encode()) > LONGEST:
            raise LaunchError(f"{address!r}: a unix socket's path has 1 to {LONGEST} bytes")
        return f"unix:{path}"
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise LaunchError(f"{address!r} is not an address; write unix:/path or host:port")
    if tls is None and not _is_loopback(host):
        raise LaunchError(
            f"{address!r} is not on this machine, and without TLS anybody on the way could change results; "
            "give tls, or use a unix socket, 127.0.0.1 or a tunnel"
        )
    return address


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
