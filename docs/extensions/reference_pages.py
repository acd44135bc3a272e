"""The reference: a page for each kind of thing that a scenario names, made of the specs themselves.

What stands here is what ``cosim list KIND NAME`` prints: each setting, what it takes with its unit, its
default, and what it is for.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gallery_pages import put
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx.application import Sphinx

from cosim.experiment.fields import describe, models_in, show, show_default
from cosim.experiment.scenario import Scenario
from cosim.experiment.search.design import Design
from cosim.experiment.sweep import Sweep
from cosim.registry import GROUPS, find, names
from cosim.results.quantities import QUANTITIES
from cosim.results.run_schema import Column, columns, message_columns
from cosim.results.series import SERIES_TEXTS
from cosim.results.store import FORMAT
from cosim.results.tables import TEXTS
from cosim.spec import Spec

WHERE = {
    "cosim.networks": (
        "network: {model: NAME, ...}",
        "how long a message takes",
        "network",
    ),
    "cosim.controls": (
        "network: {model: congestion, control: {kind: NAME, ...}}",
        "how fast a sender sends",
        "control",
    ),
    "cosim.balancers": (
        "network: {model: fair_share, balancer: {kind: NAME, ...}}",
        "which of its equal-cost paths a message takes",
        "balancer",
    ),
    "cosim.topologies": (
        "topology: {kind: NAME, ...}",
        "nodes and links",
        "topology",
    ),
    "cosim.routings": (
        "topology: {kind: ..., routing: {kind: NAME, ...}}",
        "which links a message takes",
        "routing",
    ),
    "cosim.workloads": (
        "jobs: [{workload: {kind: NAME, ...}}]",
        "what a job computes and sends",
        "workload",
    ),
    "cosim.models": (
        "workload: {kind: model, model: {kind: NAME, ...}}",
        "layers and sizes",
        "model",
    ),
    "cosim.gpus": (
        "workload: {kind: model, gpu: {kind: NAME, ...}}",
        "how fast kernels run",
        "gpu",
    ),
    "cosim.hosts": (
        "workload: {kind: model, host: {kind: NAME, ...}}",
        "how long it takes to issue operators",
        "host",
    ),
    "cosim.communications": (
        "workload: {kind: pytorch, libraries: [{kind: NAME, ...}]}",
        "which kernels of a trace communicate, and what they send",
        "library",
    ),
    "cosim.frameworks": (
        "workload: {kind: model, framework: {kind: NAME, ...}}",
        "which kernels and messages a model becomes",
        "framework",
    ),
    "cosim.collectives": (
        "collectives: {all_reduce: {algorithm: NAME, ...}}",
        "which messages carry a collective",
        "collective",
    ),
    "cosim.placements": (
        "jobs: [{placement: {kind: NAME, ...}}]",
        "which endpoints a job's ranks sit on",
        "placement",
    ),
    "cosim.formats": (
        "cosim translate SCENARIO --to NAME",
        "files for other simulators",
        "format",
    ),
    "cosim.arrivals": (
        "jobs: [{count: 8, arrival: {kind: NAME, ...}}]",
        "when jobs start",
        "arrival",
    ),
    "cosim.schedulers": (
        "scheduler: {kind: NAME, ...}",
        "when jobs that share a fabric start iterations, their paths and priorities",
        "scheduler",
    ),
    "cosim.memories": (
        "memory: {kind: NAME, ...}",
        "how long loads and stores of remote memory take, and who waits for whom",
        "memory",
    ),
    "cosim.processes": (
        "processes: [{kind: NAME, ...}]",
        "what happens beside the jobs: controllers, agents",
        "processes",
    ),
    "cosim.executors": (
        "cosim run SWEEP --executor NAME",
        "where the runs of a sweep are run",
        "executor",
    ),
    "cosim.capture_formats": (
        "cosim analyse CAPTURE --format NAME",
        "which captures are read, and what these say of traffic",
        "capture-format",
    ),
    "cosim.topology_formats": (
        "topology: {kind: file, file: FILE, format: NAME}",
        "which files of topologies are read, and what they list",
        "topology-format",
    ),
    "cosim.studies": (
        "cosim study NAME",
        "what takes several runs of a scenario",
        "study",
    ),
    "cosim.optimizers": (
        "cosim search DESIGN --optimizer NAME",
        "which point of a design is run next",
        "optimizer",
    ),
}
"""For each group: how a scenario says it, what it decides, and the how-to that writes one."""


def _doc(found: Any) -> str:
    return inspect.cleandoc(found.about() if isinstance(found, Spec) else found.__doc__ or "")


def _prose(text: str) -> str:
    """A docstring, which is reStructuredText."""
    return f"``````{{eval-rst}}\n{text}\n``````\n" if text else ""


def _fields(found: Any) -> Iterator[str]:
    model = found if inspect.isclass(found) else type(found)
    if not issubclass(model, BaseModel) or not model.model_fields:
        return
    for key, info in model.model_fields.items():
        yield _field(found, key, info)


def _field(found: Any, key: str, info: FieldInfo) -> str:
    if isinstance(found, BaseModel):
        default = f"here `{show(info, getattr(found, key)) or 'empty'}`"
    elif info.is_required():
        default = "required"
    else:
        default = f"default `{show_default(info) or 'empty'}`"
    said = _escape(info.description or "") or " "
    return f"`{info.alias or key}` · {default}\n: {said} [{_escape(describe(info))}]{{.takes}}\n"


def _escape(text: str) -> str:
    return (
        text.replace("<", "\\<")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("[", "\\[")
        .replace("]", "\\]")
    )


def _inner(found: Any, path: str = "") -> Iterator[str]:
    """The settings of mappings inside, each under its path: ``hosts``, ``jobs[...]``."""
    model = found if inspect.isclass(found) else type(found)
    for key, info in getattr(model, "model_fields", {}).items():
        for inner, listed in models_in(info):
            where = f"{path}{info.alias or key}{'[...]' if listed else ''}"
            yield f"**Inside `{where}`**\n"
            yield from _fields(inner)
            yield from _inner(inner, f"{where}.")


def _group_page(group: str) -> str:
    single = GROUPS[group].noun
    said, decides, howto = WHERE[group]
    fence = "console" if said.startswith("cosim") else "yaml"
    shown = f"$ {said}" if fence == "console" else said
    parts = [
        f"# {single.upper() if single == 'gpu' else single.capitalize()}\n",
        f"Decides {decides}. `cosim list {howto}` prints this page, with what other packages add.\n",
        f"```{fence}\n{shown}\n```\n" if fence == "yaml" else f"```text\n{shown}\n```\n",
        f"One of your own: {{doc}}`../../howto/{howto}`.\n",
    ]
    for name in names(group):
        found = find(group, name)
        fields = [*_fields(found), *_inner(found)]
        parts += [f"({howto}-{name})=\n## {name}\n", _prose(_doc(found)), *fields]
    return "\n".join(parts)


def _keys_page(title: str, text: str, model: type[BaseModel], more: str = "") -> str:
    return "\n".join([f"# {title}\n", text, *_fields(model), *_inner(model), more])


_COLUMNS = f"""# Columns of a run

What `columns.npz` in `--out` has, version {FORMAT}. `cosim schema run` prints this page as JSON, with a JSON
schema of `summary.json`.

Extents of one name are equal in one run: each column of `O` has a row for each operation. `*` is a length of
the column's own. A name ends with its unit: `_ps` picoseconds, `_bytes`, `_bps` bit/s. Without one it is a
number, a place in another column, or text."""
_WHEN = {
    "always": "In every run",
    "folded": "Where a job is folded",
    "record": "Where `record` asks for queues or rates",
}


def _columns_page() -> str:
    listed = columns()
    parts = [f"## {head}\n\n{_listed(o for o in listed if o.when == when)}" for when, head in _WHEN.items()]
    messages = "## Messages\n\nWhat `messages.npz` or `messages.parquet` has, sorted by end."
    return "\n\n".join([_COLUMNS, *parts, messages, _listed(message_columns())])


def _listed(columns: Iterable[Column]) -> str:
    return "\n".join(
        f"`{one.name}` · {one.type}, {_escape(', '.join(one.shape)) or 'one'}\n: {_escape(one.text)}\n"
        for one in columns
    )


def write(folder: Path) -> None:
    """Write a page for each group, one for scenarios, one for sweeps."""
    for group in GROUPS:
        put(folder / f"{group.removeprefix('cosim.')}.md", _group_page(group))
    put(
        folder / "scenario.md",
        _keys_page(
            "Scenario",
            "The keys of a scenario file. Times, sizes and rates carry their unit: `10us`, `64MiB`, "
            "`100Gbps`, `50GB/s`. {doc}`../schema` completes them in an editor.\n",
            Scenario,
        ),
    )
    put(folder / "columns.md", _columns_page())
    tables = "\n".join(
        f"## `run.{name}`\n\n"
        + "\n".join(f"`{column}`\n: {_escape(text)}\n" for column, text in texts.items())
        for name, texts in {**TEXTS, **SERIES_TEXTS}.items()
    )
    put(
        folder / "tables.md",
        "# Tables of a run\n\nEach column is a numpy array and an attribute, `run.links.busy_ps`; "
        "`to_pandas()` and `to_arrow()` have the same names. `run.links` has what the network counted there "
        f"besides (`queue_max_bytes`, `marks` ...).\n\n{tables}",
    )
    measures = "\n".join(f"`{name}`\n: {_escape(one.text)}\n" for name, one in QUANTITIES.items())
    put(
        folder / "sweep.md",
        _keys_page(
            "Sweep",
            "The keys of a file that runs a scenario many times; `cosim run` tells it from a scenario by its "
            "`axes`.\n",
            Sweep,
            f"## Measures\n\n{measures}",
        ),
    )
    put(
        folder / "design.md",
        _keys_page(
            "Design",
            "The keys of a file for `cosim search`: those of a sweep, and what to choose by.\n",
            Design,
            "`objective` and `constraints` are of the measures of {doc}`sweep`.\n",
        ),
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "names"))
    return {"parallel_read_safe": True}
