"""Classes that are no plug-ins, for the pages to show how they are refused."""

from cosim.plugins import NetworkSpec, Placement


class Unrelated:
    """Without a base"""


class NoBuild(NetworkSpec):
    """Without its method"""


class Otherwise(Placement):
    """With another signature"""

    def choose(self):
        return []
