"""Compiles the kernel when hatchling makes a wheel, by ``cosim/kernel/build.py``."""

import importlib.util
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface[Any]):
    """Makes the shared object in the checkout, and has it in the wheel."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # It can't be imported as cosim.kernel.build: cosim's requirements aren't there yet.
        spec = importlib.util.spec_from_file_location(
            "build_kernel", Path(self.root, "cosim/kernel/build.py")
        )
        assert spec is not None
        assert spec.loader is not None
        self.kernel = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.kernel)

    def dependencies(self) -> list[str]:
        """What compiling requires, which PEP 517 has pip ask for: zig, where there is no compiler."""
        if not self.kernel.is_wanted() or self.kernel.find_compiler() is not None:
            return []
        return [self.kernel.ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile, for any version of Python, and leave no bytecode of this file in the checkout."""
        cached = Path(__spec__.cached)
        cached.unlink(missing_ok=True)
        with suppress(OSError):  # none, or of others
            cached.parent.rmdir()
        if not self.kernel.is_wanted():
            return
        try:
            self.kernel.build()
        except (self.kernel.BuildError, OSError) as error:
            self.app.abort(
                f"The kernel can't be built: {error}\n"
                "`COSIM_KERNEL=none pip install ...` installs cosim without it: the reference engine runs."
            )
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{self.kernel.platform_tag()}"
        build_data["artifacts"].append(f"/{self.kernel.FILE.relative_to(self.root).as_posix()}")
