"""A session that outlives its server: every advance is logged, and a server that dies is replaced.

A session is in one of three states. *Live*: the server answers, and each exchange is written to the log.
*Recovering*: the server has died; another is started and given the log's advances again, in as few calls as
that takes, and must come to the same grant and digest. *Resumed*: the run itself broke off and began again;
answers come from the log until that ends, then a server is brought there, and the session is live.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cosim.errors import DivergenceError, InputError, Location, ProtocolError, ServerDiedError
from cosim.protocol.advance_answer import AdvanceAnswer
from cosim.protocol.advance_parts import advance_parts
from cosim.protocol.client_session import ClientSession
from cosim.protocol.digest import Digest
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.replay_log import LoggedAdvance, LogReader, LogWriter
from cosim.protocol.replay_plan import ReplayPlan, as_recorded, few_advances
from cosim.protocol.settings import FailurePolicy, Target
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.units import NEVER

_say = logging.getLogger("cosim.protocol").warning


class RecoveringSession:
    """Opens a session, exchanges advances, and brings the session back where that can be done.

    ``deaths`` counts servers that died; ``replays`` the calls that brought sessions back.
    """

    def __init__(self, target: Target, policy: FailurePolicy, log: Path | None) -> None:
        self._policy = policy
        self._session = ClientSession(target, policy)
        self._path = log
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._writer: LogWriter | None = None
        self._reader: LogReader | None = None
        self._recorded: Iterator[LoggedAdvance] | None = None
        self._upcoming: LoggedAdvance | None = None
        self._samples: Iterator[bytes] = iter(())
        self._open_request = b""
        self._in_a_row = 0
        self.deaths = 0
        self.replays = 0

    @property
    def name(self) -> str:
        """How errors call the server."""
        return self._session.name

    @property
    def process(self) -> ServerProcess | None:
        """The server, where it was started here."""
        return self._session.process

    @property
    def is_live(self) -> bool:
        """Whether a server gives the answers, and not a log: that keeps a digest of many answers only."""
        return self._recorded is None

    @property
    def kept(self) -> bool:
        """Whether the log outlives the session, so that a run could go on from it."""
        return self._path is not None and self._folder is None

    @property
    def most_bytes(self) -> int:
        """Largest message that both sides take."""
        return self._session.most_bytes

    def log_to(self, path: Path, *, resume: bool) -> None:
        """Where the log goes; ``resume``: what is there is played first."""
        self._path = path
        if resume:
            self._reader = LogReader(path)
            self._session.described = pb.DescribeResponse.FromString(self._reader.described)

    def describe(self) -> pb.DescribeResponse:
        """What the server says of itself; from the log, where a run goes on."""
        while True:
            try:
                return self._session.describe()
            except ServerDiedError as error:
                self._bury(error)

    # -- a session -----------------------------------------------------------------------------------

    def open(self, request: bytes) -> pb.Opened:
        """Open a session; ``request`` is a serialized ``SessionRequest``."""
        there = self.describe()
        self._open_request = request
        if self._reader is not None:
            if request != self._reader.opened:
                raise DivergenceError(
                    f"the log {self._reader.path} is of another run: topology, seed or network differ"
                )
            # No server yet: the log answers until it ends.
            self._recorded = self._reader.exchanges()
            self._look_ahead()
            return pb.Opened(credit=there.limits.max_open_flows)
        if self._policy.recover and not there.deterministic:
            _say("%s is not deterministic: if it dies, the run can't go on", self.name)
        elif not self._policy.recover:
            _say("recovery is off: if %s dies, the run can't go on", self.name)
        opened = self._open()
        if self._path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="cosim-log-")
            # Nobody asked for the log, but recovery needs one: it goes with the session.
            self._path = Path(self._folder.name) / "injections.log"
        self._writer = LogWriter.create(self._path, there.SerializeToString(deterministic=True), request)
        return opened

    def _open(self) -> pb.Opened:
        """A session at its beginning; a server that dies before it is there is replaced."""
        while True:
            try:
                return self._session.open(self._open_request)
            except ServerDiedError as error:
                self._bury(error)

    def advance(self, parts: Sequence[bytes]) -> AdvanceAnswer:
        """Exchange an advance for its answer, whatever happens to the server meanwhile. It is good until the
        next.
        """
        if self._recorded is not None:
            recorded = self._next_recorded(parts)
            if recorded is not None:
                return recorded
        assert self._writer is not None
        while True:
            try:
                answer = self._session.exchange(parts)
            except ServerDiedError as error:
                self._recover(error)  # the log ends before this advance: it is asked again
                continue
            self._log(parts, answer)
            # Deaths for one advance: a server that gets further may die as often as it likes.
            self._in_a_row = 0
            return answer

    def _log(self, parts: Sequence[bytes], answer: AdvanceAnswer) -> None:
        writer = self._writer
        assert writer is not None
        if not writer.ended:
            writer.advance(parts, answer)
            if writer.ended:
                _say("%s; if the server dies, the run can't go on by itself", writer.ended)

    def ask(self, request: pb.SessionRequest) -> pb.SessionResponse:
        """Anything that leaves the session as it is."""
        if self._recorded is not None:
            self._go_live()
        while True:
            try:
                return self._session.ask(request)
            except ServerDiedError as error:
                self._recover(error)

    def sample(self, request: pb.SessionRequest) -> pb.Sampled:
        """Ask for a sample, as :meth:`look` does."""
        answer = self.look(request)
        if not answer.HasField("sampled"):
            raise ProtocolError(f"{self.name} answered SampleRequest with {answer.WhichOneof('response')}")
        return answer.sampled

    def look(self, request: pb.SessionRequest) -> pb.SessionResponse:
        """Ask for what changes nothing, and keep the answer; from the log, where a run goes on."""
        if self._recorded is not None and self._upcoming is not None:
            raw = next(self._samples, None)
            if raw is None:
                raise DivergenceError("the run looks where the log does not: it is not the same run")
            return pb.SessionResponse.FromString(raw)
        answer = self.ask(request)
        if self.kept:  # else nothing ever goes on from the log but a server, which is not asked again
            assert self._writer is not None
            self._writer.sample(answer.SerializeToString())
        return answer

    def close(self) -> None:
        """End the session, the server if it was started here, and a log that nobody asked for."""
        self._session.finish()
        self._session.disconnect()
        if self._writer is not None:
            self._writer.close(remove=self._folder is not None)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # -- from recovering to live ---------------------------------------------------------------------

    def _recover(self, error: ServerDiedError) -> None:
        """Start the server again and replay the log, as often as the policy allows.

        Raises
        ------
        ServerDiedError
            Recovery is off, or it keeps dying.
        DivergenceError
            It comes to another digest than before.
        """
        while True:
            self._bury(error)
            try:
                self._replay_log()
            except ServerDiedError as again:
                error = again
                continue
            return

    def _bury(self, error: ServerDiedError) -> None:
        """Let go of a server that died, so that another can be started.

        Raises
        ------
        ServerDiedError
            Recovery is off, or would be no use; or too many died, one after the other, for one advance.
        """
        process, log = self._session.process, self._session.server_log() or error.server_log
        how = f" ({process.how_it_ended()})" if process is not None else ""
        described = self._session.described
        why = ""
        if not self._policy.recover:
            why = "recovery is off"
        elif described is not None and not described.deterministic:
            why = "it is not deterministic, so a replay could come to something else"
        if self._writer is not None:
            self._writer.flush()
            if self._writer.ended:
                why = why or self._writer.ended
        self.deaths += 1
        self._in_a_row += 1
        if not why and self._in_a_row > self._policy.most_deaths:
            why = f"it died {self._in_a_row} times without getting any further"
        if why:
            raise ServerDiedError(f"{error.message}{how}; {why}", server_log=log) from error
        again = "starting it again" if self._session.starts else "connecting again"
        _say("%s died%s; %s and replaying the log", self.name, how, again)
        self._session.disconnect()

    def _replay_log(self) -> None:
        """A new session, brought to where the log ends, in as few calls as that takes.

        Raises
        ------
        DivergenceError
            It comes to another grant or digest than the log.
        """
        assert self._path is not None
        log = self._reader or LogReader(self._path)
        opened = self._session.open(self._open_request)
        # Hours of calls become a few: what the old server was told between two of its grants is all known by
        # now.
        plan = few_advances(log.exchanges(), opened.credit)
        if self._replay(plan) == (plan.granted_ps, plan.digest):
            return
        # Few calls may take the second round of an instant for the first; the calls as they were do not.
        plan = as_recorded(log.exchanges())
        self._session.open(self._open_request)
        granted, digest = self._replay(plan)
        if (granted, digest) != (plan.granted_ps, plan.digest):
            raise DivergenceError(
                f"{self.name} came to {digest} at {granted} ps when its log was replayed; before it was "
                f"{plan.digest} at {plan.granted_ps} ps. It says that it is deterministic"
            )

    def _replay(self, plan: ReplayPlan) -> tuple[int, Digest]:
        """The grant and the digest that the planned advances lead to."""
        digest, granted, done = Digest(), 0, 0
        budget = int(self._policy.budget_s * 1e6)
        for one in plan.advances:
            paths, flows, starts = one.paths if one.paths.end else None, one.flows, one.starts
            changes = one.changes
            horizon = one.horizon_ps
            while True:
                parts = advance_parts(paths, flows, starts, horizon, budget, self.most_bytes, changes=changes)
                answer = self._session.exchange(parts)
                self.replays += 1
                moved = answer.count or answer.granted_ps > granted or flows is not None or starts is not None
                done, granted = done + answer.count, answer.granted_ps
                digest = answer.digest or Digest()
                if granted == one.horizon_ps and done >= one.completions:
                    break
                if granted > one.horizon_ps or not (moved or horizon < NEVER):
                    return granted, digest  # it stands beside the plan: the caller sees it differ
                # Further rounds of the instant have no horizon of their own: what completes in them stops it.
                if granted == one.horizon_ps:
                    horizon = NEVER
                # Else the server stopped early (a wall budget): it goes on with nothing new.
                paths, flows, starts, changes = None, None, None, None
        return granted, digest

    # -- from resumed to live ------------------------------------------------------------------------

    def _next_recorded(self, parts: Sequence[bytes]) -> AdvanceAnswer | None:
        """The logged answer, or None at the log's end: the session is live then.

        Raises
        ------
        DivergenceError
            The log holds another request.
        """
        exchange = self._upcoming
        if exchange is None:
            self._go_live()
            return None
        self._look_ahead()
        # Byte by byte: a run that is the same asks the same.
        if tuple(parts) != exchange.requests:
            raise DivergenceError("the run asks something else than the log holds: it is not the same run")
        answer = AdvanceAnswer()
        for raw in exchange.answers:
            answer.read(raw)
        return answer

    def _look_ahead(self) -> None:
        """Read the next exchange of the log: what was looked at before it is asked for before it."""
        assert self._recorded is not None
        self._upcoming = next(self._recorded, None)
        self._samples = iter(() if self._upcoming is None else self._upcoming.samples)

    def _go_live(self) -> None:
        """The log has been played: bring a server there, and append to the log from here on.

        Raises
        ------
        InputError
            The log goes on: the run asks for something that no log holds before it ends.
        ServerDiedError
            The server isn't deterministic.
        """
        reader, path = self._reader, self._path
        assert reader is not None
        assert path is not None
        assert self._recorded is not None
        # The run has ended, or asks for statistics, before its log does: the log is of a longer run.
        if self._upcoming is not None:
            raise InputError("the log goes on where the run does not", location=Location(str(path)))
        if not self.describe().deterministic:
            raise ServerDiedError(f"{self.name} is not deterministic: a run can't go on from its log")
        try:
            self._replay_log()
        except ServerDiedError as error:
            self._recover(error)
        self._recorded = None
        self._reader = None
        self._writer = LogWriter.resume(path, reader.end)
