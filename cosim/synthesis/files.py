"""A workload as Chakra .et, one file per rank, and process groups beside them."""

from __future__ import annotations

from pathlib import Path

from cosim.experiment.scenario import from_document
from cosim.experiment.translate import Translation, translate
from cosim.files.located_yaml import Document
from cosim.formats.chakra.write_collectives import ChakraFormat
from cosim.workload.program import Workload


def write_traces(workload: Workload, out: Path) -> Translation:
    """Write the traces, as ``cosim translate --to chakra`` would.

    Raises
    ------
    InputError
        The folder has files of others.
    """
    ranks = {"kind": "ring", "endpoints": max(workload.world_size, 2), "rate": "100Gbps", "latency": "1us"}
    job = {
        "topology": ranks,
        "network": "fair_share",
        "jobs": [{"name": workload.name, "workload": workload}],
    }
    return translate(
        from_document(Document("synthetic", job), Path(), "synthetic"), ChakraFormat(prefix="trace"), out
    )
