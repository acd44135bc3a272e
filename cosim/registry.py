"""The registry: names that a scenario can use, found by entry point, loaded one at a time.

A package adds a topology by an entry point in the group ``cosim.topologies``; nothing is imported until a
scenario names it. :class:`Named` is the field annotation that turns ``{kind: ring, ...}``, ``ring`` or
``{plugin: my.py:MyTopology, ...}`` into the spec that is meant, with errors that keep their place in the
scenario::

    class Job(Spec):
        workload: Annotated[WorkloadSpec, Named("cosim.workloads")]
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from cosim.plugin_file import PLUGIN, is_file_class, load_module
from cosim.signatures import what_to_write, wrong_methods

if TYPE_CHECKING:
    from cosim.spec import Spec


class PluginGroup(NamedTuple):
    """A group of entry points: what one is called, the base that each has, and the key that names one."""

    noun: str
    base: str
    key: str = "kind"

    @property
    def base_name(self) -> str:
        """``NetworkSpec``."""
        return self.base.partition(":")[2]

    def load_base(self) -> type[Spec]:
        """The base class, which is the group's contract."""
        module, _, name = self.base.partition(":")
        found: type[Spec] = getattr(import_module(module), name)
        return found


GROUPS = {
    "cosim.networks": PluginGroup("network", "cosim.network.contract:NetworkSpec", "model"),
    "cosim.controls": PluginGroup("congestion control", "cosim.network.congestion.contract:Control"),
    "cosim.balancers": PluginGroup("load balancer", "cosim.network.balancing.contract:Balancer"),
    "cosim.topologies": PluginGroup("topology", "cosim.topology.contract:TopologySpec"),
    "cosim.routings": PluginGroup("routing", "cosim.topology.contract:RoutingSpec"),
    "cosim.workloads": PluginGroup("workload", "cosim.workload.contract:WorkloadSpec"),
    "cosim.models": PluginGroup("model", "cosim.models.contract:Model"),
    "cosim.gpus": PluginGroup("gpu", "cosim.gpu.contract:GpuSpec"),
    "cosim.hosts": PluginGroup("host", "cosim.host.contract:HostSpec"),
    "cosim.frameworks": PluginGroup("framework", "cosim.models.contract:Framework"),
    "cosim.collectives": PluginGroup("collective algorithm", "cosim.pattern.contract:Algorithm", "algorithm"),
    "cosim.placements": PluginGroup("placement", "cosim.cluster.contract:Placement"),
    "cosim.formats": PluginGroup("format", "cosim.translation.contract:Format"),
    "cosim.arrivals": PluginGroup("arrival process", "cosim.cluster.contract:Arrival"),
    "cosim.schedulers": PluginGroup("scheduler", "cosim.cluster.schedulers.contract:Scheduler"),
    "cosim.memories": PluginGroup("memory", "cosim.memory.contract:MemorySpec"),
    "cosim.processes": PluginGroup("process", "cosim.processes.contract:ProcessSpec"),
    "cosim.executors": PluginGroup("executor", "cosim.experiment.executors.contract:Executor"),
    "cosim.communications": PluginGroup(
        "communication library", "cosim.formats.pytorch.libraries:CommunicationLibrary"
    ),
    "cosim.studies": PluginGroup("study", "cosim.experiment.studies.contract:Study"),
    "cosim.optimizers": PluginGroup("optimizer", "cosim.experiment.search.contract:Optimizer"),
    "cosim.capture_formats": PluginGroup("capture format", "cosim.captures.contract:CaptureFormat"),
    "cosim.topology_formats": PluginGroup("topology format", "cosim.topology.file_format:TopologyFormat"),
}
"""Every group of entry points."""


@lru_cache(maxsize=1)
def _all() -> dict[str, dict[str, EntryPoint]]:
    found: dict[str, dict[str, EntryPoint]] = {group: {} for group in GROUPS}
    installed = entry_points()
    for group, known in found.items():
        for point in installed.select(group=group):
            other = known.setdefault(point.name, point)
            if other.value != point.value:
                noun = GROUPS[group].noun
                raise ValueError(
                    f"two packages offer the {noun} {point.name!r}: {other.value} and {point.value}"
                )
    return found


def names(group: str) -> tuple[str, ...]:
    """Every name of a group, sorted."""
    return tuple(sorted(_all()[group]))


def nearest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'ring'?"``, or nothing where nothing is near.

    Capitals and the kind of dash don't count. Where names begin with ``name``, the first three are meant:
    ``H100`` is one of several.
    """
    plain = {_plain(other): other for other in known}
    close = [plain[key] for key in sorted(plain) if len(name) > 1 and key.startswith(_plain(name))][:3]
    if not close:
        close = [plain[key] for key in difflib.get_close_matches(_plain(name), list(plain), n=1, cutoff=0.6)]
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def find(group: str, name: str) -> Any:
    """The class or ready-made object behind a name; imports its module and nothing else.

    Raises
    ------
    ValueError
        No such name: suggests the nearest and lists what there is. Or its package is broken, or offers what
        is not of the group's base.
    """
    point, noun = _all()[group].get(name), GROUPS[group].noun
    if point is None:
        known = names(group)
        raise ValueError(
            f"there is no {noun} {name!r}{nearest(name, known)}\n  there are: {', '.join(known)}"
        )
    try:
        found = _loaded(point)
    except Exception as error:  # whatever somebody's package does
        what = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise ValueError(f"the {noun} {name!r} can't be imported: {what}{error}") from error
    check_kind(group, found, f"the {noun} {name!r}, {point.value},")
    return found


@lru_cache(maxsize=1024)
def _loaded(point: EntryPoint) -> Any:
    """What an entry point names: a sweep asks for the same ones thousands of times."""
    return point.load()


def find_in_file(group: str, text: str, folder: Path) -> Any:
    """The class, or ready-made object, that FILE.py:CLASS names; the file is relative to ``folder``.

    Raises
    ------
    ValueError
        No such file or class, it can't be run, or it is not of the group's base.
    """
    module, name, path = load_module(text, folder)
    base = GROUPS[group].load_base()
    found = vars(module).get(name)
    if found is None:
        known = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
        ]
        kind = group.removeprefix("cosim.")
        listed = f"; its {kind}: {', '.join(known)}" if known else f"; it has no {GROUPS[group].noun}"
        raise ValueError(f"{path} has no class {name!r}{nearest(name, known)}{listed}")
    check_kind(group, found, f"{name} in {path}")
    return found


def _one(name: str) -> str:
    """With its article."""
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def check_kind(group: str, found: Any, place: str) -> None:
    """Refuse what can't be one of the group.

    Raises
    ------
    ValueError
        It has another base, or lacks what the base leaves to it; says what it should be. Begins with
        ``place``, the text that says what ``found`` is and where it was found.
    """
    base = GROUPS[group].load_base()
    if isinstance(found, base):
        return
    if not isinstance(found, type) or not issubclass(found, base):
        raise ValueError(f"{place} is not {_one(base.__name__)}: {what_to_write(base, found)}")
    wrong = [*wrong_methods(found, base), *(f"{name}, which it lacks" for name in found.lacks())]
    if wrong:
        raise ValueError(f"{place} needs {', and '.join(wrong)}")


def name_of(group: str, kind: type) -> str | None:
    """The name under which a class is registered, without importing anything."""
    value = f"{kind.__module__}:{kind.__qualname__}"
    return next((name for name, point in sorted(_all()[group].items()) if point.value == value), None)


def refuse_unknown_keys(model: type[BaseModel], data: dict[Any, Any], extra: Iterable[str] = ()) -> None:
    """Raise for the keys that ``model`` doesn't have, each with the nearest one that it has.

    Raises
    ------
    ValidationError
        Located at each unknown key.
    """
    if data.keys() <= model.model_fields.keys():
        return
    known = [*extra, *(info.alias or name for name, info in model.model_fields.items())]
    accepted = {*known, *model.model_fields}
    unknown = [key for key in data if key not in accepted]
    if unknown:
        listed = f"keys here: {', '.join(known)}" if known else "it has no keys"
        raise located(
            model.__name__,
            [
                (
                    (str(key),),
                    f"unknown key {str(key)!r}{nearest(str(key), known)}\n  {listed}",
                    data[key],
                )
                for key in unknown
            ],
        )


def located(title: str, errors: Iterable[tuple[tuple[str | int, ...], str, Any]]) -> ValidationError:
    """A validation error of (path, text, value) each: raised in a validator, an outer one adds its place."""
    return ValidationError.from_exception_data(
        title,
        [InitErrorDetails(type=_error(text), loc=path, input=value) for path, text, value in errors],
    )


def _error(text: str) -> PydanticCustomError:
    return PydanticCustomError("cosim", "{text}", {"text": text})


def folder_of(context: Any) -> Path:
    """Where a scenario's relative paths start, by the context that it is validated with."""
    return context["folder"] if context else Path()


@dataclass(frozen=True)
class Named:
    """Field annotation: a name, a mapping that holds the name, a class in a file, or the made object itself.

    ``also`` are classes whose objects pass as they are, for scenarios built in Python. Paths of plug-ins
    start from the validation context's ``folder``.
    """

    group: str
    also: tuple[type, ...] = ()

    @property
    def key(self) -> str:
        """The key that holds the name."""
        return GROUPS[self.group].key

    def resolve(self, value: Any, folder: Path = Path()) -> Any:
        """The spec that ``value`` describes; the file of a plug-in is relative to ``folder``.

        Raises
        ------
        ValueError
            Unknown name, or not a description at all.
        ValidationError
            The description has mistakes; locations are relative to it.
        """
        noun, base_name = GROUPS[self.group].noun, GROUPS[self.group].base_name
        if isinstance(value, str):
            value = {PLUGIN if is_file_class(value) else self.key: value}
        if isinstance(value, dict):
            return self._described(value, folder)
        if isinstance(value, (GROUPS[self.group].load_base(), *self.also)):
            return value
        if isinstance(value, BaseModel):
            raise ValueError(f"{_one(type(value).__name__)} is not {_one(noun)}: it is no {base_name}")
        known = ", ".join(names(self.group))
        raise ValueError(f"{value!r} is not {_one(noun)}; write {self.key}: NAME\n  there are: {known}")

    def _described(self, value: dict[Any, Any], folder: Path) -> Any:
        noun = GROUPS[self.group].noun
        key = PLUGIN if PLUGIN in value and self.key not in value else self.key
        if key not in value:
            other = next((k for k in ("kind", "model", "algorithm", "type", "name") if k in value), None)
            swap = f", not {other!r}" if other else ""
            known = ", ".join(names(self.group))
            raise ValueError(f"{_one(noun)} needs the key {self.key!r}{swap}\n  there are: {known}")
        name = value[key]
        try:
            if key == PLUGIN:
                found = find_in_file(self.group, str(name), folder)
            else:
                found = find(self.group, str(name))
        except ValueError as error:
            raise located(noun, [((key,), str(error), name)]) from None
        settings = {k: v for k, v in value.items() if k != key}
        if isinstance(found, BaseModel):
            if not settings:
                return found
            from cosim.written import plain

            settings = {k: v for k, v in plain(found).items() if k in type(found).model_fields} | settings
            found = type(found)
        return found.model_validate(settings, context={"folder": folder})

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            lambda value, info: self.resolve(value, folder_of(info.context))
        )
