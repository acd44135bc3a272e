"""``cosim serve``: a network that a scenario could name, as a server of the protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import yaml

from cosim.context import HERE
from cosim.errors import InputError
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
    """Serve until SIGTERM or SIGINT. ``network`` is YAML, as a scenario has it: ``fair_share``.

    Raises
    ------
    InputError
        No such network.
    LaunchError
        It can't listen there.
    """
    try:
        spec = Named("cosim.networks").resolve(yaml.safe_load(network))
    except (ValueError, yaml.YAMLError) as error:
        raise InputError(str(error), hint="cosim list network shows what there is") from None
    if spec.needs_scale_up:
        raise InputError(
            f"{network} can't be served: the protocol does not say which links are scale-up",
            hint="serve the networks that it is made of; the run that uses them says network: hybrid",
        )
    tls = Tls(roots, certificate, key) if certificate is not None or key is not None else None
    run_server(ServerConfig(partial(spec.build, HERE), shares=spec.shares_by_weight()), address, tls=tls)
