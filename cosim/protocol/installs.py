"""Simulators that no package brings: the user builds them by upstream's instructions and names the folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cosim.errors import LaunchError


@dataclass(frozen=True)
class Install:
    """A folder that an environment variable names.

    Attributes
    ----------
    name, variable
        The simulator, and the environment variable that names its folder.
    library_name, headers
        A library anywhere below the folder, and a header in it: what a build needs.
    how
        What the user does to get them.
    """

    name: str
    variable: str
    library_name: str
    headers: str
    how: str

    def root(self) -> Path:
        """The folder.

        Raises
        ------
        LaunchError
            The variable is not set, or doesn't name a folder.
        """
        named = os.environ.get(self.variable, "")
        if not named:
            raise LaunchError(f"{self.name} is not known here: {self.variable} is not set\n  {self.how}")
        folder = Path(named).expanduser().resolve()
        if not folder.is_dir():
            raise LaunchError(f"{self.variable} is {named}, which is not a folder\n  {self.how}")
        return folder

    def library(self) -> Path:
        """The library.

        Raises
        ------
        LaunchError
            As :meth:`root`; or the library or the headers are missing: says which, and where they should be.
        """
        root = self.root()
        found = self._below(root, self.library_name)
        absent = [] if found else [f"{self.library_name}, anywhere below it"]
        if not (root / self.headers).is_file():
            absent.append(self.headers)
        if absent:
            raise LaunchError(f"{self.variable} is {root}, which lacks {' and '.join(absent)}\n  {self.how}")
        return found[0]

    @staticmethod
    def _below(root: Path, name: str) -> list[Path]:
        """Where a file is; in the folder of builds first, which spares a walk through all sources."""
        return sorted((root / "build").rglob(name)) or sorted(root.rglob(name))

    def program(self, name: str, variable: str) -> Path:
        """An executable below the folder, or the one that ``variable`` names.

        Raises
        ------
        LaunchError
            There is none; says where it was looked for.
        """
        if named := os.environ.get(variable, ""):
            path = Path(named).expanduser().resolve()
            if not (path.is_file() and os.access(path, os.X_OK)):
                raise LaunchError(f"{variable} is {named}, which is not a program that can be run")
            return path
        for path in self._below(self.root(), name):
            if path.is_file() and os.access(path, os.X_OK):
                return path
        raise LaunchError(
            f"{self.variable} is {self.root()}, and there is no program {name} below it\n  {self.how}"
        )


ASTRA_SIM = Install(
    "ASTRA-sim",
    "ASTRASIM_ROOT",
    "libAnalytical_Congestion_Aware.a",
    "extern/network_backend/analytical/include/astra-network-analytical/congestion_aware/Topology.h",
    "clone ASTRA-sim with its submodules, run build/astra_analytical/build.sh, then"
    " export ASTRASIM_ROOT=<the clone>",
)
