"""The committed messages are what protoc makes of the .proto."""

import importlib.resources
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.inputs import ROOT

NAME = "cosim/protocol/v1/network_simulator"


def without_versions(code: str) -> list[str]:
    code = re.sub(r"_runtime_version\.ValidateProtobufRuntimeVersion\(.*?\n\)\n", "", code, flags=re.DOTALL)
    lines = [line for line in code.splitlines() if line and not line.startswith("#")]
    return [line for line in lines if "runtime_version" not in line]


def test_the_generated_messages_are_what_protoc_makes_of_the_proto(tmp_path: Path) -> None:
    grpc_tools = pytest.importorskip("grpc_tools", reason="needs protoc: pip install grpcio-tools")
    included = importlib.resources.files(grpc_tools) / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"-I{included}"]
    subprocess.run([*command, f"--python_out={tmp_path}", f"{NAME}.proto"], check=True)
    fresh = (tmp_path / f"{NAME}_pb2.py").read_text(encoding="utf-8")
    committed = Path(str(pb.__file__)).read_text(encoding="utf-8")
    assert without_versions(fresh) == without_versions(committed)


def test_the_command_that_the_protocols_page_gives_makes_messages_and_stubs(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="needs protoc: pip install grpcio-tools")
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    page = (ROOT / "proto/cosim/protocol/v1/README.md").read_text(encoding="utf-8")
    block = re.search(r"\$ (python -m grpc_tools.*?)\n```", page, re.DOTALL)
    assert block is not None
    arguments = block[1].replace("\\\n", " ").split()[1:]
    subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True)
    made = {path.name for path in tmp_path.glob("cosim/protocol/v1/*")}
    assert made == {f"network_simulator_pb2{end}" for end in (".py", ".pyi", "_grpc.py")}


def test_importing_cosim_needs_neither_grpc_nor_protobuf() -> None:
    code = "import sys, cosim, cosim.cli; print([m for m in ('grpc', 'google.protobuf') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
