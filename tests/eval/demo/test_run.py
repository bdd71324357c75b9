"""The demonstration on the user's own photos: it searches for an object of many photos, and draws only these."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eval.commands.evaluate import _outcome
from eval.demo import run
from index.progress import silent
from tests.conftest import Indexed


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Names of the photos that each picture draws."""
    pictures: list[list[str]] = []

    def draw(path: Path, index: Any, found: Sequence[Any], *_: Any) -> None:
        pictures.append([row.name for _, _, row in found])
        path.touch()

    monkeypatch.setattr("retrieval.search.picture.draw_matches", draw)
    return pictures


def test_it_searches_for_what_many_photos_show(
    indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = drawn(monkeypatch)
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in indexed.photos.iterdir():
        if path.stem.startswith(("cat", "coffee")) or path.stem in ("distractor_001", "distractor_002"):
            shutil.copy(path, photos)
    result = run.run_own_demo(photos, tmp_path, 1, silent)
    objects = [path.stem.rpartition("_")[0] for path in photos.iterdir()]
    (names,) = pictures
    assert len(names) == result["found"] >= 1
    assert result["query"] not in names and len({*names}) == len(names)
    assert result["found"] >= max(objects.count(one) for one in objects) - 2  # as much as there is, nearly


def test_where_nothing_is_found_nothing_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = drawn(monkeypatch)
    (tmp_path / "photos").mkdir()
    for number in range(3):
        noise = np.random.default_rng(number).integers(0, 255, (60, 80, 3), np.uint8)
        Image.fromarray(noise).resize((640, 480)).save(tmp_path / "photos" / f"{number}.png")
    result = run.run_own_demo(tmp_path / "photos", tmp_path, 1, silent)
    assert result["found"] == 0 and pictures == [[]]


def test_the_last_line_says_how_many_photos_are_found_and_drawn() -> None:
    assert _outcome(0) == "no other photo surely shows it; the box is"
    assert _outcome(1) == "1 other photo surely shows it; the matches are"
    assert _outcome(6) == "6 other photos surely show it; the matches are"
    assert _outcome(9) == "9 other photos surely show it; the best 6 of them are"
