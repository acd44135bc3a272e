"""What a network is looked at for on the wire: queues of links, rates of connections."""

from __future__ import annotations

import numpy as np

from cosim.errors import ProtocolError
from cosim.network.simulator import QueueSample, RateSample
from cosim.protocol.flat_flows import array
from cosim.protocol.v1 import network_simulator_pb2 as pb

_ENDS = ("job", "src", "dst")


def encode_sample(queues: QueueSample | None, rates: RateSample | None, has_work: bool) -> pb.Sampled:
    """As a message; columns of what was not asked for stay empty."""
    made = pb.Sampled(has_work=has_work)
    for sample in (queues, rates):
        for name, values in {} if sample is None else sample._asdict().items():
            getattr(made, name).extend(values.tolist())
    return made


def decode_queues(found: pb.Sampled, links: int, name: str) -> QueueSample:
    """float64[links] each.

    Raises
    ------
    ProtocolError
        Columns of another length; ``name`` sent them.
    """
    columns = [array(getattr(found, column), np.float64) for column in QueueSample._fields]
    if {*map(len, columns)} != {links}:
        raise ProtocolError(f"{name} was asked for {links} queues, and sent {[*map(len, columns)]}")
    return QueueSample(*columns)


def decode_rates(found: pb.Sampled, name: str) -> RateSample:
    """One value of each column for each connection that sends.

    Raises
    ------
    ProtocolError
        Columns that differ in length; ``name`` sent them.
    """
    columns = [
        array(getattr(found, column), np.int32 if column in _ENDS else np.float64)
        for column in RateSample._fields
    ]
    if len({*map(len, columns)}) > 1:
        raise ProtocolError(f"{name} sent columns of rates that differ in length: {[*map(len, columns)]}")
    return RateSample(*columns)
