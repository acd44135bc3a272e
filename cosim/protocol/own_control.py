"""A congestion control of the user's in a simulator elsewhere, connection by connection.

Where its ``kernel`` is a C file the server loads what is compiled of it. Else the server asks this process
over a Unix socket, for each round trip of a connection, and ``update`` answers for one row (``ask.c``).
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import NetworkError
from cosim.kernel import plugin
from cosim.network.congestion.contract import Control
from cosim.network.congestion.control import ask_in_python, check_answers, marks_of
from cosim.network.congestion.state import CONTROL_ROW, HOP_SIGHT, MAX_STATE, CongestionState
from cosim.network.flows import FlowBatch
from cosim.network.plugged import library_of_kernel
from cosim.network.simulator import Advance
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.settings import FailurePolicy, SessionSettings, Target
from cosim.topology.graph import Topology


class OwnControl(RemoteNetwork):
    """A session whose server has a control of the user's.

    Parameters
    ----------
    command
        What starts the server.
    control, mtu
        The control, and bytes of a packet, by which it says what ports mark.

    Raises
    ------
    InputError
        A C file doesn't compile, with the compiler's first error.
    """

    def __init__(
        self,
        command: Sequence[str],
        settings: SessionSettings,
        policy: FailurePolicy,
        control: Control,
        mtu: int,
        name: str,
    ) -> None:
        compiled, names = library_of_kernel(type(control)), []
        self._asked = None
        if compiled is None:
            self._asked = ControlSocket(control)
            compiled = plugin.library(Path(__file__).with_name("ask.c"), "ask"), "ask"
            names = [f"COSIM_ASKED={self._asked.name}"]
        library, function = compiled
        # The server loads files of this folder and no others.
        whole = ("env", f"COSIM_CONTROLS={library.parent}", *names, *command)
        options = {
            "own.library": library.name,
            "own.function": function,
            "own.parameters": " ".join(repr(float(number)) for number in control.parameters()),
            "own.gives_rate": str(int(control.gives == "rate")),
            "own.paced": str(int(control.paced)),
            "own.telemetry": str(int(control.telemetry)),
        }
        settings = replace(settings, options={**settings.options, **options})
        super().__init__(Target(command=whole, name=name), settings, policy)
        self._control, self._mtu = control, mtu

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        rates = np.unique(topology.link_rate_bps).tolist()
        rows = [(rate, *marks) for rate in rates if (marks := marks_of(self._control, rate, self._mtu))]
        marked = " ".join(repr(float(number)) for row in rows for number in row)
        super().open(topology, seed, {**(options or {}), "own.marks": marked})

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        try:
            return super().advance(flows, horizon_ps)
        except NetworkError:
            if self._asked is not None and self._asked.error is not None:
                raise self._asked.error from None
            raise

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        super().close()
        if self._asked is not None:
            self._asked.close()


class ControlSocket:
    """Answers what ``ask.c`` asks, in a thread: servers that are started again ask again."""

    def __init__(self, control: Control) -> None:
        self.error: NetworkError | None = None
        """What the control did wrong."""
        self._control = control
        self._folder = Path(tempfile.mkdtemp(prefix="cosim-"))
        self.name = self._folder / "asked"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.name))
        self._socket.listen()
        threading.Thread(target=self._serve, name="cosim-asked", daemon=True).start()

    def close(self) -> None:
        """Answer nothing more."""
        with suppress(OSError):  # it was closed before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        while True:
            try:
                asking, _ = self._socket.accept()
            except OSError:  # closed
                return
            with asking, asking.makefile("rb") as said:
                while self._answer(said, asking):
                    pass

    def _answer(self, said: Any, asking: socket.socket) -> bool:
        """Read one row, and answer it; False: the server is gone."""
        size = CONTROL_ROW.itemsize + 8 * MAX_STATE
        both = bytearray(said.read(size))
        if len(both) < size:
            return False
        row = np.frombuffer(both, CONTROL_ROW, 1)
        hops = int(row["hops"][0])
        telemetry = np.frombuffer(said.read(hops * HOP_SIGHT.itemsize), HOP_SIGHT)
        fluid = CongestionState(rows=row.copy(), telemetry=telemetry, state=np.zeros(MAX_STATE))
        fluid.state[:] = np.frombuffer(both, np.float64, offset=CONTROL_ROW.itemsize)
        fluid.counts["num_waiting"] = 1
        try:
            ask_in_python(self._control, fluid)
            check_answers(self._control, fluid, lambda _: "a connection")
        except NetworkError as error:
            self.error = error
            fluid.rows["window"] = fluid.rows["rate"] = np.nan
        try:
            asking.sendall(fluid.rows[:1].tobytes() + fluid.state[:MAX_STATE].tobytes())
        except OSError:
            return False
        return True
