"""A library whose kernels say in their names what they do."""

from __future__ import annotations

from pydantic import Field

from cosim.plugins import CommunicationLibrary


class Loom(CommunicationLibrary):
    """Kernels that begin with a word of their own."""

    begins: str = Field("loom_", description="how its kernels' names begin")

    def kind(self, kernel: str) -> str | None:
        return kernel.removeprefix(self.begins) if kernel.startswith(self.begins) else None
