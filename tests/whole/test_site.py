"""The documentation site: built without a warning or the network, a page for everything, and all can read it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

import cairn
from scripts.documentation.mathml import to_mathml
from scripts.documentation.rest_reference import MARK, PAGE, reference
from tests.support.browser import DESKTOP, SMALLEST, visiting
from tests.support.paths import ROOT
from tests.whole.test_docs import COMMANDS

PAGES = (
    "index",
    "tutorials/index",
    "how-to/searching",
    "reference/commands",
    "reference/python/index",
    "reference/python/cairn.Collection",
    "reference/rest",
    "explanations/how-it-works",
    "gallery/index",
)
"""Of each kind one; with a page of the gallery, and the first tutorial."""


def _build(*options: object) -> subprocess.CompletedProcess[str]:
    """What scripts/docs runs, in the environment that the tests run in."""
    command = [sys.executable, "-m", "documentation.build", *map(str, options)]
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "scripts")))
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, its gallery not run."""
    folder = tmp_path_factory.mktemp("built") / "site"
    done = _build("--quick", "--out", folder)
    assert (done.returncode, done.stderr) == (0, "")  # a warning fails it
    assert f"open {folder}/index.html" in done.stdout
    return folder


@pytest.fixture(scope="module")
def served_site(site: Path) -> Iterator[str]:
    """Its address on a server of this machine: of files alone, a browser lets scripts read nothing."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *reported: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _chosen(site: Path) -> list[str]:
    """Pages to look at: those above that there are, a tutorial, and an example."""
    pages = [name for name in PAGES if (site / f"{name}.html").exists()]
    for folder in ("tutorials", "gallery"):
        others = sorted(
            path for path in site.glob(f"{folder}/*.html") if path.stem not in ("index", "sg_execution_times")
        )
        pages += [f"{folder}/{path.stem}" for path in others[:1]]
    return pages


def test_the_reference_of_the_api_is_what_the_server_says() -> None:
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[2]
    assert written == f"\n{reference()}", "out of date: run python -m scripts.documentation.rest_reference"


@pytest.mark.slow
def test_everything_has_a_page(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    assert not [path for path in COMMANDS if f'id="{"-".join(path)}"' not in commands]
    for name in cairn.PUBLIC:
        if not name.startswith("_"):
            page = (site / f"reference/python/cairn.{name}.html").read_text(encoding="utf-8")
            assert f'id="cairn.{name}"' in page and "alias of" not in page, name
    staged = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert not [path for path in staged if not path.is_relative_to("gallery") and not (site / path).is_file()]


def test_equations_set_names_of_functions_apart_from_what_follows() -> None:
    assert "<mspace" in to_mathml(r"\ln 2") and "<mspace" not in to_mathml(r"\ln(2)")


@pytest.mark.slow
def test_equations_are_drawn_by_the_browser(site: Path) -> None:
    text = (site / "explanations/how-it-works.html").read_text(encoding="utf-8")
    assert text.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') > 20
    assert "$$" not in text and r"\frac" not in text and not re.search("<script[^>]*mathjax", text, re.IGNORECASE)


def _addresses(site: Path) -> Iterator[tuple[str, str]]:
    """What pages and style sheets load, by the browser itself."""
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"""<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=["']([^"']+)""", text)
        loaded += re.findall(r"""<link\b[^>]*?\bhref=["']([^"']+)""", text)
        loaded += re.findall(r"""(?:url\(|@import )["']?([^"')]+)""", text) if path.suffix == ".css" else []
        yield from ((path.name, address) for address in loaded)


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    found = list(_addresses(site))
    assert len(found) > 100
    assert [one for one in found if re.match(r"(https?:)?//", one[1])] == []


@pytest.mark.slow
def test_links_to_other_sites_are_well_formed(site: Path) -> None:
    links = {link for path in site.rglob("*.html") for link in re.findall(r'href="(https?:[^"]+)"', path.read_text())}
    assert not [link for link in links if not re.fullmatch(r"[\w.-]+\.[a-z]+(:\d+)?", urlsplit(link).netloc)]


@pytest.mark.slow
@pytest.mark.browser
def test_searching_the_pages_needs_no_network(chromium: Any, served_site: str) -> None:
    requested: list[str] = []
    with visiting(chromium, served_site) as visit:
        visit.page.on("request", lambda request: requested.append(request.url))
        page = visit.open("/search.html?q=box")
        page.wait_for_selector("#search-results li")
        links = page.locator("#search-results li a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert "tutorials/" in links[0]  # what teaches comes first
    assert any("searching" in link for link in links)
    assert requested and all(url.startswith((served_site, "data:")) for url in requested)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_can_read_the_pages(chromium: Any, site: Path, served_site: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    requested: list[str] = []
    with visiting(chromium, served_site, DESKTOP, color_scheme=scheme) as visit:
        visit.page.on("request", lambda request: requested.append(request.url))
        for name in _chosen(site):
            page = visit.open(f"/{name}.html")
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
            found = axe.run(page, options={"preload": False}).response["violations"]
            assert not [(one["id"], one["nodes"][0]["html"]) for one in found], name
    assert all(url.startswith((served_site, "data:")) for url in requested)


@pytest.mark.slow
@pytest.mark.browser
def test_pages_fit_a_phone(chromium: Any, site: Path, served_site: str) -> None:
    with visiting(chromium, served_site, SMALLEST) as visit:
        for name in _chosen(site):
            page = visit.open(f"/{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= SMALLEST[0], name
