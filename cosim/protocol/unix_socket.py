"""A unix socket's file: taken only where nobody answers, removed only by whoever made it.

gRPC unlinks whatever lies at the path that it binds, also at its end. So it binds a name of its own in the
same folder; the file is linked to the path that was asked for, which fails where there is one already.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from pathlib import Path

from cosim.errors import LaunchError

LONGEST = 107
"""Bytes of a path (``sockaddr_un`` on Linux)."""


class SocketFile:
    """The file of one server. ``bound`` is where gRPC binds, ``path`` where clients find it.

    Raises
    ------
    LaunchError
        The folder's path is too long for a socket in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bound = path.parent / f".{os.getpid():x}.{id(self) & 0xFFFFFF:x}"
        if len(str(self.bound).encode()) > LONGEST:
            raise LaunchError(f"unix:{path}: the path is too long: sockets have {LONGEST} bytes at most")
        self._inode = 0

    def publish(self) -> None:
        """Give the bound socket its path; a socket that nobody answers on is replaced.

        Raises
        ------
        LaunchError
            A file that is no socket, or a server that answers, is there.
        """
        try:
            for _ in range(3):  # another server may take the path between look and link
                self._make_room()
                with contextlib.suppress(FileExistsError):
                    os.link(self.bound, self.path)
                    self._inode = self.path.lstat().st_ino
                    return
            raise LaunchError(f"can't listen on unix:{self.path}: another server took it")
        except OSError as error:
            raise LaunchError(f"can't listen on unix:{self.path}: {error.strerror or error}") from error
        finally:
            self.bound.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the path, if it still is this server's."""
        with contextlib.suppress(OSError):
            if self._inode and self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def _make_room(self) -> None:
        try:
            mode = self.path.lstat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(mode):
            raise LaunchError(
                f"can't listen on unix:{self.path}: it is a file and no socket, which is not replaced"
            )
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            code = probe.connect_ex(str(self.path))
        if code == errno.ECONNREFUSED:
            self.path.unlink(missing_ok=True)
        elif code != errno.ENOENT:
            raise LaunchError(f"can't listen on unix:{self.path}: a server answers there")
