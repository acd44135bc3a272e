"""One profiled rank: the fake machine put up, the user's script run, what was recorded handed over.

Imports of torch come after the shim: this module's functions import what they need.
"""

from __future__ import annotations

import functools
import gc
import random
import runpy
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from cosim.profiler.inside import shim as shim_module

_loaded: list[tuple[Any, str]] = []


def preload() -> tuple[Any, str]:
    """Load the shim and then torch, once; the shim, or why there is none."""
    if not _loaded:
        late = "torch" in sys.modules
        _loaded.append((None, "torch was imported before") if late else shim_module.load())
        # The order matters in this function: modules look at torch.cuda, triton and process groups when
        # imported.
        import torch._dynamo  # it can't be imported once torch.cuda is replaced
        import torch._inductor.runtime.triton_heuristics  # it takes what stands in for triton for triton
        import torch.distributed.checkpoint
        import torch.distributed.fsdp
        import torch.distributed.pipelining
        import torch.distributed.tensor.experimental
        import torch.utils.data  # noqa: F401

        from cosim.profiler.inside import distributed, wrappers  # noqa: F401

        # What is loaded by now is the same in all forks of ranks: frozen, its pages stay shared.
        gc.set_threshold(200_000, 20, 100)  # traces are large and stay: walking them often is for nothing
        gc.freeze()
    return _loaded[0]


def preload_inductor() -> None:
    """What a rank has needed that compiles, for those after it."""
    import torch._inductor.compile_fx  # noqa: F401

    gc.freeze()


def _with_closure(recorder: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Arguments of a step; what a closure among them does is not the optimizer's."""
    where = "closure" if named.get("closure") is not None else 1
    closure = named.get("closure") if where == "closure" else given[1] if len(given) > 1 else None
    if not callable(closure):
        return None

    def outside() -> Any:
        recorder.optimizing -= 1
        try:
            return closure()
        finally:
            recorder.optimizing += 1

    if where == "closure":
        return given, {**named, "closure": outside}
    return (given[0], outside, *given[2:]), named


class ProfileDoneError(BaseException):
    """Enough iterations were seen: unwinds the user's script."""


class ProfilingSession:
    """Puts the machine up; ``order`` says rank, world_size, per_node, iteration, script, arguments and
    more.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.assumed: dict[str, int] = {}
        self.guesses: dict[str, str] = {}
        self.stages: dict[str, str] = {}
        self.meshes: list[dict[str, Any]] = []
        self.requests: list[Any] = []
        self.optimizers = 0
        self.exchanged: Any = None
        self.copies: Any = None
        self.started, self.begun_cpu = time.monotonic(), time.process_time()
        self.shim, self.why_not = preload()
        self._set_up()
        self._count_optimizers()
        self._watch_optimizers()
        self._watch_meshes()
        self._watch_layers()
        self._seed()

    def assume(self, text: str) -> None:
        """Note something that a GPU run might do otherwise."""
        self.assumed[text] = self.assumed.get(text, 0) + 1

    def _set_up(self) -> None:
        """The machine: devices that hold no data, a recorder of operators, process groups of other ranks."""
        import torch
        import torch._dynamo
        import torch.distributed.tensor.experimental
        from torch._subclasses.fake_tensor import FakeTensorMode

        from cosim.profiler.inside import answers, distributed, fakes, host, processes, routing
        from cosim.profiler.inside.exchanged import ValueExchange
        from cosim.profiler.inside.recorder import DispatchRecorder
        from cosim.profiler.inside.shared_folder import SharedFolder

        order = self.order
        torch.set_num_threads(1)  # ranks are profiled beside each other, one a core
        rank, world_size, per_node = order["rank"], order["world_size"], order["per_node"]
        local = rank % per_node
        home = torch.device("cuda", local) if self.shim is not None else torch.device("cpu")
        FakeTensorMode.avoid_device_init = property(lambda _: True)  # type: ignore[assignment]
        self._stand_in_for_cuda(min(per_node, world_size), local)
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        routed = routing.TokenRouting(order["routing"], self.assume)
        tokens = answers.ChosenTokens(order["lengths"], order["acceptance"], order["seed"], self.assume)
        self.recorder = DispatchRecorder(self.shim, home, host.KnownValues(self.mode, routed, tokens))
        fakes.install(self.mode, self.recorder)
        folder = SharedFolder(Path(order["shared"]), rank, order.get("beside", ()))
        exchange = ValueExchange(self.mode, folder, self.recorder.assume_now)
        groups = distributed.ProcessGroups(self.recorder, order["imbalance"], exchange)
        self.recorder.groups = groups
        distributed.install(rank, world_size, per_node, folder, groups)
        processes.install(local)
        self._watch_operators(routed)
        if order["parallelism"]:
            from cosim.profiler.inside.parallelism import ExchangedParallelism

            self.exchanged = ExchangedParallelism(order["parallelism"], per_node, self.assume)
            self.exchanged.install()
            groups.check = self.exchanged.check_collective
        self._watch_programs(folder, groups)
        self._tell_progress(folder.folder, rank)

    def _watch_operators(self, routed: Any) -> None:
        """What torch does on tensors without data, where its own way would ask for their values."""
        import torch

        from cosim.profiler.inside import attention, parameters, sparse, tensors, values, weights, wrappers

        values.install(self.assume, self.recorder.host_reads, routed)
        values.install_loader(self.assume)
        tensors.install(self.mode)
        sparse.install()
        weights.install(self.assume)
        parameters.install()
        wrappers.install(self.assume)
        attention.install(ampere=self.shim is not None and torch.cuda.get_device_capability() >= (8, 0))

    def _watch_programs(self, folder: Any, groups: Any) -> None:
        """What runs more than an operator: compiled graphs, pipelines' schedules, kernels, generation."""
        from cosim.profiler.inside import (
            cuda_sources,
            embedding_tables,
            extensions,
            flash_attention,
            generation,
            nvml,
            own_python,
            pipeline,
            python_operators,
            triton_kernels,
            vllm_engine,
        )
        from cosim.profiler.inside.compiled import Compiler

        self.compiler = Compiler(self.recorder, self.assume, self._compiles)
        self.compiler.install(eager=self.shim is None or not self.order["compile"])
        pipeline.install(folder, groups, self.guesses, self.stages)
        triton_kernels.install(self.recorder.launched)
        flash_attention.install()
        embedding_tables.install()
        python_operators.install()
        if self.shim is not None:
            nvml.install()
            cuda_sources.install(self.recorder.launched)
            extensions.install(self.recorder.carried_out)
            own_python.install()
        vllm_engine.install(self.recorder, self._answered, self.assume)
        generation.install(self.recorder, self.recorder.known.tokens, self._answered)

    def _answered(self, request: Any) -> None:
        """A request has ended; the wanted one's end ends a script that has nothing to train."""
        self.requests.append(request)
        if not self.optimizers and len(self.requests) > self.order["iteration"]:
            raise ProfileDoneError

    def _tell_progress(self, folder: Path, rank: int) -> None:
        """Count operators until the first step; carry evaluations out once where that is asked."""
        from cosim.profiler.inside import progress

        self.recorder.progress = progress.OperatorCount(folder, rank)
        if self.order.get("skip_evaluation"):
            progress.skip_evaluation(self.recorder)
            self.assume("forwards before the first backward, without gradients, are carried out once")

    def _seed(self) -> None:
        """Have whatever the script draws from draw the same each time."""
        import numpy as np
        import torch

        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - the user's script may draw from it

    def _stand_in_for_cuda(self, devices: int, own: int) -> None:
        """The shim's devices; without it, what asks for a GPU gets the CPU."""
        from cosim.profiler.inside import cuda, cuda_types, remap

        if self.shim is not None:
            cuda.install(self.shim, devices, own, self.order["device"])
            cuda_types.install(lambda name, given: self.recorder.launched(name, given))
            return
        self.assume(
            f"no fake cuda ({self.why_not}): cuda is remapped to cpu; autocast, attention, "
            "and host copies may differ from a GPU run"
        )
        remap.install()

    def _watch_meshes(self) -> None:
        """Note every mesh that the script makes."""
        from torch.distributed.device_mesh import DeviceMesh

        made = DeviceMesh.__init__

        def init(mesh: Any, *args: Any, **given: Any) -> None:
            made(mesh, *args, **given)
            self._note_mesh(mesh, list(mesh.mesh_dim_names or ()))

        DeviceMesh.__init__ = init  # type: ignore[method-assign]
        self._watch_tensor_parallel()

    def _note_mesh(self, mesh: Any, names: list[str]) -> None:
        from cosim.profiler.inside import values

        with values.real():
            table = mesh.mesh
            ranks = table.reshape(-1).tolist() if table.numel() <= 1 << 20 else []
        self.meshes.append({"names": names, "shape": list(table.shape), "ranks": ranks})

    def _watch_tensor_parallel(self) -> None:
        """A mesh without names along which a module is parallelized is its tensor parallel axis."""
        from torch.distributed.tensor import parallel

        from cosim.profiler.inside.distributed import everywhere

        plain = parallel.parallelize_module

        def parallelize_module(module: Any, device_mesh: Any = None, *args: Any, **given: Any) -> Any:
            if device_mesh is not None and device_mesh.ndim == 1 and not device_mesh.mesh_dim_names:
                self._note_mesh(device_mesh, ["tp"])
            return plain(module, device_mesh, *args, **given)

        everywhere(plain, parallelize_module)

    def _watch_optimizers(self) -> None:
        """Iterations end where optimizers have stepped; the wanted one's end ends the script."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        from cosim.profiler.inside import graphs

        recorder = self.recorder
        self.steps_each = 0
        self.step_marks: list[int] = []
        seen = {"backwards": 0, "count": 0}

        def before(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
            recorder.optimizing += 1
            if recorder.backwards != seen["backwards"]:  # a backward since: a new iteration's first optimizer
                if seen["count"] and not self.steps_each:
                    self.steps_each = seen["count"]
                seen.update(backwards=recorder.backwards, count=0)
            return _with_closure(recorder, given, named)

        def after(*_: Any) -> None:
            recorder.optimizing -= 1
            if recorder.capture is not None:  # nothing is carried out yet
                recorder.capture.steps += 1
                return
            seen["count"] += 1
            recorder.iteration_ends()
            recorder.progress = None
            if seen["count"] == 1:
                self.step_marks.append(len(recorder.operations))
            else:
                self.step_marks[-1] = len(recorder.operations)
            complete = len(self.step_marks) > self.order["iteration"]
            # Several optimizers (one a parameter, as FSDP hooks have it) step in an iteration: the first
            # iteration shows how many, and the last of them ends it.
            if complete and seen["count"] >= max(1, self.steps_each):
                # No Exception: a script that catches all of those goes on training otherwise.
                raise ProfileDoneError

        def replayed() -> None:
            before(None, (), {})
            after()

        if self.shim is not None:
            graphs.install(recorder, replayed)
        register_optimizer_step_pre_hook(before)
        register_optimizer_step_post_hook(after)

    def _watch_layers(self) -> None:
        """Copy those that are alike; their backward is known from the iteration before."""
        from cosim.profiler.inside.layers import LayerCopies

        if self.order["iteration"] and not self.order["every_layer"]:
            marks = self.step_marks
            self.copies = LayerCopies(self.recorder, lambda: len(marks), self.order["iteration"])
            self.copies.install()

    def _compiles(self) -> None:
        if self.copies is not None:
            self.copies.withdraw("it compiles graphs")

    def _count_optimizers(self) -> None:
        """Know whether the script has any: one without is no training."""
        import torch

        made = torch.optim.Optimizer.__init__

        @functools.wraps(made)
        def init(optimizer: Any, *given: Any, **named: Any) -> None:
            self.optimizers += 1
            made(optimizer, *given, **named)

        torch.optim.Optimizer.__init__ = init  # type: ignore[method-assign]

    def modes(self) -> Any:
        """The modes under which the script runs, entered together."""
        import contextlib

        stack = contextlib.ExitStack()
        stack.enter_context(self.mode)
        stack.enter_context(self.recorder)
        return stack

    def run_script(self) -> dict[str, Any]:
        """Run the script to the end of the wanted iteration; the answer as plain values."""
        answer = self._run()
        failed = "error" in answer
        # Maybe for the copies; the words are the script's own in any case.
        return {"unlike": "it failed"} if failed and self.copies is not None and self.copies.begun else answer

    def _run(self) -> dict[str, Any]:
        order = self.order
        sys.argv = [order["script"], *order["arguments"]]
        sys.path.insert(
            0, str(Path.cwd()) if order["module"] else str(Path(order["script"]).resolve().parent)
        )
        try:
            with self.modes():
                if order["module"]:
                    runpy.run_module(order["script"], run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(order["script"], run_name="__main__")
        except ProfileDoneError:
            pass
        except SystemExit as stop:
            # A script that trained and then exits with an error (of a check on stand-in numbers, say) has
            # been profiled.
            if stop.code not in (None, 0) and not self.step_marks:
                from cosim.profiler.inside.failure import stopped

                return stopped(stop)
        except BaseException as error:
            from cosim.profiler.inside.failure import explain

            return explain(error, order, traceback.extract_tb(error.__traceback__))
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """What was recorded of the wanted iteration."""
        from cosim.profiler.inside.answer import make_answer

        return make_answer(self)
