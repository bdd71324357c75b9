"""The routes of improving the search: what the command has left, and nothing that a damaged file says."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from retrieval.collection.layout import IMPROVEMENT, IMPROVEMENT_PICTURE, IMPROVING
from retrieval.web.app import create_app
from tests.conftest import Indexed
from tests.support.live import ask

FIGURES = {"won": 3, "lost": 1, "difference": 0.02, "standard_error": 0.01}
LEFT: dict[str, Any] = {
    "format": 1,
    "verdict": "better",
    "sentence": "It finds more.",
    "before": {"descriptor": "rootsift", "fingerprint": "a", "map": {"words": 0.5, "verified": 0.6}},
    "after": {"descriptor": "rootsift-white", "fingerprint": "b", "map": {"words": 0.5, "verified": 0.6}},
    "searches": {"photos": 9, "scenes": 2, "queries": 8, "words": FIGURES, "verified": FIGURES},
    "gained": [{"photo": 1, "box": [10.0, 20.0, 200.0, 150.0], "found": 2}],
    "switched": True,
    "dropped": [{"name": "a.jpg", "reason": "/secret/a.jpg is no longer there"}],
    "at": "2026-01-02T03:04:05+00:00",
    "seconds": {"learn": 1.0, "switch": 2.0, "total": 3.0},
}


@pytest.fixture
def folder(indexed: Indexed, tmp_path: Path) -> Path:
    shutil.copytree(indexed.folder, tmp_path / "copy.cairn")
    return tmp_path / "copy.cairn"


def test_what_came_of_it_is_told(folder: Path, indexed: Indexed) -> None:
    app = create_app(folder)
    state = ask(app, "/api/improve").json()
    nothing = {"missing": 0, "foreign": False, "interrupted": False, "last": None, "picture": None}
    assert state.pop("photos") > 2 and state == nothing
    assert ask(app, "/api/improve/picture").status_code == 404
    (folder / IMPROVEMENT).write_text(json.dumps(LEFT))
    (folder / IMPROVEMENT_PICTURE).write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / IMPROVING).mkdir()
    state = ask(app, "/api/improve").json()
    assert state["interrupted"] and state["picture"] == "/api/improve/picture"
    last = state["last"]
    assert (last["verdict"], last["switched"], last["at"]) == ("better", True, LEFT["at"])
    assert last["searches"] == LEFT["searches"] and last["before"]["map"] == {"words": 0.5, "verified": 0.6}
    assert last["gained"] == LEFT["gained"]
    assert "secret" not in json.dumps(state)
    picture = ask(app, "/api/improve/picture")
    assert picture.headers["content-type"] == "image/svg+xml" and "svg" in picture.text
    assert "default-src 'none'" in picture.headers["content-security-policy"]  # a script in it would not run


def test_the_picture_speaks_the_visitors_language(folder: Path) -> None:
    drawn = "<svg xmlns='http://www.w3.org/2000/svg'><text>Verified searches</text><text>{} found more</text></svg>"
    (folder / IMPROVEMENT_PICTURE).write_text(drawn.format(12))
    app = create_app(folder)
    german = ask(app, "/api/improve/picture", **{"Accept-Language": "de"})
    assert german.text == drawn.format(12).replace("Verified searches", "Geprüfte Suchen").replace(
        "found", "fanden"
    ).replace("more", "mehr")
    assert german.headers["content-language"] == "de" and "Accept-Language" in german.headers["vary"]
    assert ask(app, "/api/improve/picture").text == drawn.format(12)


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"verdict": 3}', "\0", "[" * 100_000])
def test_a_damaged_file_says_nothing(folder: Path, damage: str) -> None:
    (folder / IMPROVEMENT).write_text(damage)
    assert ask(create_app(folder), "/api/improve").json()["last"] is None
