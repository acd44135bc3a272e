"""``cosim serve``: a network that a scenario could name, as a server of the protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import ValidationError

from cosim.context import HERE, Context
from cosim.errors import InputError
from cosim.experiment.mistakes import scenario_error
from cosim.experiment.scenario import load
from cosim.files.located_yaml import Document, parse_value
from cosim.network.contract import NetworkSpec
from cosim.protocol.address import Tls
from cosim.protocol.server import run_server
from cosim.protocol.session import ServerConfig
from cosim.registry import Named


def serve_network(
    network: str,
    address: str,
    certificate: Path | None = None,
    key: Path | None = None,
    roots: Path | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    ``network`` is YAML, as a scenario has it: ``fair_share``; paths in it start from the working folder. Or
    it is a scenario's file, whose network is served.

    Raises
    ------
    InputError
        No such network.
    LaunchError
        It can't listen there.
    """
    spec, context = _named(network)
    if spec.needs_scale_up:
        raise InputError(
            f"{network} can't be served: the protocol does not say which links are scale-up",
            hint="serve the networks that it is made of; the run that uses them says network: hybrid",
        )
    tls = Tls(roots, certificate, key) if certificate is not None or key is not None else None
    run_server(ServerConfig(partial(spec.build, context), shares=spec.shares_by_weight()), address, tls=tls)


def _named(network: str) -> tuple[NetworkSpec, Context]:
    if network.endswith((".yaml", ".yml")):
        scenario = load(network)
        return scenario.network, scenario.context
    value = parse_value(network)
    try:
        found: NetworkSpec = Named("cosim.networks").resolve(value)
    except ValidationError as error:
        raise scenario_error(error, NetworkSpec, Document("network", value)) from None
    except ValueError as error:
        raise InputError(str(error), hint="cosim list network shows what there is") from None
    return found, HERE
