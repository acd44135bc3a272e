"""Draw the gallery's pictures anew: ``python docs/pictures.py [NAME ...]``.

Without names, those that are out of date.

Reports are photographed in headless Chromium, the answer and the timeline, by ``python docs/pictures.py
reports``, or where they are out of date.

A picture carries a checksum of the exact figures in the answer that it shows, so that ``tests/docs`` can tell
a picture of other figures. Sweeps are drawn from the answer's own table; scenarios are run.
"""

from __future__ import annotations

import csv
import hashlib
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from typer.testing import CliRunner

from cosim.cli import app
from cosim.experiment.sweep import Sweep, is_sweep
from cosim.files import located_yaml
from cosim.results.sweep import SweepRun, Trial

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"
PICTURES = Path(__file__).resolve().parent / "gallery" / "pictures"
REPORTS = {"quickstart": (1440, 390), "two-jobs": (1440,), "llama3-70b": (1440,)}
"""Widths at which a scenario's report is photographed."""
_HIGH = {1440: 1250, 390: 1500}
_KEY = "Exact figures"
_COLOURS = 64


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
            {name: float(row[name]) for name in sweep.measures if row[name]},
            row["digest"],
            row["error"],
        )
        for row in rows
    )
    return SweepRun(sweep.name, sweep.labels, sweep.measures, trials)


def draw(scenario: Path) -> Path:
    """Draw one, in a palette, so that it stays small."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "picture.png"
        if is_sweep(located_yaml.read(scenario)):
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


def report_picture(scenario: Path, width: int) -> Path:
    """``docs/gallery/pictures/report-quickstart-1440.png``."""
    return PICTURES / f"report-{scenario.stem}-{width}.png"


def is_report_current(scenario: Path, width: int) -> bool:
    """The picture is there, and shows the answer's figures."""
    path = report_picture(scenario, width)
    if not path.exists():
        return False
    with Image.open(path) as image:
        return bool(image.info.get(_KEY) == checksum(scenario))


def photograph(scenario: Path, width: int) -> Path:
    """A report as a browser shows it at first."""
    import cosim
    from tests.docs.site import browser

    told = PngInfo()
    told.add_text(_KEY, checksum(scenario))
    with tempfile.TemporaryDirectory() as folder, browser(width) as page:
        written = cosim.run(scenario).report().save(Path(folder) / "report.html")
        page.set_viewport_size({"width": width, "height": _HIGH[width]})
        page.goto(written.as_uri())
        page.wait_for_selector("html[data-shown]")
        page.wait_for_timeout(500)
        shot = Path(folder) / "shot.png"
        page.screenshot(path=str(shot))
        with Image.open(shot) as image:
            palette = image.convert("RGB").quantize(_COLOURS)
            palette.save(report_picture(scenario, width), optimize=True, pnginfo=told)
    return report_picture(scenario, width)


def _photograph_all(*, all_of_them: bool) -> None:
    sys.path.insert(0, str(SCENARIOS.parent))  # tests.docs has the browser
    for name, widths in REPORTS.items():
        scenario = SCENARIOS / f"{name}.yaml"
        for width in widths:
            if all_of_them or not is_report_current(scenario, width):
                print(f"drawn: {photograph(scenario, width)}")


def main() -> None:
    """Draw what is named, or what is out of date."""
    if "reports" in sys.argv[1:] or len(sys.argv) == 1:
        _photograph_all(all_of_them="reports" in sys.argv[1:])
    for scenario in sorted(SCENARIOS.glob("*.yaml")):
        if scenario.stem in sys.argv[1:] or (len(sys.argv) == 1 and not is_current(scenario)):
            print(f"drawn: {draw(scenario)}")


if __name__ == "__main__":
    main()
