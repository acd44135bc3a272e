"""The simulator of the device network, around the kernel's loop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import Columns, kernel, record
from cosim.network.compiled import CompiledNetwork
from cosim.network.core import ChannelNumbers
from cosim.network.device.gpus import DeviceGpu
from cosim.network.flows import F64, I32, I64
from cosim.network.simulator import Capabilities, NetworkStatistics
from cosim.topology.graph import Topology

if TYPE_CHECKING:
    from cosim.network.device.settings import DeviceSpec

_TICKS = 1 << kernel.TICK_BITS
_BIT_TICKS = 1e12 * _TICKS
_PLACES = "unit", "router", "channel", "port"
"""In the order of ``enum device_place``."""
_SPENT = "flag", "way", "room", "rate"
"""In the order of ``enum device_spent``."""
_WRITTEN = (
    "stations", "links", "units", "placed", "computing", "computed", "waited", "lines_at", "spent",
    "link_waited", "link_lines", "in_flight", "most_in_flight", "buckets",
)  # fmt: skip


class DeviceState(Columns):
    """The model's state: stations, and messages, workgroups and trains under way."""

    container = "device"


def ticks_of(size_bytes: int, rate_bps: float | NDArray[np.float64]) -> Any:
    """What so many bytes take at a rate, in whole ticks."""
    return np.rint(size_bytes * 8 * _BIT_TICKS / np.asarray(rate_bps, np.float64)).astype(np.int64)


def mesh_ways(rows: int, columns: int) -> tuple[I32, I32, int]:
    """Ways over a mesh from each router to each: along the row, then along the column.

    CSR by ``from * routers + to`` (int32 each), and the number of links of the mesh.
    """
    number: dict[tuple[int, int], int] = {}
    ptr, links = [0], []
    for here in range(rows * columns):
        for there in range(rows * columns):
            at = here
            while at != there:
                if at % columns != there % columns:
                    to = at + (1 if there % columns > at % columns else -1)
                else:
                    to = at + (columns if there > at else -columns)
                links.append(number.setdefault((at, to), len(number)))
                at = to
            ptr.append(len(links))
    return np.array(ptr, np.int32), np.array(links, np.int32), len(number)


def reverses(topology: Topology) -> I32 | None:
    """int32[L]: the link that goes the other way; None: some has none."""
    src, dst = topology.link_src, topology.link_dst
    there, back = np.lexsort((dst, src)), np.lexsort((src, dst))
    if (src[there] != dst[back]).any() or (dst[there] != src[back]).any():
        return None
    found = np.empty(topology.num_links, np.int32)
    found[there] = back
    return found


class DeviceNetwork(CompiledNetwork):
    """The model of the package's text."""

    name = "device"
    symmetric = False
    loop = "run_device"

    def __init__(self, settings: DeviceSpec) -> None:
        super().__init__()
        self._settings = settings

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: switches neither ask nor store."""
        computes = self._settings.workgroup_time is not None
        return replace(super().describe(), switch_ends=False, computations=computes)

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        s, gpu, gpus = self._settings, self._settings.gpu, topology.num_endpoints
        mesh_ptr, mesh_link, mesh = mesh_ways(gpu.rows, gpu.columns)
        one = self._stations(gpu, mesh)
        links = np.zeros(topology.num_links, record("device_station"))
        links["line"] = ticks_of(s.granularity, topology.link_rate_bps)
        links["control"] = ticks_of(s.control, topology.link_rate_bps)
        units = np.zeros(gpus * gpu.units, record("device_unit"))
        units["last"] = units["wave"] = kernel.NONE
        computing = np.full(2 * gpus, kernel.NONE, np.int32).view(record("device_channel_state"))
        self._numbers = ChannelNumbers()
        self._reverse = reverses(topology)
        self._device = DeviceState(
            stations=np.tile(one, gpus),
            links=links,
            link_latency=topology.link_latency_ps * _TICKS,
            mesh_ptr=mesh_ptr,
            mesh_link=mesh_link,
            units=units,
            placed=np.zeros(gpus, np.int64),
            computing=computing,
            waited=np.zeros((gpus, kernel.DEVICE_PLACES), np.int64),
            lines_at=np.zeros((gpus, kernel.DEVICE_PLACES), np.int64),
            computed=np.zeros((gpus, 2), np.int64),
            spent=np.zeros((gpus, kernel.DEVICE_SPENT), np.int64),
            link_waited=np.zeros(topology.num_links, np.int64),
            link_lines=np.zeros(topology.num_links, np.int64),
            in_flight=np.zeros(gpus, np.int64),
            most_in_flight=np.zeros(gpus, np.int64),
            buckets=np.full(kernel.DEVICE_BUCKETS, kernel.NONE, np.int32),
            path_back=np.zeros(0, np.int64),
            row_ends=np.zeros(0, np.int32),
        )
        shape = self._device.shape
        for field, value in {
            "units": gpu.units, "routers": gpu.num_routers, "columns": gpu.columns, "mesh": mesh,
            "channels": gpu.channels, "ports": gpu.ports, "stations": len(one), "line": s.granularity,
            "control": s.control, "unroll": s.unroll, "outstanding": s.in_flight, "window": s.window,
            "workgroups": s.workgroups or gpu.units, "fair": s.arbitration == "fair",
            "hop": gpu.hop_latency * _TICKS, "memory": gpu.memory_latency * _TICKS,
            "flag": gpu.flag_latency * _TICKS, "workgroup": (s.workgroup_time or 0) * _TICKS,
            "bucket_bits": self._bucket_bits(links),
            "free_train": kernel.NONE, "free_work": kernel.NONE, "free_flow": kernel.NONE,
        }.items():  # fmt: skip
            shape[field] = value

    def _bucket_bits(self, links: NDArray[Any]) -> int:
        """A line of the slowest link to a bucket; all buckets are longer than the latencies of a way."""
        latency: int = int(self._topology.link_latency_ps.max(initial=0)) * _TICKS
        least = max(int(links["line"].max(initial=0)), 4 * latency // int(kernel.DEVICE_BUCKETS))
        return min(58, least.bit_length())

    def _stations(self, gpu: DeviceGpu, mesh: int) -> NDArray[Any]:
        """Those of a GPU: units, links of the mesh, channels, ports out, ports in."""
        kinds = (
            (gpu.units, gpu.unit_rate),
            (mesh, gpu.router_rate),
            (gpu.channels, gpu.memory_rate / gpu.channels),
            (2 * gpu.ports, gpu.port_rate / gpu.ports),
        )
        one = np.zeros(sum(count for count, _ in kinds), record("device_station"))
        rates = np.concatenate([np.full(count, rate) for count, rate in kinds])
        one["line"] = ticks_of(self._settings.granularity, rates)
        one["control"] = ticks_of(self._settings.control, rates)
        return one

    @property
    def columns(self) -> DeviceState:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return self._device

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        rows, device = first + len(src), self._device
        numbers = self._numbers.number(job, src, dst, channel)
        back = self._paths.append(*self._return_paths(first, src, dst, channel))
        used = back + len(src) + 1
        device.lengthen("path_back", used)[first:rows] = np.arange(back, back + len(src))
        of_block = channel >= kernel.DEVICE_BLOCK
        asked = np.where(of_block, 0, kernel.DEVICE_GET * int(self._settings.access == "get"))
        flags = np.where(of_block, channel & ~np.int32(kernel.DEVICE_OTHER), asked)
        ends = device.lengthen("row_ends", 4 * used).reshape(-1, 4)
        ends[first:rows] = np.stack([src, dst, numbers, flags.astype(np.int32)], axis=1)
        old = len(device.channels)
        channels = device.lengthen("channels", len(self._numbers))
        channels["first"][old:] = kernel.NONE

    def _return_paths(self, first: int, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """Paths of answers: as their requests came, where every link has one in the other direction."""
        if self._reverse is None:
            return self._topology.paths(dst, src, channel)
        core = self.core
        ptr = core.path_ptr[first : first + len(src) + 1]
        mirrored = np.repeat(ptr[:-1] + ptr[1:] - 1, np.diff(ptr)) - np.arange(ptr[0], ptr[-1])
        return ptr - ptr[0], self._reverse[core.path_link[mirrored]]

    def _copy_model(self) -> dict[str, Any]:
        device, shape = self._device, self._device.shape[0]
        used = {
            "flows": int(shape["flows_used"]),
            "works": int(shape["works_used"]),
            "trains": int(shape["trains_used"]),
            "heap": int(shape["heap_used"]),
            "channels": len(self._numbers),
        }
        own = {name: getattr(device, name).copy() for name in _WRITTEN}
        return {"_device": device.copy(used | dict.fromkeys(("instant", "spare", "other"), 0), **own)}

    def _next_instant(self) -> int:
        heap, used = self._device.heap, int(self._device.shape["heap_used"][0])
        train = int(heap["time"][0]) >> kernel.TICK_BITS if used else None
        found = super()._next_instant()
        return found if train is None or not self._stopped_early else min(found, train - 1)

    @property
    def _stopped_early(self) -> bool:
        state = self.core.state[0]
        return int(state["num_pending"]) >= int(state["report_at"])

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`; ``extra`` has how long lines waited.

        ``wait_link_ps`` is the sum over the lines of a link, ``link_lines`` their number. What lines waited
        in a GPU (``wait_unit_ps``, ``unit_lines``, and so on for router, channel and port) and the most bytes
        that it had in flight stand at the first link that leaves it. There is what the time of messages went
        to which it stored or asked for, in sum: ``spent_flag_ps`` (messages without bytes), ``spent_way_ps``
        (latencies), ``spent_room_ps`` (until its last line could be asked for), ``spent_rate_ps`` (the rest).
        ``computed_ps`` and ``computed_alone_ps``: what its computations took, and would take without others.
        """
        device, topology = self._device, self._topology
        extra: dict[str, F64] = {
            "wait_link_ps": device.link_waited / _TICKS,
            "link_lines": device.link_lines.astype(np.float64),
        }
        gpus, links = np.unique(topology.link_src, return_index=True)
        inside = gpus < topology.num_endpoints
        gpus, links = gpus[inside], links[inside]
        by_gpu = {"in_flight_bytes": device.most_in_flight}
        for place, name in enumerate(_PLACES):
            by_gpu[f"wait_{name}_ps"] = device.waited[:, place] / _TICKS
            by_gpu[f"{name}_lines"] = device.lines_at[:, place]
        for cause, name in enumerate(_SPENT):
            by_gpu[f"spent_{name}_ps"] = device.spent[:, cause] / _TICKS
        by_gpu["computed_ps"], by_gpu["computed_alone_ps"] = device.computed.T
        for name, values in by_gpu.items():
            extra[name] = np.zeros(topology.num_links)
            extra[name][links] = values[gpus]
        return replace(super().statistics(), extra=extra)

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return bool(super().has_work() or self._device.shape["heap_used"][0])
