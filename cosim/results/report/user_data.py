"""What each of a link's largest pairs of endpoints sent most for, where the run keeps its messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.results.report.source import I64, ReportSource

Array = NDArray[Any]
_SENT = "sends"


def user_data(source: ReportSource, head: dict[str, Any]) -> dict[str, Array]:
    """Column ``use_what``, a place in ``use_texts``, beside the other columns ``use_*``."""
    messages, found = source.messages, source.columns
    if messages is None or not len(found["use_src"]):
        return {}
    nodes = len(found["node_name"])
    pair = messages.src.astype(np.int64) * nodes + messages.dst
    job, op = messages.job.astype(np.int64), messages.op.astype(np.int64)
    width = int(op.max()) + 1
    key = (pair * len(source.summary.jobs) + job) * width + op
    keys, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    size = np.bincount(inverse, weights=messages.size_bytes.astype(np.float64), minlength=len(keys))
    pair_of = pair[first]
    largest = np.lexsort((-size, pair_of))
    pairs, at = np.unique(pair_of[largest], return_index=True)
    most = first[largest[at]]
    wanted = found["use_src"] * nodes + found["use_dst"]
    place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    rows = np.where(pairs[place] == wanted, most[place], -1)
    names = _names(source)
    texts = [names.get((int(job[row]), int(op[row])), _SENT) if row >= 0 else "" for row in rows.tolist()]
    head["use_texts"] = [*dict.fromkeys(texts)]
    number = {text: k for k, text in enumerate(head["use_texts"])}
    codes: I64 = np.array([number[text] for text in texts], np.int64)
    return {"use_what": codes}


def _names(source: ReportSource) -> dict[tuple[int, int], str]:
    """Names of collectives by job and number in the program of their first rank; both, where two have one."""
    found = source.columns
    names: dict[tuple[int, int], dict[str, None]] = {}
    columns = (found[f"collective_{name}"].tolist() for name in ("job", "op", "kind", "name"))
    for job, op, kind, name in zip(*columns, strict=True):
        names.setdefault((job, op), {})[f"{kind} {name}"] = None
    return {key: " or ".join(list(several)[:2]) for key, several in names.items()}
