"""Programs that build on Cairn: each does what it says. `test_packaging.py` has their types checked."""

import ast
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from runpy import run_path
from shutil import copytree
from typing import Any

import pytest
from PIL import Image

import cairn as library
from tests.conftest import Indexed
from tests.support.file_server import answering
from tests.support.paths import ROOT

PROGRAMS = ROOT / "docs" / "examples" / "programs"
PACKAGES = ("index", "retrieval", "learning", "eval")


def program(name: str) -> dict[str, Any]:
    return run_path(str(PROGRAMS / f"{name}.py"))


@pytest.fixture(scope="module")
def folder(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection that programs may change."""
    return Path(copytree(indexed.folder, tmp_path_factory.mktemp("programs") / "demo.cairn"))


def test_an_endpoint_finds_the_photo_that_is_sent(indexed: Indexed, folder: Path) -> None:
    server = program("search_endpoint")["make_server"](str(folder), 0)
    with answering(server):
        photo = sorted(indexed.photos.iterdir())[0]
        address = f"http://127.0.0.1:{server.server_port}"
        with urllib.request.urlopen(urllib.request.Request(address, photo.read_bytes())) as answer:
            assert json.load(answer)["found"][0][0] == photo.name
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(urllib.request.Request(address, b"no photo"))


def test_a_nightly_job_tells_what_standing_searches_found(
    indexed: Indexed, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photo = sorted(indexed.photos.iterdir())[0]
    with library.open(folder) as collection:
        collection.save_search("The first", photo.name, standing=True, turns=1)
        collection.ask_searches()
    new = tmp_path / "new.jpg"
    with Image.open(photo) as image:
        image.resize((image.width // 2, image.height // 2)).save(new)
    program("nightly")["main"](str(folder), str(tmp_path))
    assert capsys.readouterr().out.splitlines() == ["1 photos added, 0 failed", "The first: new.jpg"]


def test_answers_become_a_table(folder: Path) -> None:
    pytest.importorskip("pandas")
    with library.open(folder) as collection:
        found = program("table_of_answers")["table"](collection, 3)
        first = collection.photos()[0].name
        expected = [one.name for one in collection.search(first, turns=1) if one.name != first]
    assert found[found["query"] == first]["name"].tolist() == expected


def test_pairs_of_photos_and_of_queries_are_written(indexed: Indexed, folder: Path, tmp_path: Path) -> None:
    photo = sorted(indexed.photos.iterdir())[0]
    program("pairs_for_hloc")["main"](str(folder), tmp_path, [photo.name])
    pairs = [line.split() for line in (tmp_path / "pairs.txt").read_text().splitlines()]
    requested = [line.split() for line in (tmp_path / "pairs-query.txt").read_text().splitlines()]
    assert pairs and all(len(pair) == 2 for pair in pairs)
    assert requested[0] == [photo.name, photo.name] and {pair[0] for pair in requested} == {photo.name}


def test_copies_are_hidden(folder: Path) -> None:
    with library.open(folder) as collection:
        hidden = program("without_copies")["hide_copies"](collection)
        kinds = {name: kind for group in collection.groups() for name, kind in group.kinds.items()}
    assert sorted(hidden) == sorted(name for name, kind in kinds.items() if kind in ("copy", "turned"))


@pytest.mark.filterwarnings("error")
def test_groups_make_a_table_without_a_warning(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    with library.open(folder) as collection:
        groups = collection.group(workers=1)
        table = pandas.DataFrame(group.to_dict() for group in groups)
        photos = pandas.DataFrame(groups[0])
    assert photos["name"].tolist() == table["photos"][0]
    assert table["group"].tolist() == [group.number for group in groups] and len(table.explode("photos")) > len(groups)


def _imports_in_strings(path: Path) -> Iterator[tuple[str, str]]:
    """Names that code within a string imports from Cairn: (module, name)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            with contextlib.suppress(SyntaxError):
                for inner in ast.walk(ast.parse(node.value)):
                    if isinstance(inner, ast.ImportFrom) and (inner.module or "").split(".")[0] in PACKAGES:
                        yield from ((str(inner.module), name.name) for name in inner.names)


def test_code_that_benchmarks_give_other_processes_imports_what_there_is() -> None:
    programs = sorted([*(ROOT / "tests" / "benchmarks").glob("*.py"), *(ROOT / "scripts").glob("*.py")])
    imported = {found for path in programs for found in _imports_in_strings(path)}
    assert ("retrieval.web.jobs", "SearchJobs") in imported
    for module, name in sorted(imported):
        assert hasattr(import_module(module), name), f"{module} has no {name}"
