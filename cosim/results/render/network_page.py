"""The page of several networks: times, errors against the last, the order of designs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cosim.results.networks import CollectiveError, NetworkComparison
from cosim.results.render.page import Lines, Page, PageTable, Section, points_section
from cosim.units import format_size, format_time

_MAX_PAIRS = 5


def network_page(comparison: NetworkComparison) -> Page:
    """Mean iterations, collectives, and where the networks disagree."""
    networks, collectives = comparison.networks, comparison.collectives()
    columns = [comparison.times(network) for network in networks]
    rows = [["", *_heads(networks)]]
    for k, design in enumerate(comparison.designs):
        rows.append([f"  {design}", *_cells([column[k] for column in columns])])
    page = points_section((f"{one.design} on {one.network}", why) for one, why in comparison.doubtful)
    page.append(
        Section([Lines([f"mean iteration; error against {networks[-1]}"], bold=True), PageTable(rows)])
    )
    if collectives:
        rows = [["", "", "", *_heads(networks)]]
        for one in collectives:
            rows.append([f"  {one.design}", one.name, format_size(one.size_bytes), *_cells(one.times_ps)])
        title = f"mean time of a collective; error against {networks[-1]}"
        page.append(Section([Lines([title], bold=True), PageTable(rows, left=(0, 1))]))
    verdicts = [*_orders(comparison), *_largest_errors(comparison, collectives)]
    return [*page, Section([Lines(verdicts)])] if verdicts else page


def _orders(comparison: NetworkComparison) -> Iterator[str]:
    *others, last = comparison.networks
    count = len(comparison.designs)
    if count < 2:
        return
    for network in others:
        found = comparison.correlation(network)
        shown = "-" if found is None else f"{found:.3f}"
        yield f"order of the {count} designs, {network} and {last}: Spearman {shown}"
        for better, worse in comparison.disagreements(network)[:_MAX_PAIRS]:
            yield f"  {last} has {better} before {worse}, {network} the other way round"


def _largest_errors(comparison: NetworkComparison, collectives: Sequence[CollectiveError]) -> Iterator[str]:
    *others, last = comparison.networks
    for n, network in enumerate(others):
        worst = max(collectives, key=lambda one: abs(one.errors[n]), default=None)
        if worst is not None:
            yield (
                f"{network} and {last} part most in {worst.design}: {worst.name}, "
                f"{format_size(worst.size_bytes)}, {worst.errors[n]:+.1%}"
            )


def _heads(networks: Sequence[str]) -> list[str]:
    *others, last = networks
    return [cell for network in others for cell in (network, "error")] + [last]


def _cells(times: Sequence[float]) -> list[str]:
    *others, last = times
    cells = []
    for time in others:
        cells += [format_time(round(time)), f"{time / last - 1:+.1%}" if last else "-"]
    return [*cells, format_time(round(last))]
