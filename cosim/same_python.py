"""Another process of this Python, which imports what this one would."""

from __future__ import annotations

import sys
from pathlib import Path


def same_python(code: str, *arguments: str) -> list[str]:
    """A command that runs ``code``, with ``sys.argv[1:]`` as given, importing from this process's folders in
    their order, wherever it is started.

    By itself ``python -c`` looks into the folder where it is started first, as ``python -m`` does: beside a
    checkout it would import that cosim, and not the one that is installed and asks.

    >>> import subprocess
    >>> done = subprocess.run(same_python("print(sys.argv[1])", "hello"), capture_output=True, text=True)
    >>> done.stdout.split()
    ['hello']
    """
    folders = [one or str(Path.cwd()) for one in sys.path]
    # What its environment alone adds, a PYTHONPATH of its own, comes first, as ever.
    order = f"sys.path[:] = [one for one in sys.path if one not in {folders!r}] + {folders!r}"
    return [sys.executable, "-P", "-c", f"import sys; {order}; {code}", *arguments]
