"""Bytes from endpoint to endpoint, as a CSV file: a traffic matrix."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.plugins import Format, Says


class TrafficMatrix(Format):
    """How many bytes each endpoint sends to each other one"""

    says: ClassVar[frozenset[Says]] = frozenset({Says.MESSAGES, Says.COLLECTIVES, Says.ALGORITHMS})

    file: str = Field("matrix.csv", description="name of the file")

    def write(self, source, out, report, progress):
        messages = source.run.messages
        n = source.topology.num_endpoints
        matrix = np.zeros((n, n), np.int64)
        np.add.at(matrix, (messages.src, messages.dst), messages.size_bytes)
        np.savetxt(out / self.file, matrix, fmt="%d", delimiter=",")
        report.written("messages", len(messages.src), self.file)
