"""What a server answers to an advance, read in the kernel."""

from __future__ import annotations

import numpy as np

from cosim.kernel import Columns, kernel, record
from cosim.protocol.digest import Digest
from cosim.protocol.v1 import network_simulator_pb2 as pb


def _place(name: str) -> int:
    fields = record("advance_answer_state").fields
    assert fields is not None
    return int(fields[name][1]) // 8


_PLACES = (
    "sequence",
    "more",
    "granted",
    "credit",
    "has_digest",
    "count",
    "is_uneven",
    "kept_begin",
    "kept_end",
)
_SEQUENCE, _MORE, _GRANTED, _CREDIT, _HAS_DIGEST, _COUNT, _UNEVEN, _BEGIN, _END = map(_place, _PLACES)


class AdvanceAnswer(Columns):
    """All parts of an answer, put together: completions, and what the last part says. ``parts`` are those;
    ``stripped`` the same without digest and times, as the log has them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said = memoryview(self.state.view(np.int64))
        self.digest_words = memoryview(self.state["digest"].reshape(-1))
        self.parts: list[bytes] = []
        self.stripped: list[bytes] = []

    def begin(self) -> None:
        """Forget what was read, for another answer."""
        self._said[_COUNT] = self._said[_UNEVEN] = 0
        self.parts.clear()
        self.stripped.clear()

    def read(self, part: bytes) -> bool:
        """Read one more part; False: it is no part of an answer to an advance."""
        if kernel.read_answer(self, part, len(part)) != kernel.IS_ADVANCED:
            return False
        self.parts.append(part)
        self.stripped.append(self.kept[self._said[_BEGIN] : self._said[_END]].tobytes())
        return True

    @property
    def sequence(self) -> int:
        """The advance that it answers."""
        return self._said[_SEQUENCE]

    @property
    def has_more(self) -> bool:
        """Whether a further part follows."""
        return bool(self._said[_MORE])

    @property
    def granted_ps(self) -> int:
        """How far it went."""
        return self._said[_GRANTED]

    @property
    def credit(self) -> int:
        """Flows that may be opened now."""
        return self._said[_CREDIT]

    @property
    def count(self) -> int:
        """Completions."""
        return self._said[_COUNT]

    @property
    def is_uneven(self) -> bool:
        """Whether columns of a part differ in length; it has no completions then."""
        return bool(self._said[_UNEVEN])

    @property
    def has_digest(self) -> bool:
        """Whether it says what the digest is."""
        return bool(self._said[_HAS_DIGEST])

    @property
    def digest(self) -> Digest | None:
        """The digest of all completions of the session; None: it says nothing of it."""
        return Digest(*self.digest_words) if self.has_digest else None

    def message(self) -> pb.Advanced:
        """The last part."""
        return pb.SessionResponse.FromString(self.parts[-1]).advanced
