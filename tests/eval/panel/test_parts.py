"""Queries of the panel: boxes of rotated photos show the same part, strips are inside their boxes, kinds are known."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eval.panel.kinds import GROUPS, KINDS, LANDMARKS
from eval.panel.parts import PanelQuery, _strips, _turned, find_parts, turned_box

QUERY = PanelQuery("tower_1", "façade", "tower", Path(), (10.0, 20.0, 109.0, 69.0), frozenset("ab"), frozenset())


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 255, (80, 120, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "tower.png")
    return tmp_path / "tower.png"


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_box_is_turned_as_the_photo_is(photo: Path, turn: int) -> None:
    def cut(image: Image.Image, box: tuple[float, float, float, float]) -> Image.Image:
        x0, y0, x1, y1 = map(int, box)
        return image.crop((x0, y0, x1 + 1, y1 + 1))

    image = Image.open(photo)
    box = (10.0, 20.0, 59.0, 49.0)
    turned = cut(image.rotate(turn, expand=True), turned_box(box, image.size, turn))
    assert np.array_equal(np.asarray(turned), np.asarray(cut(image, box).rotate(turn, expand=True)))


def test_strips_lie_in_the_box_and_are_low_or_narrow(photo: Path) -> None:
    queries = [PanelQuery(f"t_{n}", "façade", "t", photo, QUERY.box, frozenset("a"), frozenset()) for n in range(8)]
    low = 0
    for strip in _strips(queries):
        assert strip.kind == "strip" and strip.box and QUERY.box
        x0, y0, x1, y1 = strip.box
        assert 10 <= x0 < x1 <= 109 and 20 <= y0 < y1 <= 69
        sides = (x1 - x0) / 99, (y1 - y0) / 49
        assert sorted(sides) == pytest.approx([0.16, 0.8])
        low += sides[0] > sides[1]
    assert low == 6


def test_the_first_query_of_each_scene_is_turned(photo: Path) -> None:
    queries = [
        PanelQuery(f"{s}_{n}", "façade", s, photo, None, frozenset("a"), frozenset()) for s in "xy" for n in "12"
    ]
    turned = list(_turned(queries))
    assert [(one.name, one.turn, one.kind) for one in turned] == [
        ("x_1_turned", 90, "turned"),
        ("y_1_turned", 180, "turned"),
    ]


def test_kinds_are_those_of_the_panel() -> None:
    assert {*GROUPS.values(), *LANDMARKS.values()} <= set(KINDS)


@pytest.mark.slow
@pytest.mark.skipif("CAIRN_DATASETS" not in os.environ, reason="CAIRN_DATASETS is not set")
def test_all_kinds_have_scenes_and_no_query_finds_itself() -> None:
    parts = find_parts(Path(os.environ["CAIRN_DATASETS"]))
    queries = [query for part in parts for query in part.queries]
    scenes = {kind: {query.scene for query in queries if query.kind == kind} for kind in KINDS}
    assert min(map(len, scenes.values())) >= 12, {kind: len(some) for kind, some in scenes.items()}
    for part in parts:
        stems = {path.stem for path in part.photos.photos}
        for query in part.queries:
            assert query.positives & stems and not query.positives & query.junk
            assert query.path.stem not in query.positives
