"""What a cluster costs and draws: dollars and watts of its GPUs, switch ports, cables and optics.

A directed link of a fabric is an output port of the switch that it leaves. Between a server and its switch it
is half a copper cable, between switches, or between servers without one, an optical module at its sender. A
part of another rate is taken in proportion: breakouts and bonded links. What is within a server (NVLink, GPU
to NIC) is in the GPU's price. Not counted: buildings, cooling, storage, the fabric of management, discounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from cosim.errors import InputError
from cosim.experiment.build import Built
from cosim.experiment.mistakes import scenario_error
from cosim.experiment.scenario import Scenario
from cosim.files import located_yaml
from cosim.registry import find, names
from cosim.spec import RateBps, Spec
from cosim.topology.graph import Topology
from cosim.topology.scale_up import domains
from cosim.written import plain

_TABLE = Path(__file__).parent / "data" / "cost.yaml"


class CostOfPart(Spec):
    """What one part costs and draws"""

    price: float = Field(ge=0, allow_inf_nan=False, description="US dollars")
    power: float = Field(ge=0, allow_inf_nan=False, description="watts")
    source: str = Field("the design", description="where the numbers are from")


class CostAtRate(CostOfPart):
    """What a part of a rate costs and draws; another rate in proportion"""

    rate: RateBps = Field(gt=0, description="of the part, one way")


class CostTable(Spec):
    """What parts cost and draw"""

    gpus: dict[str, CostOfPart] = Field({}, description="GPU of the catalogue, or a GPU's own name: its cost")
    endpoint: CostOfPart | None = Field(
        None, description="an endpoint of which no GPU is known; omitted: refused where it matters"
    )
    ports: CostAtRate = Field(description="a port of a switch")
    cables: CostAtRate = Field(description="a cable between a server and its switch")
    optics: CostAtRate = Field(description="an optical module, one at each end of a link between switches")

    @model_validator(mode="before")
    @classmethod
    def _over_the_table(cls, value: Any) -> Any:
        """What isn't given is the table's."""
        if not isinstance(value, dict):
            return value
        table = located_yaml.read(_TABLE).value
        merged = {**table, **value}
        if isinstance(value.get("gpus"), dict):
            merged["gpus"] = {**table["gpus"], **value["gpus"]}
        return merged


def read_cost(path: Path) -> Any:
    """A table of your own, as plain values.

    Raises
    ------
    ValueError
        It can't be read.
    """
    try:
        return located_yaml.read(path).value
    except InputError as error:
        raise ValueError(str(error)) from None


def read_table(given: Mapping[str, Any] | None) -> CostTable:
    """The table that comes with cosim, with what is given over it.

    Raises
    ------
    InputError
        A mistake in it.
    """
    document = located_yaml.Document("cost", plain(given or {}, keep=True))
    try:
        return CostTable.model_validate(document.value)
    except ValidationError as error:
        raise scenario_error(error, CostTable, document) from None


class ClusterCost(NamedTuple):
    """Dollars and watts of a whole cluster."""

    price: float
    power: float


def cost_of(table: CostTable, scenario: Scenario, built: Built) -> ClusterCost:
    """What the fabric and its endpoints cost and draw; endpoints without a job have the first job's GPU.

    Raises
    ------
    InputError
        The table has no such GPU.
    """
    parts = [_gpu_cost(table, scenario, number) for number in range(len(scenario.jobs))]
    names_of = [name for job in scenario.jobs for name in job.names()]
    number_of = [number for number, job in enumerate(scenario.jobs) for _ in job.names()]
    every = [parts[0]] * built.topology.num_endpoints
    for job in built.jobs:
        for endpoint in job.endpoints.tolist():
            every[endpoint] = parts[number_of[names_of.index(job.name)]]
    price, power = sum(one.price for one in every), sum(one.power for one in every)
    for part, rate_bps in _fabric(table, built.topology):
        price += part.price * rate_bps / part.rate
        power += part.power * rate_bps / part.rate
    return ClusterCost(price, power)


def _gpu_cost(table: CostTable, scenario: Scenario, number: int) -> CostOfPart:
    gpu = scenario.jobs[number].runs_on(scenario.context)
    if gpu is None:
        if table.endpoint is None:
            raise InputError(
                f"what an endpoint of {scenario.jobs[number].name} costs is not known: "
                "its workload names no GPU",
                hint="cost: {endpoint: {price: 30000, power: 1000}}",
            )
        return table.endpoint
    own = getattr(gpu, "name", "")
    for name, part in table.gpus.items():
        if name == own or (name in names("cosim.gpus") and find("cosim.gpus", name) == gpu):
            return part
    raise InputError(
        f"what the GPU {own or gpu} costs is not known; cost.gpus has {', '.join(table.gpus)}",
        hint=f"cost: {{gpus: {{{own or 'NAME'}: {{price: 30000, power: 1000}}}}}}",
    )


def _fabric(table: CostTable, topology: Topology) -> list[tuple[CostAtRate, float]]:
    """Parts of the fabric, and the rates of all of a kind together, bits per second."""
    server = _in_servers(topology)
    src, dst, rate = topology.link_src, topology.link_dst, topology.link_rate_bps
    own = server[src] & server[dst] & _same_server(topology, server)
    outside = ~own if topology.scale_up is None else ~own & ~topology.scale_up
    copper = outside & (server[src] != server[dst])
    optical = outside & ~copper
    return [
        (table.ports, float(rate[outside & ~server[src]].sum())),
        (table.cables, float(rate[copper].sum()) / 2),
        (table.optics, float(rate[optical].sum())),
    ]


def _in_servers(topology: Topology) -> NDArray[np.bool_]:
    """bool[nodes]: endpoints, and where there are scale-up domains the NICs and NVSwitches of one."""
    inside = np.arange(topology.num_nodes) < topology.num_endpoints
    return inside | (_server_of(topology) >= 0)


def _same_server(topology: Topology, server: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[links]: from a server to itself."""
    of = _server_of(topology)
    same: NDArray[np.bool_] = (of[topology.link_src] == of[topology.link_dst]) & (of[topology.link_src] >= 0)
    return same & server[topology.link_src]


def _server_of(topology: Topology) -> NDArray[np.int64]:
    """int64[nodes]: the scale-up domain of endpoints, and of what only endpoints of one are linked to and at
    most one other node; -1 elsewhere, and where there are no such domains.
    """
    of = np.full(topology.num_nodes, -1, np.int64)
    scale_up, count = topology.scale_up, topology.num_endpoints
    if scale_up is None or not scale_up.any() or scale_up.all():
        return of
    of[:count] = domains(topology)
    src, dst = topology.link_src, topology.link_dst
    for node in range(count, topology.num_nodes):
        near = np.unique(dst[src == node])
        mine = np.unique(of[near[near < count]])
        if len(mine) == 1 and (near >= count).sum() <= 1:
            of[node] = mine[0]
    return of
