"""A control from a file: ``control: {plugin: my_cc.py:MyControl, its fields}``."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, ValidationError, field_validator

from cosim.errors import InputError, Location
from cosim.network.congestion.control import Control
from cosim.registry import nearest


def plugged_in(control: Any) -> Any:
    """``{plugin: FILE:CLASS, ...}`` is short for ``{kind: plugin, plugin: FILE:CLASS, settings: {...}}``."""
    if isinstance(control, dict) and "plugin" in control and "kind" not in control:
        settings = {key: value for key, value in control.items() if key != "plugin"}
        return {"kind": "plugin", "plugin": control["plugin"], "settings": settings}
    return control


class Plugin(Control):
    """A class of a Python file: {plugin: FILE.py:CLASS, its fields}"""

    uses_weight: ClassVar[bool] = True  # not known before it is loaded
    uses_chance: ClassVar[bool] = True

    plugin: str = Field(description="FILE.py:CLASS; the file relative to the scenario's")
    settings: dict[str, Any] = Field({}, description="fields of the class")

    @field_validator("plugin")
    @classmethod
    def _file_and_class(cls, plugin: str) -> str:
        file, colon, name = plugin.rpartition(":")
        if not colon or not file.endswith(".py") or not name.isidentifier():
            raise ValueError(f"{plugin!r} is not FILE.py:CLASS, as in my_cc.py:MyControl")
        return plugin

    def load(self, base: Path) -> Control:
        """The control.

        Raises
        ------
        InputError
            No such file or class, it can't be imported, it isn't a control, or its fields are wrong.
        """
        file, _, name = self.plugin.rpartition(":")
        path = base / file
        place = Location(str(path), None, name)
        if not path.is_file():
            raise InputError(
                f"there is no file {path}", hint="plugin: FILE.py:CLASS, relative to the scenario"
            )
        module = _import(str(path.resolve()), hashlib.sha256(path.read_bytes()).hexdigest())
        found = getattr(module, name, None)
        if found is None:
            known = [key for key, value in vars(module).items() if _is_control(value)]
            listed = f"; its controls: {', '.join(known)}" if known else "; it has no control"
            raise InputError(f"{path} has no class {name!r}{nearest(name, known)}{listed}")
        if not _is_control(found):
            raise InputError(
                f"{name} in {path} is not a control",
                hint="class NAME(Control) with update(self, c); Control is in cosim.network.congestion",
            )
        try:
            made: Control = found.model_validate(self.settings)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise InputError(f"{name}: {key}: {first['msg']}", location=place) from None
        return made


def _is_control(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Control) and value is not Control


@lru_cache(maxsize=64)
def _import(path: str, digest: str) -> Any:
    name = f"cosim_plugin_{digest[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        where = Location(path, getattr(error, "lineno", None), None)
        raise InputError(f"can't be imported: {type(error).__name__}: {error}", location=where) from error
    return module
