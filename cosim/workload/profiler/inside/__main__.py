"""One rank of a training script, in a process of its own: ``python -m cosim.workload.profiler.inside ORDER``.

ORDER is a JSON file (see :class:`cosim.workload.profiler.launch.Order`); the answer goes beside it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Run and write the answer; leave without the interpreter's farewell, which fake streams don't
    survive.
    """
    order_file = Path(sys.argv[1])
    order = json.loads(order_file.read_text())
    from cosim.workload.profiler.inside.session import Session

    answer = Session(order).run_script()
    order_file.with_suffix(".answer").write_text(json.dumps(answer))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


main()
