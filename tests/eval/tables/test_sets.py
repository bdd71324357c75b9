"""Sets of tables: the hard one is landmarks, with boxes shrunk about their centres and unchanged answers."""

from pathlib import Path

import pytest

from eval.tables.sets import find_photos, find_set, shrunk
from index.errors import CairnError
from learning.labels.ground_truth import GroundTruthQuery

WHOLE = GroundTruthQuery(
    "tower_1", "tower", (10.0, 20.0, 110.0, 60.0), frozenset({"a"}), frozenset({"b"}), frozenset({"tower"})
)


def test_boxes_shrink_about_their_centres() -> None:
    half = shrunk(WHOLE, 0.5)
    assert half.box == (35.0, 30.0, 85.0, 50.0)
    assert (half.name, half.stem, half.good, half.ok, half.junk) == ("tower_1", "tower", {"a"}, {"b"}, {"tower"})


@pytest.mark.parametrize("part", [0.1, 0.25, 1.0])
def test_sides_are_that_part_of_what_they_were(part: float) -> None:
    x0, y0, x1, y1 = shrunk(WHOLE, part).box
    assert (x1 - x0, y1 - y0) == pytest.approx((part * 100, part * 40))
    assert ((x0 + x1) / 2, (y0 + y1) / 2) == pytest.approx((60, 40))


def test_the_hard_set_is_landmarks_among_others(tmp_path: Path) -> None:
    for name in ("landmarks/images/tower.jpg", "landmarks/images/a.jpg", "paintings/images/p.jpg", "matching/x/a.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "landmarks/gt").mkdir()
    for kind, text in {"query": "tower 10 20 110 60", "good": "a", "ok": "", "junk": ""}.items():
        (tmp_path / f"landmarks/gt/tower_1_{kind}.txt").write_text(text)
    easy, hard = find_set(tmp_path, "landmarks"), find_set(tmp_path, "hard")
    assert [path.name for path in easy.photos] == ["a.jpg", "tower.jpg"]
    assert sorted(path.name for path in hard.photos) == ["a.jpg", "a.png", "p.jpg", "tower.jpg"]
    assert (easy.asked[0].box, hard.asked[0].box) == ((10, 20, 110, 60), (35, 30, 85, 50))
    assert hard.asked[0].positives == easy.asked[0].positives == {"a"}
    assert hard.query_files == easy.query_files
    assert hard.key != easy.key
    assert find_photos(tmp_path, "hard") == hard
    # Photos are enough for a vocabulary; photos of a set have its name.
    assert [path.name for path in find_photos(tmp_path, "matching").photos] == ["a.png"]
    assert find_photos(tmp_path, "landmarks") == easy
    with pytest.raises(CairnError, match="'nowhere'"):
        find_photos(tmp_path, "nowhere")
