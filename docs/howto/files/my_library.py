"""The control of my_control.py, in a library that is there: ctypes finds it, and so would cffi."""

from ctypes import CDLL
from pathlib import Path

from my_compiled import AimdInC


class AimdInLibrary(AimdInC):
    """The same from libaimd.so"""

    kernel = CDLL(str(Path(__file__).with_name("libaimd.so"))).aimd
