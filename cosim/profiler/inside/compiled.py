"""``torch.compile``: Dynamo and AOTAutograd trace as on a GPU, Inductor schedules, its launches are recorded.

Dynamo finds graphs and their breaks in the script's bytecode, DDP's splits and FSDP's hooks included;
AOTAutograd parts forward and backward and chooses what is recomputed; Inductor fuses
(:mod:`cosim.profiler.inside.inductor`). A graph's call carries its operators out on fake tensors, unrecorded,
and issues its kernels. What Dynamo or Inductor can't do without a GPU runs as the script has it, and that is
said with its line. ``reduce-overhead`` and ``max-autotune`` launch a graph's kernels at once, after a copy of
the inputs that have no place of their own. Each shape is compiled again (``dynamic`` has no effect). Not
modelled: the time of guards, and of compiling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from cosim.profiler.inside.kernels import Cost, number_type, size_of
from cosim.profiler.inside.lines import is_users
from cosim.profiler.inside.recorder import DispatchRecorder, is_collective

MOST_SHAPES = 64
_OWN = frozenset({"inductor", "cudagraphs"})
_UNTIMED = ("max_autotune", "coordinate_descent_tuning", "shape_padding", "benchmark")
"""Settings of Inductor by which it would time kernels on a GPU."""


class Compiler:
    """Stands for ``torch.compile``; knows what was compiled and why graphs were broken."""

    def __init__(
        self, recorder: DispatchRecorder, assume: Callable[[str], None], first: Callable[[], None]
    ) -> None:
        self.recorder, self.assume, self.first = recorder, assume, first
        self.plain = torch.compile
        self.calls: list[GraphCall] = []
        self.asked = False
        self._installed = False

    def install(self, *, eager: bool) -> None:
        """Be ``torch.compile``; ``eager``: give back what is to be compiled."""

        def compile_(model: Any = None, **_: Any) -> Any:
            self.assume("torch.compile is taken for eager execution: what it would fuse is not credited")
            return model if model is not None else lambda each: each

        torch.compile = compile_ if eager else self.compile  # type: ignore[assignment]
        if eager:
            torch.nn.Module.compile = lambda _, *__, **___: compile_()  # type: ignore[method-assign,assignment]

    def compile(
        self, model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None,
        backend: Any = "inductor", mode: str | None = None, options: Any = None, disable: bool = False,
        **_: Any,
    ) -> Any:  # fmt: skip
        """As torch's."""
        if model is None:
            return lambda each: self.compile(
                each, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                disable=disable,
            )  # fmt: skip
        if disable:
            return model
        if mode is not None and options is not None:
            raise RuntimeError(
                "Either mode or options can be specified, but both can't be specified at the same time."
            )
        self.asked = True
        self.first()
        with _disable_current_modes():
            self._prepare()
            if backend not in _OWN:
                torch._dynamo.backends.registry.lookup_backend(backend)  # raises at a name that nobody has
                self.assume(f"torch.compile with backend {_name(backend)} is taken for eager execution")
                return model
            settings = torch._TorchCompileInductorWrapper(mode, options, False).config
            if backend == "cudagraphs":
                settings["triton.cudagraphs"] = True
            if dynamic:
                self.assume("torch.compile's dynamic shapes are compiled again for each size")
            return self.plain(model, backend=GraphBackend(self, settings), dynamic=False)

    def _prepare(self) -> None:
        """Once, when the script first asks for it."""
        if self._installed:
            return
        self._installed = True
        from torch._dynamo import config, convert_frame, trace_rules

        _show_gpu()
        config.recompile_limit = MOST_SHAPES
        config.run_gc_after_compile = False  # a tenth of what compiling a small function takes
        # The script never sees this folder's code, and Dynamo need not; but which kernel attention takes is
        # decided there.
        own = Path(__file__).parent.glob("*.py")
        trace_rules.SKIP_DIRS.extend(str(each) for each in own if each.name != "attention.py")
        trace_rules._recompile_re()
        plain = convert_frame.CatchErrorsWrapper.__call__

        def trace(wrapper: Any, frame: Any, *given: Any) -> Any:
            # Outside the modes: tracing is not what the script does, and Dynamo refuses to trace inside.
            progress = self.recorder.progress
            if progress is not None:
                progress.compiling = True
            with _disable_current_modes():
                try:
                    return plain(wrapper, frame, *given)
                except Exception as error:
                    code = frame.f_code
                    self._failed(f"{_short(code.co_filename)}:{code.co_firstlineno}: {code.co_name}", error)
                    return convert_frame.ConvertFrameReturn()
                finally:
                    if progress is not None:
                        progress.compiling = False

        convert_frame.CatchErrorsWrapper.__call__ = trace  # type: ignore[method-assign]

    def _failed(self, what: str, error: Exception) -> None:
        import traceback

        traceback.print_exception(error)
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        inner = getattr(error, "inner_exception", None)
        if inner is not None:
            said = f"{type(inner).__name__}: {next(iter(str(inner).splitlines()), '')}"
        self.assume(f"{what} is not compiled, but runs eagerly: {said.partition('. ')[0][:160]}")

    def breaks(self) -> dict[str, int]:
        """Why and where graphs were broken since the start, and how often."""
        if not self._installed:
            return {}
        found: Counter[str] = Counter()
        for each in torch._dynamo.utils.graph_break_reasons:
            frame = each.user_stack[-1] if each.user_stack else None
            place = "" if frame is None else f"{_short(frame.filename)}:{frame.lineno}: "
            found[place + next(iter(each.reason.splitlines()), "")] += 1
        return dict(found)

    def summary(self, begin: int, end: int) -> dict[str, int]:
        """The graphs called between two operations: how many, their operators, launches, those fused, and
        those that CUDA graphs launch; empty where nothing was to be compiled.
        """
        if not self.asked:
            return {}
        calls = [call for call in self.calls if begin <= call.first < end]
        found = Counter(graphs=len(calls), operators=0, launches=0, fused=0, captured=0)
        for call in calls:
            found.update(call.graph.counts)
        return dict(found)


class GraphCall:
    """A compiled graph was called, and began with operation ``first``."""

    def __init__(self, graph: CompiledGraph, first: int) -> None:
        self.graph, self.first = graph, first


def _show_gpu() -> None:
    """Let Dynamo and Inductor take the GPU that is stood in for."""
    from torch._dynamo.device_interface import CudaInterface

    # The interface keeps functions of `torch.cuda` as they were when it was imported.
    for name, value in list(vars(CudaInterface).items()):
        if isinstance(value, staticmethod) and hasattr(torch.cuda, name):
            setattr(CudaInterface, name, staticmethod(getattr(torch.cuda, name)))
    CudaInterface.raise_if_triton_unavailable = staticmethod(lambda *_: None)  # type: ignore[method-assign]


def _short(filename: str) -> str:
    """A file without the folders that differ from machine to machine."""
    return Path(filename).name if is_users(filename) else filename.rpartition("site-packages/")[2]


def _name(backend: Any) -> str:
    return str(getattr(backend, "__name__", backend))


class GraphBackend:
    """A backend of Dynamo: Inductor without code; ``settings`` are its configuration's."""

    compiler_name = "inductor"

    def __init__(self, compiler: Compiler, settings: dict[str, Any]) -> None:
        self.compiler = compiler
        self.captured = bool(settings.get("triton.cudagraphs"))
        kept = {key: value for key, value in settings.items() if not any(word in key for word in _UNTIMED)}
        if len(kept) < len(settings):
            compiler.assume(
                "torch.compile chooses no kernels by timing them (max-autotune): products are the library's"
            )
        self.settings = {
            **kept, "triton.cudagraphs": False, "shape_padding": False, "force_disable_caches": True,
        }  # fmt: skip

    def __call__(self, gm: torch.fx.GraphModule, inputs: Any, **_: Any) -> Any:
        """One graph of Dynamo's."""
        # Here and not before: importing Inductor takes seconds, and what is decorated may never be called.
        from torch._inductor.compile_fx import compile_fx

        from cosim.profiler.inside import inductor

        inductor.install()
        return compile_fx(gm, inputs, inner_compile=self._compile, config_patches=self.settings)

    def _compile(self, gm: torch.fx.GraphModule, inputs: Any, **given: Any) -> Any:
        """One graph of AOTAutograd's, forward or backward."""
        from cosim.profiler.inside.inductor import GraphSchedule, lower

        # Inductor's passes change the graph; what runs is the one from before.
        before = torch.fx.Graph()
        before.output(before.graph_copy(gm.graph, {}))
        run = torch.fx.GraphModule(gm, before)
        schedule: GraphSchedule | None = None
        with _disable_current_modes():
            try:
                schedule = lower(
                    gm,
                    inputs,
                    backward=bool(given.get("is_backward")),
                    inference=bool(given.get("is_inference")),
                )
            except Exception as error:
                self.compiler._failed("a graph of torch.compile", error)
        if schedule is None:
            return _plain_call(run)
        captured = self.captured
        if captured and schedule.uncapturable:
            self.compiler.assume(f"torch.compile makes no CUDA graph: {schedule.uncapturable}")
            captured = False
        graph = CompiledGraph(
            self.compiler, run, schedule, captured, given.get("static_input_idxs") or (),
            trained=not given.get("is_inference"),
        )  # fmt: skip
        return torch._dynamo.disable(graph.call)


def _plain_call(run: Any) -> Any:
    def call(*args: Any) -> Any:
        return run(*_unboxed(args))

    return torch._dynamo.disable(call)


def _unboxed(args: Any) -> Any:
    return args[0] if len(args) == 1 and isinstance(args[0], list) else args


class CompiledGraph:
    """A graph and what it launches; ``captured`` by a CUDA graph, into which inputs are copied that aren't
    ``static``.
    """

    def __init__(
        self, compiler: Compiler, run: torch.fx.GraphModule, schedule: Any, captured: bool, static: Any,
        *, trained: bool,
    ) -> None:  # fmt: skip
        self.compiler, self.run, self.captured = compiler, run, captured
        self.trained = trained
        self.static = frozenset(static)
        self.launches = schedule.launches
        nodes = list(run.graph.nodes)
        self.collectives = [n.name for n in nodes if is_collective(n.target)]
        places = [n for n in nodes if n.op == "placeholder"]
        changed = {n.args[0] for n in nodes if n.target is torch.ops.aten.copy_.default}
        self.changed = [place for place, node in enumerate(places) if node in changed]
        kernels = [launch for launch in self.launches if launch.kernel is not None]
        self.counts = {
            "operators": sum(
                isinstance(n.target, torch._ops.OpOverload) and not n.target.is_view for n in nodes
            ),
            "launches": len(kernels),
            "fused": sum(launch.fused > 0 for launch in kernels),
            "captured": len(kernels) if captured else 0,
        }

    def call(self, *args: Any) -> Any:
        """Carry out unrecorded, and issue what would be launched."""
        recorder = self.compiler.recorder
        inputs = list(_unboxed(args))
        with recorder.aside() as exchanged:
            out = self.run(*inputs)
        first = len(recorder.operations)
        self.compiler.calls.append(GraphCall(self, first))
        after = recorder.unordered_writers(inputs)
        if self.captured:
            recorder.launch(self._copied(inputs), after, gradients=self.trained)
            after = []
        issued = dict(zip(self.collectives, exchanged, strict=False))
        number = -1
        for launch in self.launches:
            if launch.kernel is not None:
                number = recorder.launch(launch.kernel, after, graphed=self.captured, gradients=self.trained)
                after = []
            elif launch.collective:
                recorder.groups.functional(*issued[launch.collective])
            else:
                recorder.wait_for(_first(issued[launch.waits_for][-1]))
        if number >= 0:
            written = [
                t for t in (out if isinstance(out, tuple | list) else [out]) if isinstance(t, torch.Tensor)
            ]
            recorder.wrote([*written, *(inputs[place] for place in self.changed)], number)
        return out

    def _copied(self, inputs: list[Any]) -> Cost:
        """Into the CUDA graph's own places."""
        moved = 2 * sum(
            size_of(t)
            for place, t in enumerate(inputs)
            if place not in self.static and isinstance(t, torch.Tensor) and t.device.type == "cuda"
        )
        return Cost("inductor.cudagraph_inputs", "memory", number_type(torch.float32), 0, moved, (0, 0, 0, 0))


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple | list) else out
