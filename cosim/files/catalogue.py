"""A catalogue: one YAML file for each name, in a folder of the package, as a user's file would be."""

from __future__ import annotations

from pathlib import Path
from typing import Generic

from cosim.errors import WorkloadError
from cosim.files import located_yaml
from cosim.files.located_yaml import Model


class Catalogue(Generic[Model]):
    """Models by the names of their files; ``key`` is what a file says its model under, ``gpu``."""

    def __init__(self, folder: Path, model: type[Model], key: str) -> None:
        self._folder, self._model, self._key = folder, model, key
        self._read: dict[str, Model] = {}

    def names(self) -> list[str]:
        """Every name, sorted."""
        return sorted(path.stem for path in self._folder.glob("*.yaml"))

    def read(self, name: str) -> Model:
        """What a name's file says; read once.

        Raises
        ------
        ValueError
            There is none of that name: says which there are.
        """
        if name not in self._read:
            if name not in self.names():
                known = ", ".join(self.names())
                raise ValueError(f"there is no {self._key} {name!r} in the catalogue; there are: {known}")
            table = located_yaml.read(self._folder / f"{name}.yaml", WorkloadError)
            self._read[name] = located_yaml.as_model(table, self._model, WorkloadError, self._key)
        return self._read[name]

    def constant(self, name: str) -> Model:
        """As a module has it, by a name in capitals: ``A100_80GB`` is what ``a100-80gb.yaml`` says.

        Raises
        ------
        AttributeError
            No such name.
        """
        if name.startswith("_") or name != name.upper():
            raise AttributeError(f"the catalogue of {self._key}s has no attribute {name!r}")
        try:
            return self.read(name.lower().replace("_", "-"))
        except ValueError as error:
            raise AttributeError(str(error)) from error
