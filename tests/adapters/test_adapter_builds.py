"""Adapters are found, and what building them needs is named."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cosim.errors import CosimError, LaunchError, ScenarioError
from cosim.experiment.build import build
from cosim.experiment.idle import idle_settings
from cosim.experiment.scenario import loads
from cosim.protocol import adapters
from cosim.protocol.installs import ASTRA_SIM
from cosim.protocol.rdma import Ns3Rdma
from cosim.protocol.remote import Remote
from tests.adapters.ns3_worlds import ns3
from tests.cli.processes import PATIENCE_S


def test_missing_packages_are_named_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool in ("cmake", "protoc") else f"/bin/{tool}")
    monkeypatch.setattr(adapters, "_HEADERS", ())
    with pytest.raises(LaunchError) as error:
        adapters.build("ns3")
    assert "apt-get install -y cmake libgrpc++-dev libns3-dev protobuf-compiler" in str(error.value)


def test_a_compiler_error_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "adapters" / "ns3"
    broken.mkdir(parents=True)
    (tmp_path / "proto").mkdir()
    (broken / "CMakeLists.txt").write_text('message(FATAL_ERROR "an error of this test")\n')
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(adapters, "sources", lambda _: broken)
    monkeypatch.setattr(adapters, "missing_packages", lambda _: ())
    if shutil.which("cmake") is None:
        pytest.skip("apt-get install -y cmake")
    with pytest.raises(LaunchError, match="an error of this test"):
        adapters.build("ns3")


STEPS = """cmake_minimum_required(VERSION 3.16)
project(steps NONE)
add_custom_command(OUTPUT one.txt COMMAND sh -c
  "echo one >> ${CMAKE_SOURCE_DIR}/log && echo done > one.txt" VERBATIM)
add_custom_target(first DEPENDS one.txt)
add_custom_command(OUTPUT cosim-ns3 DEPENDS one.txt COMMAND sh -c
  "grep done one.txt && echo two >> ${CMAKE_SOURCE_DIR}/log && cp /bin/sh cosim-ns3" VERBATIM)
add_custom_target(all_of_it ALL DEPENDS cosim-ns3)
"""
"""A build of two steps, which write down that they ran; the second needs what the first made."""


@pytest.mark.parametrize("half_written", [False, True])
def test_an_interrupted_build_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, half_written: bool
) -> None:
    if shutil.which("cmake") is None or shutil.which("make") is None:
        pytest.skip("apt-get install -y cmake make")
    source = tmp_path / "adapters" / "ns3"
    for folder in (source, tmp_path / "adapters" / "common", tmp_path / "proto"):
        folder.mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(STEPS)
    place = tmp_path / "cache" / "cosim-ns3"
    monkeypatch.setattr(adapters, "executable", lambda _: place)
    monkeypatch.setattr(adapters, "sources", lambda _: source)
    monkeypatch.setattr(adapters, "missing_packages", lambda _: ())
    real = subprocess.run

    def interrupted(step: list[str], **how: Any) -> Any:
        if "--build" not in step:
            return real(step, check=False, **{key: value for key, value in how.items() if key != "check"})
        real([*step, "--target", "first"], stdout=subprocess.DEVNULL, check=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        adapters.build("ns3")
    monkeypatch.setattr(subprocess, "run", real)
    if half_written:
        (place.parent / "build" / "one.txt").write_text("do")
    said: list[str] = []
    assert adapters.build("ns3", said.append).exists()
    assert said[0].startswith("going on with the ns3 adapter")
    # A file that is half written fails when the build uses it. Then everything is built anew.
    assert (source / "log").read_text().split() == (["one", "one", "two"] if half_written else ["one", "two"])
    assert not (place.parent / "build").exists()


def test_the_readmes_control_of_ones_own_compiles(tmp_path: Path) -> None:
    """As it stands there, without a warning: it needs nothing but the control's own header."""
    readme = (adapters.sources("ns3") / "README.md").read_text("utf-8")
    found = re.search(r"```cpp\n(// Additive increase.*?)```", readme, re.DOTALL)
    assert found is not None
    if (compiler := shutil.which("c++")) is None:
        pytest.skip("apt-get install -y g++")
    (tmp_path / "halve.cc").write_text(found[1])
    folders = [f"-I{adapters.sources('ns3') / one}" for one in ("src/rdma", "src", "../common")]
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    command = [compiler, *flags, *folders, str(tmp_path / "halve.cc")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", ["ns3/src/main.cc", "common/server.cc"])
def test_other_sources_build_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    first = adapters.executable("ns3")
    changed = tmp_path / "adapters"
    shutil.copytree(adapters.sources("ns3").parent, changed)
    shutil.copytree(adapters.sources("ns3").parents[1] / "proto", tmp_path / "proto")
    monkeypatch.setattr(adapters, "sources", lambda name: changed / name)
    assert adapters.executable("ns3") == first
    (changed / file).write_text("int main() {}\n")
    assert adapters.executable("ns3") != first


def test_an_unknown_adapter_is_answered_with_a_near_one() -> None:
    with pytest.raises(LaunchError, match="did you mean 'ns3'"):
        adapters.build("ns4")


def install(root: Path, *files: str) -> None:
    """What an install would have, empty."""
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()


LIBRARY = "build/astra_analytical/build/lib/libAnalytical_Congestion_Aware.a"


@pytest.mark.parametrize(
    ("named", "files", "says"),
    [
        (False, (), "ASTRASIM_ROOT is not set"),
        (True, (LIBRARY,), "lacks extern/network_backend/analytical/include/"),
        (True, (ASTRA_SIM.headers,), "lacks libAnalytical_Congestion_Aware.a, anywhere below it"),
    ],
)
def test_what_an_install_of_astra_sim_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: bool, files: tuple[str, ...], says: str
) -> None:
    install(tmp_path, *files)
    monkeypatch.delenv("ASTRASIM_ROOT", raising=False)
    if named:
        monkeypatch.setenv("ASTRASIM_ROOT", str(tmp_path))
    with pytest.raises(LaunchError, match=says) as error:
        adapters.build("astrasim")
    assert "build/astra_analytical/build.sh" in str(error.value)


def test_a_root_that_is_no_folder_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASTRASIM_ROOT", str(tmp_path / "nowhere"))
    with pytest.raises(LaunchError, match="nowhere, which is not a folder"):
        adapters.executable("astrasim")


def test_another_install_builds_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path, LIBRARY, ASTRA_SIM.headers)
    monkeypatch.setenv("ASTRASIM_ROOT", str(tmp_path))
    first = adapters.executable("astrasim")
    (tmp_path / LIBRARY).write_text("built again")
    assert adapters.executable("astrasim") != first


SCENARIO = """
topology: {kind: leaf_spine, endpoints_per_leaf: 4, leaves: 1, spines: 1, rate: 100Gbps, latency: 1us}
network: %s
jobs:
  - workload: {kind: collective, collective: all_reduce, size: 1MB, ranks: 4}
"""


@pytest.mark.parametrize(
    "text", ["ns3", "{model: ns3}", "{simulator: ns3}", "{model: remote, simulator: ns3}"]
)
def test_ways_to_say_ns3(text: str) -> None:
    network = loads(SCENARIO % text).network
    assert isinstance(network, Remote)
    assert network.simulator == "ns3"


def test_astrasim_is_named_alike() -> None:
    network = loads(SCENARIO % "astrasim").network
    assert isinstance(network, Remote)
    assert (network.simulator, network.shares_by_weight()) == ("astrasim", False)


def test_settings_reach_the_session() -> None:
    failure = "{link: 3, down: 1ms, up: 2ms}"
    text = f"{{simulator: ns3, transport: dctcp, mtu: 1500 B, ecn_min: 97 kB, failures: [{failure}]}}"
    network = loads(SCENARIO % text).network
    assert isinstance(network, Remote)
    wanted = network.settings()
    assert (wanted.transport, wanted.mtu_bytes, wanted.mark_min_bytes) == ("dctcp", 1500, 97_000)
    assert [(event.time_ps, event.up) for event in wanted.link_events] == [(10**9, False), (2 * 10**9, True)]


@pytest.mark.parametrize("network", ["simulator: ns3", "model: ns3_rdma, control: hpcc"])
def test_links_and_nodes_fail_by_name(network: str) -> None:
    ns3()
    text = f"{{{network}, failures: [{{%s, down: 1ms, up: 2ms}}]}}"
    spine = loads(SCENARIO % text % "node: spine0")
    topology = build(spine).topology
    names = [topology.link_name(link) for link in range(topology.num_links)]
    of_spine = [link for link, name in enumerate(names) if "spine0" in name.split(" -> ")]
    assert isinstance(spine.network, Remote | Ns3Rdma)
    down, up = spine.network.settings().link_events
    assert (down.links(topology), down.up, up.up) == (of_spine, False, True)
    named = loads(SCENARIO % text % "link: leaf0 -> spine0").network
    assert isinstance(named, Remote | Ns3Rdma)
    [one, _] = named.settings().link_events
    assert [names[link] for link in one.links(topology)] == ["leaf0 -> spine0"]


@pytest.mark.parametrize(
    ("failed", "says"),
    [
        ("node: spine7", "has no node 'spine7'; did you mean 'spine0'"),
        ("link: leaf0 -> spine9", "has no link 'leaf0 -> spine9'; did you mean 'leaf0 -> spine0'"),
        ("link: 99", "has no link 99; there are 0 to 9"),
        ("link: 1, node: spine0", "of a link or of a node"),
        ("link: -1", "numbered from 0"),
    ],
)
def test_failures_of_what_is_not_there_are_refused(failed: str, says: str) -> None:
    text = f"{{simulator: ns3, failures: [{{{failed}, down: 1ms}}]}}"
    with pytest.raises(CosimError, match=says):
        build(loads(SCENARIO % text))


def test_weights_have_no_effect_in_ns3() -> None:
    job = "  - workload: {kind: collective, collective: all_reduce, size: 1MB, ranks: 2}\n"
    text = SCENARIO[: SCENARIO.index("jobs:")] + f"jobs:\n{job}    weight: 2\n{job}"
    built = build(loads(text % "fair_share"))
    [warning] = idle_settings(loads(text % "ns3"), built.topology, built.jobs)
    assert "jobs[0].weight" in warning


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{simulator: ns4}", "did you mean 'ns3'"),
        ("{simulator: ns3, address: 'unix:/tmp/x'}", "needs one of"),
        ("{simulator: ns3, transprot: cubic}", "did you mean 'transport'"),
        ("{simulator: ns3, failures: [{link: 0, down: 2ms, up: 1ms}]}", "after it failed"),
    ],
)
def test_mistakes_are_said_with_their_place(text: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        loads(SCENARIO % text)
