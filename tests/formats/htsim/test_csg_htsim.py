"""csg-htsim runs what we write to its end, and takes as long as its acknowledgements and headers explain."""

from pathlib import Path

import cosim
from tests.formats.consumers import FAT_TREE, htsim

STEPS = 30
"""Of a ring all-reduce of 16."""


def test_every_flow_finishes_about_when_ours_does(tmp_path: Path) -> None:
    scenario = cosim.loads(FAT_TREE)
    theirs, flows = htsim(tmp_path, scenario)
    assert theirs.count == flows
    ours = cosim.run(scenario).records.end_ps
    # Each step waits for the last acknowledgement: up to six links back. Headers are 64 bytes of 4,000.
    acknowledged = ours + STEPS * 6_000_000
    assert ours < theirs.end_ps < acknowledged * 1.03
