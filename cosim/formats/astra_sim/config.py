"""Format ``astra-sim``: everything that ASTRA-sim's analytical backends are started with.

::

    trace.0.et ...      the workload, as the format ``chakra`` writes it; NPUs are endpoints
    comm_groups.json    process groups other than all NPUs
    network.yml         the topology, where its notation can say it
    system.json         implementations of collectives, chunks, delays
    memory.json         remote memory
    run.sh              the command line; ASTRA_SIM names the binary

ASTRA-sim's congestion-aware backend takes one dimension only, its congestion-unaware one any number.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml
from pydantic import Field

from cosim.engine.records import Records
from cosim.formats.astra_sim.memory import memory_of
from cosim.formats.astra_sim.network import dimensions_of, network_of
from cosim.formats.astra_sim.system import system_of
from cosim.formats.chakra.groups import GROUPS_FILE
from cosim.formats.chakra.write_collectives import ChakraFormat
from cosim.network.aware import CongestionAware
from cosim.network.unaware import CongestionUnaware
from cosim.spec import TimePs
from cosim.translation.contract import Progress
from cosim.translation.loss_report import LossReport
from cosim.translation.numbering import By
from cosim.translation.says import Says
from cosim.translation.source import Source
from cosim.units import PS_PER_NS

Backend = Literal["aware", "unaware"]

NETWORK_FILE, SYSTEM_FILE, MEMORY_FILE, RUN_FILE = "network.yml", "system.json", "memory.json", "run.sh"


class AstraSimFormat(ChakraFormat):
    """ASTRA-sim's input: Chakra traces, network, system, memory and group files, and the command line"""

    says: ClassVar[frozenset[Says]] = ChakraFormat.says | {
        Says.ALGORITHMS, Says.ENDPOINT_DELAY, Says.REDUCTION, Says.RENDEZVOUS, Says.TOPOLOGY, Says.NETWORK,
        Says.SHARED_MEMORY,
    }  # fmt: skip

    skipped: ClassVar[frozenset[str]] = frozenset({"barrier"})

    numbering: By = Field("endpoints", description="of NPUs; ASTRA-sim's are the endpoints of the topology")
    backend: Literal["auto", "aware", "unaware"] = Field(
        "auto", description="of ASTRA-sim; auto: that of the scenario's network, where the topology allows it"
    )

    deadline: TimePs = Field(
        3600 * 10**12, gt=0, description="how long ASTRA-sim may take (by the wall's clock) where it is run"
    )

    def backend_of(self, source: Source) -> Backend:
        """Which of ASTRA-sim's analytical backends."""
        if self.backend != "auto":
            return self.backend
        one = len(dimensions_of(source.topology)) <= 1
        return "unaware" if isinstance(source.network_spec, CongestionUnaware) or not one else "aware"

    def leads(self, source: Source) -> bool:
        """Whether a node that does nothing comes first: ASTRA-sim aborts on an event at its time 0.

        There is one where a collective begins then and its messages leave at once.
        """
        return source.planner.config.endpoint_delay < PS_PER_NS // 2

    def examine(self, source: Source, report: LossReport) -> None:
        """See :meth:`Format.examine`."""
        super().examine(source, report)
        if self.leads(source):
            at_once = sum(job.start_ps == 0 for job in source.jobs)
            why = "1 ns later, as ASTRA-sim has no events at time 0; --run takes it off again"
            report.left_out("starts of jobs", at_once, why)
        network = network_of(source.topology, report)
        system_of(source, len(network["topology"]), report)
        memory_of(source, report)
        backend = self.backend_of(source)
        if backend == "aware" and len(network["topology"]) > 1:
            report.lost("topology", 1, "the congestion-aware backend takes one dimension only")
        same = {"aware": CongestionAware, "unaware": CongestionUnaware}[backend]
        if not isinstance(source.network_spec, same):
            report.approximated("network model", 1, f"ASTRA-sim's congestion-{backend} backend")
        some = [job.workload.rendezvous for job in source.jobs]
        report.approximated("rendezvous of some jobs", int(len(set(some)) > 1), "all jobs there")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        super().write(source, out, report, progress)
        silent = LossReport()  # what these lose was reported by examine
        network = network_of(source.topology, silent)
        text = "".join(
            f"{key}: {yaml.safe_dump(value, default_flow_style=True)}" for key, value in network.items()
        )
        (out / NETWORK_FILE).write_text(text, encoding="utf-8")
        files: dict[str, dict[str, Any]] = {
            SYSTEM_FILE: system_of(source, len(network["topology"]), silent),
            MEMORY_FILE: memory_of(source, silent),
        }
        for name, value in files.items():
            (out / name).write_text(json.dumps(value, indent=4) + "\n", encoding="utf-8")
        (out / RUN_FILE).write_text(self._script(source, (out / GROUPS_FILE).exists()), encoding="utf-8")
        report.written("configuration files", 2 + len(files), "run.sh starts ASTRA-sim on them")

    def arguments(self, source: Source, folder: str, groups: bool) -> list[str]:
        """What ASTRA-sim's binary is started with; ``folder`` is where the files are."""
        said = [
            f"--workload-configuration={folder}/{self.prefix}",
            f"--system-configuration={folder}/{SYSTEM_FILE}",
            f"--remote-memory-configuration={folder}/{MEMORY_FILE}",
            f"--network-configuration={folder}/{NETWORK_FILE}",
        ]
        if groups:
            said.append(f"--comm-group-configuration={folder}/{GROUPS_FILE}")
        if source.planner.config.queues > 1:
            said.append(f"--num-queues-per-dim={source.planner.config.queues}")
        if any(job.workload.rendezvous for job in source.jobs):
            said.append("--rendezvous-protocol=true")
        return said

    def reads_back(self, source: Source, out: Path) -> dict[str, Any] | None:
        """See :meth:`Format.reads_back`."""
        return {"kind": "chakra", "path": str(out)} if len(source.jobs) == 1 else None

    def _script(self, source: Source, groups: bool) -> str:
        binary = f"AstraSim_Analytical_Congestion_{self.backend_of(source).capitalize()}"
        arguments = " \\\n  ".join(f'"{text}"' for text in self.arguments(source, "$here", groups))
        return (
            f"#!/bin/sh\n# ASTRA_SIM: path of {binary}\n"
            'here=$(cd "$(dirname "$0")" && pwd)\n'
            f'exec "${{ASTRA_SIM:?set it to {binary}}}" \\\n  {arguments}\n'
        )

    def run(self, source: Source, out: Path, say: Callable[[str], None]) -> Records:
        """Run the user's ASTRA-sim on the files.

        Raises
        ------
        InputError
            ASTRA-sim isn't there, or fails; with its last words.
        """
        from cosim.formats.astra_sim.run import run_astra_sim

        return run_astra_sim(self, source, out, say)
