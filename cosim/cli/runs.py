"""``cosim runs``: what a store has."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import typer

from cosim.cli import options
from cosim.cli.say import say
from cosim.cli.trust import asking_first

if TYPE_CHECKING:
    from cosim.experiment.store.runs import RunStore

runs = typer.Typer(help="Runs that a store has: list, show, prune, check.", no_args_is_help=True)


@runs.command("list")
def list_runs(store: options.StoreHere, where: options.Where = None, as_csv: options.AsCsv = False) -> None:
    """List the runs of a store, one a line."""
    from cosim.experiment.store.table import chosen, columns, csv_rows, rows

    found, broken = _opened(store).entries()
    entries = chosen(found, where or ())
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows(csv_rows(entries))
    else:
        for line in columns(rows(entries)):
            typer.echo(line)
        typer.echo(f"{len(entries)} of {len(found)} runs")
    for id_, why in broken.items():
        say(f"warning: {id_} can't be read: {why}; it is run again where it is asked for, `prune` removes it")


@runs.command()
def show(id_: options.RunId, store: options.StoreHere) -> None:
    """Show a run's page, its settings, and what it was computed from."""
    from cosim.experiment.store.table import about, begins_with
    from cosim.results.render.terminal import show as show_summary

    opened = _opened(store)
    entry = begins_with(opened, id_)
    typer.echo("\n".join(about(entry)))
    if not entry.error:
        typer.echo()
        show_summary(opened.summary(entry))


@runs.command()
def prune(
    store: options.StoreHere,
    where: options.Where = None,
    older: options.Older = None,
    other_versions: options.OtherVersions = False,
    failed: options.OnlyFailed = False,
    dry_run: options.DryRun = False,
) -> None:
    """Remove runs; without options, only unreadable ones and leftovers of killed writers."""
    from cosim.experiment.store.table import prunable

    opened = _opened(store)
    found, broken = opened.entries()
    going = prunable(found, where or (), older, other_versions=other_versions, failed=failed)
    ids = [*broken, *(entry.id for entry in going)]
    if dry_run:
        for id_ in ids:
            typer.echo(id_)
        typer.echo(f"{len(ids)} of {len(found) + len(broken)} runs would be removed")
        return
    for id_ in ids:
        opened.remove(id_)
    left = opened.clear()
    typer.echo(f"{len(ids)} of {len(found) + len(broken)} runs removed, {left} unfinished files")


@runs.command()
@asking_first
def check(store: options.StoreHere, where: options.Where = None, sample: options.Sample = 20) -> None:
    """Run some stored runs again, drawn at random, and compare digests; ends with 1 if one differs."""
    from cosim.experiment.store.check import check_sample
    from cosim.experiment.store.table import chosen

    opened = _opened(store)
    found, _ = opened.entries()
    checked, differ = check_sample(chosen(found, where or ()), sample)
    for id_, was, now in differ:
        say(f"error: {id_} has the digest {was}, and now comes to {now}")
    typer.echo(f"{checked - len(differ)} of {checked} runs come to the same again; {len(found)} are stored")
    if differ:
        raise typer.Exit(1)


def _opened(store: str) -> RunStore:
    from cosim.experiment.store.runs import open_store

    return open_store(store, new=False)
