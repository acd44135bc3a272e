import importlib.resources
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.formats.chakra import et_def_pb2
from tests.inputs import ROOT
from tests.protocol.test_generated import without_versions

PROTO = ROOT / "proto" / "cosim" / "chakra" / "v1" / "et_def.proto"


def test_the_generated_module_is_what_protoc_makes_of_the_proto(tmp_path: Path) -> None:
    grpc_tools = pytest.importorskip("grpc_tools", reason="needs protoc: pip install grpcio-tools")
    included = importlib.resources.files(grpc_tools) / "_proto"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{ROOT / 'proto'}",
            f"-I{included}",
            f"--python_out={tmp_path}",
            "cosim/chakra/v1/et_def.proto",
        ],
        check=True,
    )
    fresh = (tmp_path / "cosim" / "chakra" / "v1" / "et_def_pb2.py").read_text(encoding="utf-8")
    committed = Path(str(et_def_pb2.__file__)).read_text(encoding="utf-8")
    assert without_versions(fresh) == without_versions(committed)


def test_the_generated_module_demands_no_newer_runtime() -> None:
    assert "ValidateProtobufRuntimeVersion" not in Path(str(et_def_pb2.__file__)).read_text(encoding="utf-8")


def test_numbers_are_upstreams() -> None:
    fields = {field.name: field.number for field in et_def_pb2.Node.DESCRIPTOR.fields}
    assert fields == {
        "id": 1,
        "name": 2,
        "type": 3,
        "ctrl_deps": 4,
        "data_deps": 5,
        "start_time_micros": 6,
        "duration_micros": 7,
        "inputs": 8,
        "outputs": 9,
        "attr": 10,
    }
    assert dict(et_def_pb2.NodeType.items())["COMM_COLL_NODE"] == 7
    assert dict(et_def_pb2.CollectiveCommType.items())["BARRIER"] == 9
    assert et_def_pb2.DESCRIPTOR.package == "cosim.chakra.v1"
    assert "package cosim.chakra.v1;" in PROTO.read_text(encoding="utf-8")
