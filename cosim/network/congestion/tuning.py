"""Parameters of a control that change while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import ValidationError

from cosim.errors import NetworkError
from cosim.network.congestion.contract import Control
from cosim.network.congestion.fabric import PortSettings, make_links, make_settings
from cosim.registry import nearest
from cosim.topology.graph import Topology


def tuned(control: Control, values: Mapping[str, Any], ports: PortSettings, topology: Topology) -> Control:
    """The control with other parameters.

    Raises
    ------
    NetworkError
        There is no such parameter, or no such value; or ports were set by it when the network was opened.
    """
    kind, known = type(control).__name__, type(control).model_fields
    for name in values:
        if name not in known:
            has = ", ".join(known) or "none"
            raise NetworkError(f"{kind} has no parameter {name!r}{nearest(name, known)}; it has {has}")
    try:
        new = type(control).model_validate({**control.model_dump(exclude_unset=True), **values})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise NetworkError(f"{kind}: {field}: {first['msg'].removeprefix('Value error, ')}") from None
    scaling = new.scaling()
    before, after = (
        (make_links(one, ports, topology), make_settings(one, scaling, ports)) for one in (control, new)
    )
    if not all(np.array_equal(one, other) for one, other in zip(before, after, strict=True)):
        names = ", ".join(values)
        raise NetworkError(
            f"{kind}: {names}: ports are set by it when the run begins, and stay so; "
            "what senders do can change"
        )
    return new
