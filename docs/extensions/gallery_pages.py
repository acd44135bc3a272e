"""The gallery: a page for each file in ``scenarios/``, with its question, its answer and its picture."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
PICTURES = ROOT / "docs" / "gallery" / "pictures"

KINDS = {
    "One job": [
        "quickstart",
        "llama3-70b",
        "profiled-llama",
        "compiled-llama",
        "one-h100",
        "fsdp-llama",
        "host-stalls",
        "pipeline-schedules",
        "async-tensor-parallel",
        "nemotron-nano",
        "generate",
        "requests",
        "serving",
        "decode-gpus",
    ],
    "Which design": ["which-fabric"],
    "Collectives and topologies": [
        "ring-all-reduce",
        "hierarchical",
        "in-network",
        "device-all-reduce",
        "device-overlap",
        "tacos",
        "imported",
        "synthetic",
    ],
    "Fabrics": ["dragonfly", "planes", "direct-connect", "topoopt", "circuits"],
    "Jobs that share a fabric": [
        "two-jobs",
        "unfair-exact",
        "unfair-exact-overlong",
        "background",
        "simai-sharing",
    ],
    "Schedulers": ["cassini", "crux", "cluster-queue"],
    "Processes": ["parameter-server", "circuit"],
    "Congestion control": [
        "incast",
        "pfc-victim",
        "credits",
        "many-flows",
        "mltcp",
        "unfair-dcqcn",
        "plug-in",
        "cc-shootout",
        "why-not-synthetic",
    ],
    "Pipelines and staleness": ["pipedream-vgg16", "sapipe", "local-sgd"],
    "Memory and rates by design": ["comet", "comet-clusters", "libra"],
    "Load balancing": ["load-balancers"],
    "What breaks": ["link-failure", "slow-link", "failures-54-days"],
    "A packet simulator in the loop": ["closed-loop-ns3", "incast-rdma", "hybrid-ns3"],
}
"""Headings of the gallery, and what stands under each; what is named nowhere stands under the last."""
LAST = "More"


def question(scenario: Path) -> str:
    """The comment that a scenario begins with."""
    lines = []
    for line in scenario.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines)


def short_question(scenario: Path) -> str:
    """Its first sentence that asks something; its first sentence where none does."""
    text = " ".join(line.strip() for line in question(scenario).splitlines())
    sentences = re.findall(r"[^.?:]+(?:\.(?=\w)[^.?:]*)*[.?:]", text) or [text]
    asked = [one for one in sentences if one.endswith("?")]
    return (asked or sentences)[0].strip().removesuffix(":")


def _commented(scenario: Path) -> str:
    """The comment as Markdown: commands, which are indented, as code."""
    parts: list[str] = []
    for line in question(scenario).splitlines():
        if line.startswith("  "):
            if parts and parts[-1].endswith("\n```"):
                parts[-1] = parts[-1].removesuffix("\n```") + f"\n$ {line.strip()}\n```"
            else:
                parts.append(f"\n```console\n$ {line.strip()}\n```")
        else:
            parts.append(re.sub(r"(--set \S+)(?=[\s;,.)]|$)", r"`\1`", line.replace("<", "&lt;")))
    return "\n".join(parts)


def _read(scenario: Path) -> str:
    """Files that stand beside the scenario and belong to it."""
    text = scenario.read_text(encoding="utf-8")
    found = sorted(
        {name for name in re.findall(r"[\w/.-]+\.(?:py|xml)\b", text) if (SCENARIOS / name).is_file()}
    )
    shown = (f"`{name}`:\n\n```{{literalinclude}} ../../scenarios/{name}\n```\n" for name in found)
    return "\n".join(shown)


def _page(scenario: Path) -> str:
    name = scenario.stem
    printed, _, exact = scenario.with_suffix(".answer.txt").read_text(encoding="utf-8").partition("\nexact\n")
    picture = PICTURES / f"{name}.png"
    image = f"```{{image}} pictures/{name}.png\n:alt: {short_question(scenario)}\n:class: picture\n```\n"
    return f"""\
# {name}

{_commented(scenario)}

{image if picture.exists() else ""}
## The scenario

```{{literalinclude}} ../../scenarios/{scenario.name}
:language: yaml
```

{_read(scenario)}
## The answer

``````text
$ cosim {"search" if "objective:" in scenario.read_text("utf-8").split() else "run"} scenarios/{scenario.name}
{printed.rstrip()}
``````

:::{{dropdown}} Exact figures, which the tests compare
``````text
{exact.rstrip()}
``````
:::
"""


def _card(scenario: Path) -> str:
    name = scenario.stem
    image = f":img-top: pictures/{name}.png\n" if (PICTURES / f"{name}.png").exists() else ""
    return f"""\
:::{{grid-item-card}} {name}
:link: {name}
:link-type: doc
{image}
{short_question(scenario)}
:::
"""


def headings() -> dict[str, list[Path]]:
    """Each heading with the scenarios under it; every scenario stands under one."""
    every = {path.stem: path for path in sorted(SCENARIOS.glob("*.yaml"))}
    grouped = {title: [every.pop(name) for name in stems if name in every] for title, stems in KINDS.items()}
    return {**grouped, **({LAST: list(every.values())} if every else {})}


def write(folder: Path) -> None:
    """Write the index and the pages."""
    parts = [
        "# Gallery\n\nEvery scenario of the repository, each a question with the answer it gives. "
        "The test suite runs them all and compares every page and picosecond.\n"
    ]
    for title, scenarios in headings().items():
        cards = "\n".join(_card(scenario) for scenario in scenarios)
        parts.append(f"## {title}\n\n::::{{grid}} 1 2 2 3\n:gutter: 3\n\n{cards}\n::::\n")
        for scenario in scenarios:
            put(folder / f"{scenario.stem}.md", _page(scenario))
    names = "\n".join(path.stem for scenarios in headings().values() for path in scenarios)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```\n")
    put(folder / "index.md", "\n".join(parts))


def put(path: Path, text: str) -> None:
    """Write a page if it says something else, so that Sphinx reads again only what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "gallery"))
    return {"parallel_read_safe": True}
