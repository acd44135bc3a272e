"""The line to a server that outlives it: log, restart, replay; and the way back into a run that broke off."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cosim.errors import (
    DivergenceError,
    InputError,
    LaunchError,
    Location,
    NetworkError,
    ProtocolError,
    RemoteError,
    ServerDiedError,
    VersionError,
)
from cosim.protocol.bulk import Bulk, bulk, one_by_one
from cosim.protocol.digest import Digest
from cosim.protocol.journal import Exchange, Journal, Kind, Log
from cosim.protocol.launcher import Launched
from cosim.protocol.messages import advance_parts, numbered
from cosim.protocol.settings import Patience, Server
from cosim.protocol.v1 import VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.protocol.wire import MAX_MESSAGE_BYTES, Wire

_say = logging.getLogger("cosim.protocol").warning


class Lifeline:
    """Opens a session, exchanges advances, and brings the session back where that can be done.

    ``deaths`` counts servers that died; ``replays`` the calls that brought sessions back.
    """

    def __init__(self, server: Server, patience: Patience, log: Path | None) -> None:
        self._server = server
        self._patience = patience
        self._path = log
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._journal: Journal | None = None
        self._log: Log | None = None
        self._play: Iterator[Exchange] | None = None
        self._process: Launched | None = None
        self._wire: Wire | None = None
        self._there: pb.DescribeResponse | None = None
        self._open_request = b""
        self._sequence = 0
        self.deaths = 0
        self.replays = 0

    @property
    def name(self) -> str:
        """How errors call the server."""
        if self._there is not None:
            return self._there.simulator
        return self._server.name or self._server.address or " ".join(self._server.command[:1])

    @property
    def process(self) -> Launched | None:
        """The server, where it was started here."""
        return self._process

    @property
    def kept(self) -> bool:
        """Whether the log outlives the session, so that a run could go on from it."""
        return self._path is not None and self._folder is None

    @property
    def releases(self) -> bool:
        """Whether the server releases dependent flows."""
        return pb.FEATURE_DEPENDENT_FLOWS in self.describe().features

    @property
    def most_bytes(self) -> int:
        """Largest message that both sides take."""
        there = self.describe().limits.max_message_bytes
        return min(MAX_MESSAGE_BYTES, there or MAX_MESSAGE_BYTES)

    def log_to(self, path: Path, *, resume: bool) -> None:
        """Where the log goes; ``resume``: what is there is played first."""
        self._path = path
        if resume:
            self._log = Log(path)
            self._there = pb.DescribeResponse.FromString(self._log.described)

    def describe(self) -> pb.DescribeResponse:
        """What the server says of itself; from the log, where a run goes on."""
        if self._there is None:
            self._connect()
        assert self._there is not None
        return self._there

    # -- a session -----------------------------------------------------------------------------------

    def open(self, request: bytes) -> pb.Opened:
        """Open a session; ``request`` is a serialized ``SessionRequest``."""
        there = self.describe()
        self._open_request = request
        if self._log is not None:
            if request != self._log.opened:
                raise DivergenceError(
                    f"the log {self._log.path} is of another run: topology, seed or network differ"
                )
            self._play = self._log.exchanges()
            return pb.Opened(credit=there.limits.max_open_flows)
        if self._patience.recover and not there.deterministic:
            _say("%s is not deterministic: if it dies, the run can't go on", self.name)
        elif not self._patience.recover:
            _say("recovery is off: if %s dies, the run can't go on", self.name)
        opened = self._start_session()
        if self._path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="cosim-log-")
            self._path = Path(self._folder.name) / "injections.log"
        self._journal = Journal.create(self._path, there.SerializeToString(deterministic=True), request)
        return opened

    def advance(self, parts: Sequence[bytes]) -> list[pb.Advanced]:
        """Exchange an advance for its answer, whatever happens to the server meanwhile."""
        if self._play is not None:
            played = self._next_of_log(parts)
            if played is not None:
                return played
        assert self._journal is not None
        self._journal.write(Kind.REQUEST, parts)
        while True:
            try:
                raw, answers = self._exchange(parts)
            except ServerDiedError as error:
                self._bring_back(error)
                continue
            self._journal.write(Kind.ANSWER, raw)
            return answers

    def ask(self, request: pb.SessionRequest) -> pb.SessionResponse:
        """Anything that leaves the session as it is."""
        if self._play is not None:
            self._go_live()
        while True:
            try:
                wire = self._live()
                wire.send(request.SerializeToString())
                return pb.SessionResponse.FromString(wire.receive())
            except ServerDiedError as error:
                self._bring_back(error)

    def close(self) -> None:
        """End the session, the server if it was started here, and a log that nobody asked for."""
        if self._wire is not None:
            with contextlib.suppress(NetworkError):
                self._wire.finish()
        self._disconnect()
        if self._journal is not None:
            self._journal.close(remove=self._folder is not None)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # -- the server ----------------------------------------------------------------------------------

    def _live(self) -> Wire:
        if self._wire is None:
            raise NetworkError(f"{self.name}: the session is closed")
        return self._wire

    def _connect(self) -> None:
        """Start or find the server, and have it described."""
        patience, server = self._patience, self._server
        address = server.address
        if server.command:
            self._process = Launched(server.command, address=address, timeout_s=patience.start_s)
            address = self._process.address
        assert address is not None
        self._wire = Wire(
            address,
            tls=server.tls,
            deadline_s=patience.answer_s,
            keepalive_s=patience.keepalive_s,
            name=server.name or address,
        )
        try:
            there = self._wire.describe(patience.start_s)
        except NetworkError as error:
            log = self._server_log()
            self._disconnect()
            raise LaunchError(f"no network simulator at {address}: {error}", server_log=log) from error
        if there.version.major != VERSION[0]:
            self._disconnect()
            raise VersionError(
                f"{there.simulator} speaks version {there.version.major}.{there.version.minor}"
                " of the protocol; "
                f"this is {VERSION[0]}.{VERSION[1]}"
            )
        if self._there is not None and (there.simulator, there.build) != (
            self._there.simulator,
            self._there.build,
        ):
            self._disconnect()
            raise DivergenceError(
                f"the log is of {self._there.simulator} ({self._there.build}), "
                f"the server is {there.simulator} ({there.build})"
            )
        self._there = there
        self._wire.name = there.simulator

    def _disconnect(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _server_log(self) -> str:
        return self._process.stderr_tail() if self._process is not None else ""

    def _start_session(self) -> pb.Opened:
        if self._wire is None:
            self._connect()
        wire = self._live()
        wire.open_stream()
        self._sequence = 0
        wire.send(self._open_request)
        try:
            answer = pb.SessionResponse.FromString(wire.receive(self._patience.start_s))
        except RemoteError as error:
            error.server_log = self._server_log()
            raise
        if not answer.HasField("opened"):
            raise ProtocolError(f"{self.name} answered Open with {answer.WhichOneof('response')}")
        return answer.opened

    def _exchange(self, parts: Sequence[bytes]) -> tuple[list[bytes], list[pb.Advanced]]:
        wire = self._live()
        sequence = self._sequence = self._sequence + 1
        for part in parts:
            wire.send(numbered(part, sequence))
        raw: list[bytes] = []
        answers: list[pb.Advanced] = []
        while True:
            try:
                raw.append(wire.receive())
            except KeyboardInterrupt:
                self._cancel(sequence)
                raise
            response = pb.SessionResponse.FromString(raw[-1])
            if not response.HasField("advanced") or response.advanced.sequence != sequence:
                raise ProtocolError(
                    f"{self.name} breaks the protocol: it answered advance {sequence} with "
                    f"{response.WhichOneof('response')} {response.advanced.sequence or ''}".rstrip()
                )
            answers.append(response.advanced)
            if not response.advanced.more:
                return raw, answers

    def _cancel(self, sequence: int) -> None:
        """Have the advance in progress stopped, and take its answer: the session can then be asked again."""
        wire = self._live()
        wire.send(pb.SessionRequest(cancel=pb.Cancel(sequence=sequence)).SerializeToString())
        with contextlib.suppress(NetworkError):
            while pb.SessionResponse.FromString(wire.receive()).advanced.more:
                pass

    # -- back from the dead --------------------------------------------------------------------------

    def _bring_back(self, error: ServerDiedError) -> None:
        """Start the server again and replay the log.

        Raises
        ------
        ServerDiedError
            Recovery is off, or it keeps dying.
        DivergenceError
            It comes to another digest than before.
        """
        there = self.describe()
        how, log = "", self._server_log()
        if self._process is not None:
            how = f" ({self._process.how_it_ended()})"
        why = ""
        if not self._patience.recover:
            why = "recovery is off"
        elif not there.deterministic:
            why = "it is not deterministic, so a replay could come to something else"
        if why:
            raise ServerDiedError(f"{error.message}{how}; {why}", server_log=log) from error
        while True:
            self.deaths += 1
            if self.deaths > self._patience.most_deaths:
                raise ServerDiedError(
                    f"{error.message}{how}; it died {self.deaths} times", server_log=log
                ) from error
            _say("%s died%s; starting it again and replaying the log", self.name, how)
            self._disconnect()
            try:
                self._replay_log()
            except ServerDiedError as again:
                error = again
                continue
            return

    def _replay_log(self) -> None:
        """A new session, brought to where the log ends, in as few calls as that takes."""
        assert self._path is not None
        log = self._log or Log(self._path)
        opened = self._start_session()
        to = bulk(log.exchanges(), opened.credit)
        if self._replay(to) == (to.granted_ps, to.digest):
            return
        to = one_by_one(log.exchanges())
        self._start_session()
        granted, digest = self._replay(to)
        if (granted, digest) != (to.granted_ps, to.digest):
            raise DivergenceError(
                f"{self.name} came to {digest} at {granted} ps when its log was replayed; before it was "
                f"{to.digest} at {to.granted_ps} ps. It says that it is deterministic"
            )

    def _replay(self, to: Bulk) -> tuple[int, Digest]:
        """The grant and the digest that the stages lead to."""
        digest, granted, done = Digest(), 0, 0
        budget = int(self._patience.budget_s * 1e6)
        for stage in to.stages:
            paths, flows, starts = stage.paths if stage.paths.end else None, stage.flows, stage.starts
            while True:
                parts = advance_parts(paths, flows, starts, stage.horizon_ps, budget, self.most_bytes)
                _, answers = self._exchange(parts)
                self.replays += 1
                came = sum(len(answer.id) for answer in answers)
                moved = came or answers[-1].granted_ps > granted
                done, granted = done + came, answers[-1].granted_ps
                digest = Digest(answers[-1].digest.a, answers[-1].digest.b)
                if done >= stage.completions if stage.is_round else granted >= stage.horizon_ps:
                    break
                if not moved and flows is None and starts is None:
                    return granted, digest
                paths, flows, starts = None, None, None
        return granted, digest

    # -- a run that goes on --------------------------------------------------------------------------

    def _next_of_log(self, parts: Sequence[bytes]) -> list[pb.Advanced] | None:
        """The logged answer, or None at the log's end: the server is there then."""
        assert self._play is not None
        exchange = next(self._play, None)
        if exchange is None:
            self._go_live()
            return None
        if tuple(parts) != exchange.requests:
            raise DivergenceError("the run asks something else than the log holds: it is not the same run")
        return [pb.SessionResponse.FromString(raw).advanced for raw in exchange.answers]

    def _go_live(self) -> None:
        """The log has been played: from here on the server answers."""
        log = self._log
        assert log is not None
        assert self._path is not None
        assert self._play is not None
        for _ in self._play:
            raise InputError("the log goes on where the run does not", location=Location(str(log.path)))
        if not self.describe().deterministic:
            raise ServerDiedError(f"{self.name} is not deterministic: a run can't go on from its log")
        self._replay_log()
        self._play = None
        self._log = None
        self._journal = Journal.resume(self._path, log.end)
