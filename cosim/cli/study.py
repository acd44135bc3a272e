"""``cosim study``: what takes several runs of one scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cosim.cli import options
from cosim.cli.say import end_if_interrupted, logged, print_json
from cosim.cli.trust import asking_first
from cosim.errors import InputError

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="One of `cosim list study`, {kind: NAME ...} or FILE.py:CLASS.")
]
_ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario (YAML).")]
_With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="KEY=VALUE", help="A setting of the study: vary=seed=1,2. Repeatable."),
]


@asking_first
def study(
    name: _Name,
    scenario: _ScenarioFile,
    study_settings: _With = None,
    settings: options.Settings = None,
    store: options.Store = None,
    again: options.Again = False,
    executor: options.ExecutorName = None,
    workers: options.Workers = None,
    allow_large: options.AllowLarge = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Ask what takes several runs of a scenario: each job alone, several networks, what matters ..."""
    from cosim.experiment.progress import ProgressBar
    from cosim.experiment.studies.perform import study as perform
    from cosim.results.render.terminal import show_page

    with logged(quiet), ProgressBar(shown=not quiet) as bar:
        found = perform(
            _asked(name, study_settings or ()),
            scenario,
            settings or (),
            store=store,
            again=again,
            executor=executor,
            workers=workers,
            allow_large=allow_large,
            progress=bar.show,
        )
    if as_json:
        print_json(found.to_json())
    else:
        show_page(found.page())
    end_if_interrupted(found.interrupted)


def _asked(name: str, settings: list[str] | tuple[str, ...]) -> Any:
    """The study with its settings."""
    from cosim.files.located_yaml import parse_value
    from cosim.plugin_file import PLUGIN, is_file_class

    asked = parse_value(name)
    if isinstance(asked, str):
        asked = {PLUGIN if is_file_class(asked) else "kind": asked}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--with {text}: there is no '='", hint="--with networks=fair_share,ns3")
        asked[key] = parse_value(value)
    return asked
