"""``cosim serve``, ``conformance``, ``adapters``: networks behind gRPC."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cosim.cli.say import say
from cosim.errors import InputError, LaunchError


def serve(
    network: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What a scenario's network key takes: fair_share, {model: ...}; or a scenario's file.",
        ),
    ],
    address: Annotated[
        str, typer.Option(help="unix:/path, or host:port; port 0 picks one. Beyond loopback it needs TLS.")
    ] = "127.0.0.1:0",
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The server's certificate, for TLS.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate's key.")] = None,
    roots: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The authority whose certificates clients must have.")
    ] = None,
) -> None:
    """Serve a built-in network model over gRPC; prints LISTENING and the address when ready."""
    from cosim.experiment.serve import serve_network

    serve_network(network, address, certificate, key, roots)


def conformance(
    address: Annotated[
        str | None,
        typer.Argument(metavar="[ADDRESS]", help="The address of a running server.", show_default=False),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="Start this command instead; the checks may kill and restart it."
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="Run only this check. Repeatable.")
    ] = None,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="The longest time an answer may take.")
    ] = 20.0,
) -> None:
    """Check a network simulator behind gRPC against every rule of the protocol."""
    import shlex

    from cosim.testing.conformance.kit import check_names
    from cosim.testing.conformance.server import check_server

    if (address is None) == (command is None):
        raise InputError("give the address of a server, or --command")
    known = check_names("server")
    unknown = sorted({*(only or ())} - {*known})
    if unknown:
        raise InputError(f"no check {unknown[0]!r}", hint=f"there are: {', '.join(known)}")
    report = check_server(
        address if address is not None else shlex.split(command or ""), only=only or (), deadline_s=deadline
    )
    typer.echo(report)
    if not report.passed:
        raise typer.Exit(1)


adapters = typer.Typer(
    help="Adapters that come with cosim: real simulators behind its protocol.", no_args_is_help=True
)


@adapters.command("build")
def build_adapter(
    name: Annotated[str, typer.Argument(help="The adapter: ns3, ns3_rdma or astrasim.", metavar="NAME")],
    again: Annotated[bool, typer.Option("--again", help="Build again even if it is built.")] = False,
) -> None:
    """Build an adapter into the user's cache, or say what is missing. A first run does it too."""
    from cosim.protocol.adapters import build

    typer.echo(build(name, say, again=again))


@adapters.command("list")
def list_adapters() -> None:
    """List the adapters: whether each is built, and what is missing."""
    from cosim.protocol.adapters import executable, missing_packages, names

    for name in names():
        absent = missing_packages(name)
        try:
            place = executable(name)
            state = f"built: {place}" if place.exists() else "not built"
        except LaunchError as error:
            state = str(error)
        typer.echo(f"{name}  {state}" + (f"; missing packages: {', '.join(absent)}" if absent else ""))
