"""Tutorials and guides: what they show of Python compiles, uses public names alone, and runs from top to bottom."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cairn
from scripts.documentation.forty_books import PAGE, follow
from tests.support.paths import ROOT
from tests.support.printed_pages import typefaces

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")])
NOTEBOOKS = sorted(DOCS.glob("examples/*.ipynb"))
_NUMBER = re.compile(r"[\d.,]*\d")
_OUTPUT = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
_NUMBERS = re.compile(r"(?<![\w/.-])-?\d+\.?\d*(?:e[+-]\d+)?(?![\w/-])")
_MARK = "-- the next block --"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(path: Path) -> list[str]:
    """The Python of a page or a notebook, in order."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return _BLOCK.findall(text)
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


# What they read is not at hand: features of another program, books, a library, collections that are there.
NEED_MORE = {
    *("own-features", "woodcut", "find-by-words", "iiif", "impressions", "reproduce", "structure-from-motion"),
}
WITH_PYTHON = [path for path in (*PAGES, *NOTEBOOKS) if _blocks(path)]


def _public_names(block: str) -> Iterator[str]:
    """What a block takes from `cairn`."""
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cairn":
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "cairn":
            yield from (alias.name for alias in node.names)


@pytest.fixture(scope="session")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample photos that the tutorials tell of."""
    folder = tmp_path_factory.mktemp("album")
    runpy.run_path(str(DOCS / "examples" / "sample_photos.py"))["main"](folder / "photos")
    return folder


@pytest.mark.parametrize("path", WITH_PYTHON, ids=lambda path: path.stem)
def test_python_on_a_page_compiles_and_uses_public_names(path: Path) -> None:
    for block in _blocks(path):
        compile(block, path.name, "exec")
        assert {name for name in _public_names(block) if name not in {*cairn.PUBLIC, "__version__", "testing"}} == set()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs_and_may_be_read_by_any_version(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    for cell in notebook["cells"]:
        assert cell["id"] and cell["cell_type"] in ("code", "markdown")
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in WITH_PYTHON if path.stem not in NEED_MORE], ids=lambda path: path.stem
)
def test_python_on_a_page_runs(path: Path, album: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").symlink_to(album / "photos")
    between = f"\n\nprint({_MARK!r})\n\n"
    (tmp_path / "page.py").write_text(between.join(_blocks(path)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    ran = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.replace(_MARK, "").strip()
    if path.suffix == ".md":
        printed = [one.strip("\n") for one in ran.stdout.split(_MARK)]
        for (block, shown), said in zip(_OUTPUT.findall(path.read_text(encoding="utf-8")), printed, strict=True):
            assert not shown or is_as_shown(said, shown.strip("\n")), f"{block}\nprints\n{said}\nand not\n{shown}"


def is_as_shown(said: str, shown: str) -> bool:
    """Whether an output is what a page shows: words are the same, numbers nearly, seconds any; … stands for the rest
    of a line.
    """
    lines, others = said.splitlines(), shown.splitlines()
    return len(lines) == len(others) and all(map(_is_line, lines, others))


def _is_line(said: str, shown: str) -> bool:
    if shown.endswith("…"):
        return said.startswith(shown.rstrip("… "))
    words, same = ("".join(_NUMBERS.sub("#", one).split()) for one in (said, shown))
    numbers, expected = ([float(one) for one in _NUMBERS.findall(line)] for line in (said, shown))
    is_near = "'total':" in shown or numbers == pytest.approx(expected, rel=0.2, abs=0.1)
    return words == same and is_near


def test_outputs_are_compared_with_tolerance() -> None:
    assert is_as_shown("a.jpg 318 [ 2.6 -1]", "a.jpg 301 [2.61   -1.]")
    assert not is_as_shown("a.jpg 318", "b.jpg 318") and not is_as_shown("a.jpg 318", "a.jpg 200")
    assert is_as_shown(
        "Error: what is wrong\n{'extract': 0.1, 'total': 9.0}", "Error: what …\n{'extract': 7, 'total': 1}"
    )
    assert not is_as_shown("one\ntwo", "one")


@pytest.mark.slow
def test_the_sample_photos_are_what_the_tutorial_says(album: Path, cairn: object) -> None:
    photos = sorted((album / "photos").rglob("*.jpg"))
    assert len(photos) == 55 and len({path.read_bytes() for path in photos}) == 55


@pytest.mark.slow
@pytest.mark.skipif(len(typefaces()) < 2, reason="no fonts to print books with")
def test_the_tutorial_of_forty_books_shows_what_is_printed(tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    assert [_NUMBER.sub("#", line) for line in follow(text, tmp_path).splitlines()] == [
        _NUMBER.sub("#", line) for line in text.splitlines()
    ]
