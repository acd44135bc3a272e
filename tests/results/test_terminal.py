from __future__ import annotations

import dataclasses
import io

import pytest

from cosim.results.render.terminal import render, show
from cosim.results.render.text import align, sparkline
from cosim.results.summary import summarize
from tests.results.synthetic_run import US, example


def test_page_fits_a_screen_and_says_the_main_things() -> None:
    page = render(summarize(example().records(), name="quickstart", warnings=["beware"]))
    lines = page.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 110
    for said in (
        "quickstart: Switch(4)",
        "200 us simulated",
        "100 us",
        "52.5 us  52%",
        "what if communication were free: at least 50 us an iteration, at most 2.00 x faster",
        "rank 3 on endpoint 0",
        "1.92 Tbps",
        "gpu0 -> switch",
        "100.0 %",
        "31 MB",
        "p99.9",
        "beware",
    ):
        assert said in page


def test_page_is_plain_off_a_terminal_and_coloured_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name, value in (("NO_COLOR", ""), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    summary = summarize(example().records())
    plain, coloured = io.StringIO(), Terminal()
    show(summary, plain)
    show(summary, coloured)
    assert "\033[" not in plain.getvalue()
    assert "\033[1m" in coloured.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_page_leaves_out_what_matters_least_until_it_fits(width: int) -> None:
    build = example()
    build.rows = [(i, r, o, s, e + 10 * US * (i == 1 and e == 200 * US)) for i, r, o, s, e in build.rows]
    summary = summarize(build.records(), name="a name", warnings=["beware of what is very long " * 5])
    page = render(summary, width=width)
    assert max(map(len, page.splitlines())) <= width
    assert ("algbw" in page) == (width > 80)
    for said in ("exposed", "busbw", "busy", "100.0 %", "digest", "iterations 100 us, 110 us"):
        assert said in page
    assert render(summary, width=1000) == render(summary)


def test_page_without_utf8_is_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    show(summarize(example().records()), out)
    out.flush()
    assert "|%" in raw.getvalue().decode("ascii")


def test_many_rows_are_cut_and_the_rest_counted() -> None:
    summary = summarize(example().records())
    one = summary.collectives[0]
    many = dataclasses.replace(
        summary,
        collectives=tuple(dataclasses.replace(one, size_bytes=i) for i in range(50)),
        jobs=summary.jobs * 20,
    )
    page = render(many)
    assert "... and 42 more kinds" in page
    assert "... and 12 more jobs" in page


def test_changing_iterations_and_interruption_are_shown() -> None:
    build = example()
    build.rows = [(i, r, o, s, e + 10 * US * (i == 1 and e == 200 * US)) for i, r, o, s, e in build.rows]
    page = render(summarize(build.records(interrupted="Ctrl-C")))
    assert "iterations 100 us, 110 us (from 100 us to 110 us)" in page
    assert "INTERRUPTED (Ctrl-C)" in page


def test_what_an_import_read_ignored_and_assumed_is_shown() -> None:
    summary = summarize(example().records())
    assert "workload of gpt\n  assumed: peak FLOP/s\n" in render(summary)
    said = tuple(f"{n} x k{n}" for n in range(1, 11))
    job = dataclasses.replace(summary.jobs[0], read=said, ignored=("tensors",), assumed=())
    page = render(dataclasses.replace(summary, jobs=(job,)))
    assert f"workload of {job.name}\n  read: 1 x k1, 2 x k2" in page
    assert "8 x k8, and 2 more in --json\n  ignored: tensors\n\n" in page + "\n"
    assert "assumed" not in page


def test_columns_line_up() -> None:
    assert align([["name", "n"], ["a", "100"]]) == ["name    n", "a     100"]


def test_sparkline_spans_its_range() -> None:
    assert sparkline([0, 0.01, 0.5, 1.0, 7.0]) == " ▁▅██"
