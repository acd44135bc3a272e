"""Off this machine: TLS with certificates made for the test."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import cosim
from cosim.errors import LaunchError
from cosim.experiment.scenario import loads
from cosim.network.aware import CongestionAwareNetwork
from cosim.protocol.address import Tls
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig
from cosim.protocol.settings import FailurePolicy, Target
from tests.cli.processes import PATIENCE_S
from tests.protocol.small_run import GOOD, SCENARIO, run

Serve = Callable[..., Server]


def openssl(folder: Path, *words: str) -> None:
    command = ["openssl", *" ".join(words).split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and a server's and a client's certificate by it; and another authority."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by openssl: apt-get install -y openssl")
    folder = tmp_path_factory.mktemp("certificates")
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    for name in ("authority", "other"):
        openssl(folder, f"req -x509 {key} -keyout {name}.key -out {name}.pem -subj /CN={name}")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(folder, f"req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}")
        by = "-CA authority.pem -CAkey authority.key -CAcreateserial -extfile names -days 2"
        openssl(folder, f"x509 -req -in {name}.csr {by} -out {name}.pem")
    return folder


def tls(folder: Path, own: str = "", roots: str = "authority") -> Tls:
    return Tls(
        folder / f"{roots}.pem" if roots else None,
        folder / f"{own}.pem" if own else None,
        folder / f"{own}.key" if own else None,
    )


def over(server: Server, how: Tls | None, start_s: float = PATIENCE_S) -> RemoteNetwork:
    address = f"localhost:{server.address.rpartition(':')[2]}"
    return RemoteNetwork(Target(address=address, tls=how), policy=FailurePolicy(start_s=start_s))


def test_a_run_over_tls_has_the_same_digest(serve: Serve, certificates: Path) -> None:
    server = serve(tls=tls(certificates, "server", roots=""))
    assert run(over(server, tls(certificates))).digest == run().digest


def test_a_server_that_knows_its_clients_takes_them_and_no_others(serve: Serve, certificates: Path) -> None:
    server = serve(tls=tls(certificates, "server"))
    assert over(server, tls(certificates, "client")).describe().name == "congestion_aware"
    with pytest.raises(LaunchError, match="no network simulator at localhost"):
        over(server, tls(certificates), start_s=1.0).describe()


def test_another_authority_is_named(
    serve: Serve, certificates: Path, record_property: Callable[[str, object], None]
) -> None:
    server = serve(tls=tls(certificates, "server", roots=""))
    with pytest.raises(LaunchError, match="CERTIFICATE_VERIFY_FAILED") as caught:
        over(server, tls(certificates, roots="other")).describe()
    record_property("fault", ("a certificate by another authority", f"LaunchError: {caught.value}"[:110]))


def test_a_file_that_is_not_there_is_named(serve: Serve, certificates: Path) -> None:
    with pytest.raises(LaunchError, match=r"can't read .*no such\.pem for TLS"):
        serve(tls=tls(certificates, "server", roots="no such"))


def test_without_tls_a_server_that_has_it_is_not_spoken_to(serve: Serve, certificates: Path) -> None:
    server = serve(tls=tls(certificates, "server", roots=""))
    with pytest.raises(LaunchError, match="no network simulator at localhost"):
        over(server, None, start_s=1.0).describe()


def test_off_this_machine_a_server_needs_tls(certificates: Path) -> None:
    with pytest.raises(LaunchError, match="TLS"):
        Server(ServerConfig(CongestionAwareNetwork), "0.0.0.0:0")
    with pytest.raises(LaunchError, match="a key and a certificate"):
        Server(ServerConfig(CongestionAwareNetwork), "0.0.0.0:0", tls=Tls())
    with Server(ServerConfig(CongestionAwareNetwork), "0.0.0.0:0", tls=tls(certificates, "server")) as server:
        assert over(server, tls(certificates, "client")).describe().name == "congestion_aware"


def test_a_scenario_names_its_certificates_and_cosim_serve_its_own(certificates: Path) -> None:
    files = ["--certificate", "server.pem", "--key", "server.key", "--roots", "authority.pem"]
    command = [word if "." not in word else str(certificates / word) for word in files]
    server = ServerProcess([*GOOD, *command], address="127.0.0.1:0")
    mine = {name: str(certificates / f"{file}") for name, file in FILES.items()}
    where = f"localhost:{server.address.rpartition(':')[2]}"
    text = loads(SCENARIO, {"network": {"address": where, "tls": mine}})
    digest = cosim.run(text).digest
    assert digest == run(release="network").digest
    beside = loads(SCENARIO, {"network": {"address": where, "tls": FILES}}, base=certificates)
    assert cosim.run(beside).digest == digest
    server.stop()


FILES = {"roots": "authority.pem", "certificate": "client.pem", "key": "client.key"}
