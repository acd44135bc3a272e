"""How Inductor splits sums over rows."""

from __future__ import annotations

_GPU_BLOCKS = 132 * 2048 // 256
"""Blocks of 256 threads that fill an H100."""
_COLUMNS, _ROWS = 128, 4
"""What a thread block has side by side, and a thread one below the other."""


def row_blocks(rows: int, columns: int) -> int:
    """Into how many blocks of rows Inductor splits a sum over them (``choices.reduction_split_factor``).

    A thread adds up 32 numbers at least, and as many more as keep an H100 just filled; 512 where there is
    enough for that.
    """
    numbers, least, most = rows * columns, 32, 512
    thread = least
    if numbers >= most * 256 * _GPU_BLOCKS:
        thread = _even(rows, most, 50)
    elif numbers >= least * 256 * _GPU_BLOCKS:
        together = -(-_GPU_BLOCKS // -(-columns // _COLUMNS))
        thread = max(_even(rows, -(-rows // (_ROWS * together)), 20), least)
    return -(-rows // (_ROWS * thread))


def _even(rows: int, wanted: int, within: int) -> int:
    """A divisor of ``rows`` near what is wanted, if there is one."""
    nearest = min((n for n in range(1, rows + 1) if rows % n == 0), key=lambda n: abs(n - wanted))
    return nearest if abs(nearest - wanted) < within else wanted
