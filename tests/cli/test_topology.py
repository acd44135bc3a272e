"""``cosim topology``: names that events take."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.experiment.build import fabric
from tests.inputs import ROOT

SCENARIO = str(ROOT / "scenarios" / "link-failure.yaml")


def test_every_link_and_node_is_listed_by_name() -> None:
    topology = fabric(cosim.load(SCENARIO))
    said = CliRunner().invoke(app, ["topology", SCENARIO, "--links"]).stdout.splitlines()
    assert said[0] == "leaf-spine 4x2: 16 endpoints, 6 switches, 48 links"
    assert [line.split("  ")[-3].strip() for line in said[1:]] == [topology.link_name(k) for k in range(48)]
    nodes = CliRunner().invoke(app, ["topology", SCENARIO, "--nodes"]).stdout.splitlines()[1:]
    assert [line.split()[1] for line in nodes] == list(topology.node_names)
    assert [line.split()[2] for line in nodes] == ["endpoint"] * 16 + ["switch"] * 6


def test_a_setting_changes_what_is_listed() -> None:
    said = CliRunner().invoke(app, ["topology", SCENARIO, "--set", "topology.spines=3"]).stdout
    assert said == "leaf-spine 4x3: 16 endpoints, 7 switches, 56 links\n"


def test_the_fabric_is_drawn_with_every_node_and_link(tmp_path: Path) -> None:
    path = tmp_path / "fabric.svg"
    said = CliRunner().invoke(app, ["topology", SCENARIO, "-o", str(path)])
    assert said.exit_code == 0, said.output
    root = ElementTree.parse(path).getroot()
    titles = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}title")]
    topology = fabric(cosim.load(SCENARIO))
    assert set(topology.node_names) <= set(titles)
    assert sum("links, " in title for title in titles[1:]) == topology.num_links // 2
