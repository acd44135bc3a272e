"""The control of my_control.py, compiled."""

from my_control import Aimd


class AimdInC(Aimd):
    """The same in C"""

    kernel = "aimd.c"  # and the function aimd in it

    def parameters(self):
        return [self.packets, self.keep]
