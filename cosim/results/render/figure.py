"""Figures without a display: matplotlib, imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cosim.errors import InputError, Location, install_extra
from cosim.files.whole import keep_others, whole_file

COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#999933", "#777777", "#000000")
"""Okabe and Ito's, which people with any colour vision tell apart, with olive for yellow."""
MARKERS = "osD^"
"""The next after each round of colours."""

_SPLIT_ROWS = 2
_SIGNS = {".png": "Software\0cosim", ".svg": "<dc:title>cosim<", ".pdf": "/Creator (cosim)"}
"""What says that cosim drew a file: what matplotlib makes of our name in its metadata."""


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def check_figure(path: str | Path) -> None:
    """Whether a figure can be drawn, so that it is known before a run and not after it.

    Raises
    ------
    InputError
        matplotlib is not installed, files with this ending are no figures, or there is a file that cosim
        did not draw.
    """
    new_figure([1.0], 1, 1.0)
    sign = _SIGNS.get(Path(path).suffix)
    if sign is None:
        raise InputError(
            f"no figure can be written so: it should end in {', '.join(_SIGNS)}", location=Location(str(path))
        )
    keep_others(Path(path), sign, "figure")


def new_figure(heights: Sequence[float], columns: int, width: float) -> tuple[Any, list[list[Any]]]:
    """A figure, and its panels row by row; a third row is one panel over all columns.

    Raises
    ------
    InputError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(
            "figures need matplotlib, which is not installed", hint=install_extra("plot")
        ) from error
    figure = Figure(figsize=(width, sum(heights) + 0.6), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=list(heights))
    panels = []
    for row in range(len(heights)):
        whole = row >= _SPLIT_ROWS
        cells = [grid[row, :]] if whole else [grid[row, column] for column in range(columns)]
        panels.append([figure.add_subplot(cell) for cell in cells])
    for panel in (one for row in panels for one in row):
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure as the suffix says; the same bytes for the same figure.

    Raises
    ------
    InputError
        The file can't be written, has another ending than .png, .svg or .pdf, or there is one that cosim
        did not draw.
    """
    import matplotlib

    check_figure(path)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {})
    metadata = {"Software" if path.suffix == ".png" else "Creator": "cosim", **undated}
    try:
        with matplotlib.rc_context({"svg.hashsalt": "cosim"}), whole_file(path) as part:
            figure.savefig(part, dpi=150, metadata=metadata)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"can't be written: {why}", location=Location(str(path))) from error
    return path
