"""The site builds without a warning; in a browser no link is dead and nothing is wider than the screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from tests.docs import site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(site.missing_sphinx()), reason=site.missing_sphinx() or "it is here"),
]
in_a_browser = pytest.mark.skipif(bool(site.missing_browser()), reason=site.missing_browser() or "it is here")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = site.build(out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    with site.served(built) as where:
        yield where


def pages(built: Path) -> list[str]:
    return sorted(
        str(path.relative_to(built))
        for path in built.rglob("*.html")
        if "_static" not in path.parts and path.name != "genindex.html"
    )


def targets(html: str) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', html))


def test_no_link_within_the_site_is_dead(built: Path) -> None:
    ids = {name: targets((built / name).read_text(encoding="utf-8")) for name in pages(built)}
    dead = []
    for name in ids:
        text = (built / name).read_text(encoding="utf-8")
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            if urlsplit(link).scheme or link.startswith(("//", "data:")):
                continue
            path, fragment = urldefrag(urljoin(f"/{name}", link))
            target = unquote(urlsplit(path).path).lstrip("/") or "index.html"
            if not (built / target).exists():
                dead.append(f"{name}: {link}")
            elif fragment and target in ids and unquote(fragment) not in ids[target]:
                dead.append(f"{name}: {link} (no such place)")
    assert dead == []


@in_a_browser
@pytest.mark.parametrize("device", site.WIDTHS)
def test_every_page_fits_and_says_nothing_on_the_console(built: Path, address: str, device: str) -> None:
    wrong: list[str] = []
    with site.browser(site.WIDTHS[device]) as page:
        here = ""
        page.on("pageerror", lambda error: wrong.append(f"{here}: {error}"))
        page.on(
            "requestfailed",  # an icon under way when the next page is opened is no failure
            lambda one: None if "ABORTED" in one.failure else wrong.append(f"{here}: {one.url} failed"),
        )
        page.on(
            "console",
            lambda told: wrong.append(f"{here}: {told.text}") if told.type in ("error", "warning") else None,
        )
        for name in pages(built):
            here = name
            page.goto(f"{address}/{name}")
            wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            if wide > 0:
                wrong.append(f"{name}: {wide} pixels wider than the screen")
            unseen = page.evaluate(
                "[...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src)"
            )
            wrong += [f"{name}: {image} is not shown" for image in unseen]
    assert wrong == []


@in_a_browser
@pytest.mark.parametrize("device", site.WIDTHS)
@pytest.mark.parametrize(
    ("word", "page_name"),
    [
        ("oversubscription", "reference/names/topologies.html"),
        ("dcqcn", "reference/names/controls.html"),
        ("NetworkSpec", "reference/plugins.html"),
    ],
)
def test_search_finds(address: str, device: str, word: str, page_name: str) -> None:
    with site.browser(site.WIDTHS[device]) as page:
        page.goto(f"{address}/search.html?q={word}")
        page.wait_for_selector("#search-results .search li a")
        found = "[...document.querySelectorAll('#search-results .search li a')]"
        page.wait_for_function(f"name => {found}.some(one => one.href.includes(name))", arg=page_name)


@in_a_browser
@pytest.mark.parametrize(
    ("words", "page_name"), [("ns-3", "howto/ns3.html"), ("network model", "which-network.html")]
)
def test_search_shows_titles_first_and_the_changelog_last(address: str, words: str, page_name: str) -> None:
    with site.browser(site.WIDTHS["desktop"]) as page:
        page.goto(f"{address}/search.html?q={words}")
        page.wait_for_function("document.querySelector('.search-summary')?.textContent.includes('found')")
        page.wait_for_timeout(1000)  # results come one by one
        found = page.evaluate(
            "[...document.querySelectorAll('#search-results .search li > a')].map(one => one.href)"
        )
    assert page_name in found[0]
    others = [at for at, one in enumerate(found) if not ("changelog" in one or "/contributing/" in one)]
    assert others == [*range(len(others))]


@in_a_browser
def test_the_picture_follows_the_theme_and_the_width(address: str) -> None:
    colour = "getComputedStyle(document.querySelector('.data-flow.wide .name')).fill"
    with site.browser(site.WIDTHS["desktop"]) as page:
        page.goto(f"{address}/index.html")
        shades = {}
        for theme in ("light", "dark"):
            page.evaluate(f"document.body.dataset.theme = '{theme}'")
            shades[theme] = page.evaluate(colour)
        assert shades["light"] != shades["dark"]
        page.set_viewport_size({"width": site.WIDTHS["phone"], "height": 844})
        shown = page.evaluate(
            "[...document.querySelectorAll('.data-flow')].map(one => getComputedStyle(one).display)"
        )
        assert shown == ["none", "block"]
