"""Chunks that NCCL cuts data into (``calcCollChunking`` of ``src/enqueue.cc``, ``src/transport/nvls.cc``)."""

from __future__ import annotations

LEAST_CHUNK = 32 << 10
"""Of a tree's by LL128, bytes."""
IN_FLIGHT = 8
"""``NCCL_STEPS``: chunks of a connection that are under way at most."""
NVLS_CHANNELS = 16
"""``NVLS_NCHANNELS_SM90``; each has a chunk of every head under way."""
_RACK_CHANNELS = 24
"""Of Blackwell in one domain (``NVLS_NCHANNELS_SM100_NVL``)."""
_MOST = 128 << 10
"""``NVLS_CHUNKSIZE``."""


def nvls_tree_chunk(size_bytes: int, hosts: int, heads: int) -> int:
    """Bytes of a channel's chunk of an NVLS tree."""
    chunk, at_once = _MOST if hosts < 4 else _MOST // 2, NVLS_CHANNELS * heads
    if size_bytes < 4 * at_once * chunk:
        chunk = min(chunk, 64 << 10)
    return min(chunk, 32 << 10) if size_bytes < at_once * chunk else chunk


def nvls_chunk(size_bytes: int, ranks: int) -> int:
    """Bytes of a channel's chunk of an all-reduce that the switch of a rack adds up."""
    chunk, at_once = _MOST, _RACK_CHANNELS * ranks
    for times, less in ((64, 64 << 10), (8, 32 << 10), (2, 16 << 10)):
        if size_bytes < times * at_once * chunk:
            chunk = less
    return chunk
