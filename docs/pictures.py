"""Draw the gallery's pictures again: ``python docs/pictures.py [NAME ...]``.

Without names, those that are out of date.

Reports are photographed in headless Chromium by ``python docs/pictures.py reports``, or where they are out of
date.

A picture carries a checksum of the exact figures in the answer that it shows, so that ``tests/docs`` can tell
a picture of other figures. Sweeps are drawn from the answer's own table; scenarios are run.
"""

from __future__ import annotations

import csv
import hashlib
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from typer.testing import CliRunner

from cosim.cli import app
from cosim.experiment.scenario import is_sweep
from cosim.experiment.sweep import Sweep
from cosim.files import located_yaml
from cosim.results.quantities import QUANTITIES
from cosim.results.render.figure import COLORS, new_figure, save_figure
from cosim.results.report.document import RunReport
from cosim.results.sweep import SweepRun, Trial, column_of

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"
PICTURES = Path(__file__).resolve().parent / "gallery" / "pictures"


class Photo(NamedTuple):
    """A picture of a report: of a scenario with ``changes``, ``against`` it with others, from a part on."""

    scenario: str
    width: int = 1440
    high: int = 1250
    part: str = ""
    changes: Mapping[str, Any] = MappingProxyType({})
    against: Mapping[str, Any] | None = None

    @property
    def path(self) -> Path:
        """``docs/gallery/pictures/report-quickstart-1440.png``."""
        part = f"-{self.part}" if self.part else ""
        return PICTURES / f"report-{self.scenario}{part}-{self.width}.png"


_OVER_TIME = {"queues": ["left -> right"], "rates": ["one", "two"], "every": "100us"}
REPORTS = (
    Photo("quickstart"),
    Photo("quickstart", 390, 1500),
    Photo("two-jobs"),
    Photo("llama3-70b"),
    Photo("mltcp", high=1000, part="network", changes={"record": _OVER_TIME}),
    Photo("quickstart", high=1000, part="comparison", against={"topology.oversubscription": 1}),
    Photo("incast", high=1150, part="sweep"),
)
"""What is photographed of reports."""
_KEY = "Exact figures"
_COLOURS = 128


def exact(scenario: Path) -> str:
    """What the answer gives to the picosecond."""
    return scenario.with_suffix(".answer.txt").read_text(encoding="utf-8").partition("\nexact\n")[2]


def checksum(scenario: Path) -> str:
    """Of the exact figures."""
    return hashlib.sha256(exact(scenario).encode()).hexdigest()[:16]


def picture(scenario: Path) -> Path:
    """``docs/gallery/pictures/quickstart.png``."""
    return PICTURES / f"{scenario.stem}.png"


def is_current(scenario: Path) -> bool:
    """The picture is there, and shows the answer's figures."""
    if not picture(scenario).exists():
        return False
    with Image.open(picture(scenario)) as image:
        return bool(image.info.get(_KEY) == checksum(scenario))


def trials_of(path: Path) -> SweepRun:
    """The runs that the answer lists."""
    sweep = Sweep.load(path)
    rows = list(csv.DictReader(exact(path).splitlines()))
    names = [axis for axis, _ in sweep.labels]
    trials = tuple(
        Trial(
            tuple(row[axis] for axis in names),
            int(row["seed"]),
            {name: float(row[column_of(name)]) for name in sweep.measures if row[column_of(name)]},
            row["digest"],
            row["error"],
        )
        for row in rows
    )
    return SweepRun(sweep.name, sweep.labels, sweep.measures, trials)


def _draw_design(scenario: Path, path: Path) -> None:
    """Time against price of each point that the answer lists."""
    rows = [row for row in csv.DictReader(exact(scenario).splitlines()) if row.get("price")]
    figure, [[panel]] = new_figure([3.6], 1, 7.0)
    names = [name for name in rows[0] if name not in QUANTITIES]
    first = [row[names[0]] for row in rows]
    for label, colour, marker in zip(dict.fromkeys(first), COLORS, "sD", strict=False):
        mine = [row for row, one in zip(rows, first, strict=True) if one == label]
        x, y = ([float(row[key]) / per for row in mine] for key, per in (("price", 1e6), ("iteration", 1e12)))
        panel.scatter(x, y, s=36 if marker == "s" else 18, color=colour, marker=marker, label=label)
        if label == first[0]:
            for at, high, row in zip(x, y, mine, strict=True):
                said = ", ".join(row[name] for name in names[1:])
                panel.annotate(said, (at, high), (6, 6), textcoords="offset points", fontsize=8)
    panel.margins(0.18)
    panel.set_xlabel("price (M$)")
    panel.set_ylabel("iteration (s)")
    panel.legend(title=names[0], frameon=False)
    save_figure(figure, path)


def draw(scenario: Path) -> Path:
    """Draw one, in a palette, so that it stays small."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "picture.png"
        if "objective" in located_yaml.read(scenario).value:
            _draw_design(scenario, drawn)
        elif is_sweep(located_yaml.read(scenario)):
            trials_of(scenario).draw(drawn)
        else:
            arguments = ["run", str(scenario), "--quiet", "--figure", str(drawn)]
            if located_yaml.read(scenario).value.get("fold") == "always":  # a figure needs every message
                arguments += ["--set", "fold=never"]
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
            if result.exit_code:
                raise RuntimeError(f"{scenario.name}: {result.stderr}")
        told = PngInfo()
        told.add_text(_KEY, checksum(scenario))
        with Image.open(drawn) as image:
            palette = image.convert("RGB").quantize(_COLOURS)
            palette.save(picture(scenario), optimize=True, pnginfo=told)
    return picture(scenario)


def is_report_current(photo: Photo) -> bool:
    """The picture is there, and shows the answer's figures."""
    if not photo.path.exists():
        return False
    with Image.open(photo.path) as image:
        return bool(image.info.get(_KEY) == checksum(SCENARIOS / f"{photo.scenario}.yaml"))


def _report(photo: Photo) -> RunReport:
    import cosim

    scenario = SCENARIOS / f"{photo.scenario}.yaml"
    if is_sweep(located_yaml.read(scenario)):
        return trials_of(scenario).report()
    run = cosim.run(scenario, photo.changes)
    return run.report(None if photo.against is None else cosim.run(scenario, photo.against))


def photograph(photo: Photo) -> Path:
    """A report as a browser shows it."""
    from tests.docs.site import browser

    told = PngInfo()
    told.add_text(_KEY, checksum(SCENARIOS / f"{photo.scenario}.yaml"))
    with tempfile.TemporaryDirectory() as folder, browser(photo.width) as page:
        written = _report(photo).save(Path(folder) / "report.html")
        page.set_viewport_size({"width": photo.width, "height": photo.high})
        page.goto(written.as_uri())
        page.wait_for_selector("html[data-shown]")
        if photo.part:
            page.evaluate(f"document.getElementById('{photo.part}').scrollIntoView({{behavior: 'instant'}})")
        page.wait_for_timeout(500)
        shot = Path(folder) / "shot.png"
        page.screenshot(path=str(shot))
        with Image.open(shot) as image:
            palette = image.convert("RGB").quantize(_COLOURS)
            palette.save(photo.path, optimize=True, pnginfo=told)
    return photo.path


def _photograph_all(*, all_of_them: bool) -> None:
    sys.path.insert(0, str(SCENARIOS.parent))  # tests.docs has the browser
    for photo in REPORTS:
        if all_of_them or not is_report_current(photo):
            print(f"drawn: {photograph(photo)}")


def main() -> None:
    """Draw what is named, or what is out of date."""
    if "reports" in sys.argv[1:] or len(sys.argv) == 1:
        _photograph_all(all_of_them="reports" in sys.argv[1:])
    for scenario in sorted(SCENARIOS.glob("*.yaml")):
        if scenario.stem in sys.argv[1:] or (len(sys.argv) == 1 and not is_current(scenario)):
            print(f"drawn: {draw(scenario)}")


if __name__ == "__main__":
    main()
