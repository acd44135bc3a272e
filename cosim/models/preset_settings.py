"""A workload beside its preset: which settings are the preset's, which another, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from cosim.gpu.catalogue import read
from cosim.gpu.efficiency import OUTSIDE
from cosim.models.frameworks import Megatron, PyTorch
from cosim.models.presets import ENGINE, PRESETS, PresetName
from cosim.spec import Spec

if TYPE_CHECKING:
    from cosim.models.catalogue.workload import ModelWorkload
    from cosim.models.contract import Framework


def presets_of(framework: Framework) -> Iterator[PresetName]:
    """Settings of scripts that train in a framework."""
    kinds = {"pytorch": PyTorch, "megatron": Megatron}
    for name, preset in PRESETS.items():
        if not preset.serves and type(framework) is kinds[preset.framework["kind"]]:
            yield name


def unchanged(name: PresetName, workload: ModelWorkload) -> set[str]:
    """Settings that are as the preset has them, those of the framework as ``framework.NAME``."""
    return {setting for setting, preset, own in _beside(name, workload) if preset == own}


def said_of(name: PresetName, workload: ModelWorkload) -> Iterator[str]:
    """Lines for a report: what the preset is, and what the scenario has in its place, which holds."""
    preset = PRESETS[name]
    settings = ", ".join(f"{setting} {_told(value)}" for setting, value, _ in _beside(name, workload))
    yield f"preset {name}: {settings} ({preset.source}); held against: {preset.held}"
    for setting, value, own in _beside(name, workload):
        if value != own:
            yield f"preset {name} has {setting} {_told(value)}; the scenario's {_told(own)} holds"


def widened(
    name: PresetName, workload: ModelWorkload, error: tuple[float, float], *, known: bool = True
) -> tuple[float, float]:
    """A job's relative error, common and own: more on a GPU that the preset wasn't held against, and with
    settings that aren't its, or where the scenario doesn't say that it is its script (``known``).
    """
    preset, gpu = PRESETS[name], workload.gpu
    outside = getattr(gpu, "name", None) not in {read(one).name for one in preset.gpus}
    other = known and any(value != own for _, value, own in _beside(name, workload))
    common, own = error
    unsaid = 0.0 if known else ENGINE
    return common, hypot(own, preset.error, OUTSIDE * outside, OUTSIDE * other, unsaid)


def _beside(name: PresetName, workload: ModelWorkload) -> Iterator[tuple[str, Any, Any]]:
    """Each setting of the preset, its value there, and the workload's."""
    preset = PRESETS[name]
    for prefix, spec, settings in (
        ("", workload, preset.settings),
        ("framework.", workload.framework, preset.framework),
    ):
        made = _made(spec, {key: value for key, value in settings.items() if key != "kind"})
        for setting, value in made.items():
            yield prefix + setting, value, getattr(spec, setting)


def _made(spec: Spec, settings: dict[str, Any]) -> dict[str, Any]:
    """Values as the spec's fields have them: ``256MiB`` in bytes."""
    fields = type(spec).model_fields
    return {
        key: TypeAdapter(fields[key].rebuild_annotation()).validate_python(value)
        for key, value in settings.items()
    }


def _told(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
