"""Controls beside closed forms, packets: ``python -m tests.lab.benchmarks.classics [packets | parameters]``.

``packets``: incasts and permutations of the fluid network beside a simulation packet by packet (DCQCN,
TIMELY; tests/network/congestion/packets.py), over seeds. ``parameters``: two values of each, what they move,
and who says so. How far apart any two controls are: ``python -m tests.lab.benchmarks.congestion pairwise``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import mean

from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from cosim.topology.graph import Topology
from cosim.units import PS_PER_US
from tests.network.congestion.moves import MOVES
from tests.network.congestion.packets import simulate
from tests.network.congestion.worlds import star, watch

from .congestion import cases

_PAUSE = 1_150_000
_CONTROLS: tuple[tuple[str, Dcqcn | Timely], ...] = (
    ("dcqcn", Dcqcn()),
    ("dcqcn, connectx", Dcqcn(preset="connectx")),
    ("timely", Timely()),
    ("timely, patched", Timely(patched=True)),
)


def packets(mtu: int = 9_000, seeds: int = 4) -> str:
    """Mean and last completion times, us, in either."""
    worlds: list[tuple[str, Topology, list[tuple[int, int, int]]]] = [
        (f"{n}:1 of {mb} MB", star(n, 100e9, PS_PER_US), [(k, n, mb * 1_000_000) for k in range(n)])
        for n, mb in ((8, 4), (8, 16), (64, 4))
    ]
    worlds += [
        (case.name + ", leaf-spine", case.topology, [(src, dst, size) for src, dst, size, _ in case.flows])
        for case in cases()
        if not case.name.startswith("late")
    ]
    lines = [
        f"completion times in us, mean / last, {seeds} seeds, packets of {mtu} bytes, pauses from 1.15 MB",
        "",
        f"{'':<34}{'':<18}{'packets':>16}{'fluid':>16}{'off, mean':>11}{'last':>7}{'wall time':>11}",
    ]
    ports = PortSettings(mtu_bytes=mtu, buffer_bytes=2 * _PAUSE, pause_bytes=_PAUSE, headers=False)
    for name, topology, flows in worlds:
        for label, control in _CONTROLS:
            wall = [0.0, 0.0]
            watch(topology, control, flows, ports)  # loads what is compiled
            found: list[list[list[int]]] = [[], []]
            for seed in range(seeds):
                began = time.perf_counter()
                found[0].append(simulate(topology, control, flows, mtu=mtu, pause=_PAUSE, seed=seed)[0])
                wall[0] += time.perf_counter() - began
                began = time.perf_counter()
                done = watch(topology, control, flows, ports, seed=seed).done_ps
                wall[1] += time.perf_counter() - began
                found[1].append([done[k] for k in range(len(flows))])
            both = [(mean(map(mean, one)) / 1e6, mean(map(max, one)) / 1e6) for one in found]
            cells = "".join(f"{f'{a:,.0f} / {b:,.0f}':>16}" for a, b in both)
            off = [both[1][k] / both[0][k] - 1 for k in (0, 1)]
            lines.append(
                f"{name:<34}{label:<18}{cells}{off[0]:>+11.1%}{off[1]:>+7.0%}{wall[1] / wall[0]:>10.2f}x"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def parameters() -> str:
    """What each parameter moves, and who says so."""
    lines = [f"{'':<9}{'parameter':<16}{'from, to':<22}{'':<26}{'':>9}{'':>10}"]
    for move in MOVES:
        first, second = move.results()
        name = move.parameter.removeprefix("patched ")
        values = f"{move.values[0]}, {move.values[1]}"
        assert issubclass(move.control, Control)
        lines.append(
            f"{move.control.__name__.lower():<9}{name:<16}{values:<22}{move.quantity:<26}"
            f"{first:>9.1f} -> {second:<8.1f} {move.why}"
        )
    return "\n".join(lines)


SECTIONS: dict[str, Callable[[], str]] = {"packets": packets, "parameters": parameters}

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        print(SECTIONS[section]())
        print()
