"""What matters: a row for each setting that moves an iteration, what moves it most first."""

from __future__ import annotations

from cosim.results.render.page import Lines, Page, PageTable, Section
from cosim.results.sensitivity import SMALL, WhatMatters


def sensitivity_page(found: WhatMatters) -> Page:
    """A column for each job: by how many percent 1 % more of a setting changes its mean iteration."""
    shown = [one for one in found.tried if one.most >= SMALL]
    jobs = list(found.tried[0].of_job) if found.tried else []
    rows = [["what matters: 1 % more of", "which is", *jobs]]
    rows += [[f"  {one.setting}", one.value, *(f"{one.of_job[job]:+.2f} %" for job in jobs)] for one in shown]
    left = len(found.tried) - len(shown)
    said = [f"  {left} other settings move nothing by {SMALL:g} % or more"] if left else []
    if found.interrupted:
        said.append("  interrupted: not all settings were tried")
    return [Section([PageTable(rows, left=(0, 1)), *([Lines(said)] if said else [])])]
