"""FAST: what runs, in C, behind one header (``src/kernel.h``), which Python reads, too.

``layout`` reads the header: records as numpy types, containers, functions. ``library`` loads the shared
object and calls it: the one file that knows ctypes. ``columns`` is what Python has of a container. ``build``
compiles.

==========  ======================================================================
``plugin``  a plug-in's C: compiled when a run first needs it, and kept in the user's cache
==========  ======================================================================
"""

from cosim.kernel.columns import Columns
from cosim.kernel.layout import record
from cosim.kernel.library import kernel

__all__ = ["Columns", "kernel", "record"]
