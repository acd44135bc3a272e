"""Collectives that came out faster than links can be, though nobody proved that they move their data."""

from __future__ import annotations

import numpy as np

from cosim.doubts import Doubt
from cosim.engine.records import Records
from cosim.experiment.scenario import Scenario
from cosim.pattern.planner import Planner
from cosim.units import format_rate


def too_fast(scenario: Scenario, planner: Planner, records: Records) -> list[Doubt]:
    """Of those whose data was not checked: a bus bandwidth beyond what any endpoint's links send, with its
    place. What is proved can't have one, on a network that shares links.
    """
    if not planner.unchecked:
        return []
    from cosim.results.collective_columns import collective_columns
    from cosim.results.collectives import summarize_collectives

    topology = records.topology
    sent = np.bincount(topology.link_src, topology.link_rate_bps, topology.num_endpoints)
    most = float(sent[: topology.num_endpoints].max(initial=0.0))
    said = {
        one.collective: f"{one.algorithm}: a bus bandwidth of {format_rate(one.busbw_bps)} over "
        f"{one.group_size} ranks, where no endpoint's links send more than {format_rate(most)}: "
        f"it sends less than an {one.collective} has to"
        for one in summarize_collectives(collective_columns(records.collectives), records.jobs)
        if one.busbw_bps is not None
        and one.busbw_bps > most
        and (one.collective, one.algorithm) in planner.unchecked
    }
    return [
        Doubt(
            str(scenario.locate("collectives", collective) or scenario.name),
            text,
            "an algorithm whose messages say which chunks they carry, which `cosim prove` proves",
        )
        for collective, text in sorted(said.items())
    ]
