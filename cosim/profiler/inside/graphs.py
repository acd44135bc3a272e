"""``torch.cuda.CUDAGraph``: a capture is kept and not carried out; each replay issues it whole.

Replayed operations keep the order among themselves that they were captured with. What was on the capturing
stream goes to the stream that replays, which afterwards waits for all of them, as CUDA has it. A replay is
one launch: its operations are marked, and cost the host nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from cosim.profiler.inside.recorder import DispatchRecorder
from cosim.profiler.trace import Recorded


def install(recorder: DispatchRecorder, stepped: Callable[[], None]) -> None:
    """Make ``torch.cuda.graph`` and its like record. ``stepped()``: a replay had an optimizer's step."""
    from torch.cuda import graphs

    class CUDAGraph:
        """As torch's."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self.captured: _Captured | None = None
            self._pool = (0, next(_pools))

        def capture_begin(self, *_: Any, **__: Any) -> None:
            if recorder.capture is not None:
                raise RuntimeError("CUDA graphs cannot be captured one inside the other")
            self._before = recorder.begin_capture()

        def capture_end(self) -> None:
            self.captured = _Captured(recorder, *self._before)

        def replay(self) -> None:
            if self.captured is None:
                raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
            self.captured.replay(recorder, stepped)

        def instantiate(self) -> None:
            """There is nothing to prepare."""

        def reset(self) -> None:
            self.captured = None

        def pool(self) -> Any:
            return self._pool

        def enable_debug_mode(self) -> None:
            """There is nothing to dump."""

        def debug_dump(self, debug_path: str) -> None:
            """There is nothing to dump."""

    _pools = iter(range(1, 1 << 30))
    replaced: dict[str, Any] = {
        "CUDAGraph": CUDAGraph,
        "graph_pool_handle": lambda: (1, next(_pools)),
        "is_current_stream_capturing": lambda: recorder.capture is not None,
    }
    for name, value in replaced.items():
        setattr(torch.cuda, name, value)
        setattr(graphs, name, value)
    torch._C._host_emptyCache = lambda: None  # type: ignore[attr-defined]


class _Captured:
    """What was issued between ``begin`` and the end of a capture, by its own numbers, and what it wrote."""

    def __init__(self, recorder: DispatchRecorder, state: Any, origin: str) -> None:
        self.origin, begin = origin, state.length
        self.steps, self.backwards = state.steps, recorder.backwards - state.backwards
        self.operations: list[Recorded] = recorder.operations[begin:]
        order = recorder.ordering
        self.deps = [[d - begin for d in deps if d >= begin] for deps in order.deps[begin:]]
        self.written = [(n - begin, store) for n, store in recorder.writers.values() if n >= begin]
        recorder.end_capture(state)

    def replay(self, recorder: DispatchRecorder, stepped: Callable[[], None]) -> None:
        """Issue it all again."""
        here = recorder.stream
        before = recorder.ordering.before(here)
        numbers: list[int] = []
        for operation, deps in zip(self.operations, self.deps, strict=True):
            stream = here if operation.stream == self.origin else operation.stream
            after = [numbers[d] for d in deps] or before
            numbers.append(recorder.ordering.issue(stream, after))
            recorder.operations.append(replace(operation, stream=stream, graphed=True))
        recorder.ordering.wait(here, {n for n in numbers if recorder.ordering.stream_of[n] != here})
        for number, store in self.written:
            recorder.writers[int(store._cdata)] = numbers[number], store
        recorder.backwards += self.backwards
        for _ in range(self.steps):
            stepped()
