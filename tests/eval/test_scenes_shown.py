"""Scenes of photos from names and tables, and judging of groups by them."""

from pathlib import Path

import pytest

from eval.scenes_shown import find_photo_sets
from index.errors import CairnError
from scripts.verified import judge_groups


@pytest.fixture
def root(tmp_path: Path) -> Path:
    gt = tmp_path / "paintings" / "gt"
    gt.mkdir(parents=True)
    for name, good in (("q1", "p00014"), ("q2", "p00020\np00021")):
        (gt / f"{name}_query.txt").write_text(f"{name} 0 0 10 10\n")
        (gt / f"{name}_good.txt").write_text(f"{good}\n")
        for part in ("ok", "junk"):
            (gt / f"{name}_{part}.txt").write_text("")
    (tmp_path / "landmarks").mkdir()
    unlabelled = tmp_path / "unlabelled"
    unlabelled.mkdir()
    rows = [
        ("a1.jpg", "olsson:1"),
        ("a2.jpg", "olsson:1"),
        ("a3.jpg", "olsson:2"),
        ("g1.jpg", "geocbir:x"),
        ("g2.jpg", "geocbir:x"),
    ]
    lines = ["folder\tfile\tgroup", *(f"unlabelled\t{file}\t{group}" for file, group in rows)]
    (unlabelled / "groups.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_names_tell_what_landmarks_show(root: Path) -> None:
    (photos,) = find_photo_sets(root, ["landmarks"])
    assert photos.same("kermit_001", "kermit_009") is True
    assert photos.same("kermit_001", "castle_001") is False
    assert photos.same("castle_001", "fountain_003") is True  # of one courtyard
    assert photos.same("distractor_001", "castle_001") is False
    assert photos.same("distractor_001", "distractor_002") is None


def test_the_ground_truth_tells_which_paintings_a_photo_shows(root: Path) -> None:
    (photos,) = find_photo_sets(root, ["paintings"])
    assert photos.same("q1", "p00014") is True
    assert photos.same("q1", "p00005") is True  # two photos of one painting
    assert photos.same("q2", "p00020") is photos.same("q2", "p00021") is True
    assert photos.same("p00020", "p00021") is False
    assert photos.same("q1", "q2") is False
    assert photos.same("q3", "q4") is None  # both unknown
    assert photos.same("q3", "p00014") is False


def test_the_table_tells_captures_and_of_some_sources_nothing_but_the_source(root: Path) -> None:
    (photos,) = find_photo_sets(root, ["unlabelled"])
    assert photos.same("a1", "a2") is True
    assert photos.same("a1", "a3") is False
    assert photos.same("g1", "g2") is None
    assert photos.same("a1", "g1") is False


def test_groups_are_judged_by_what_their_photos_show(root: Path) -> None:
    (photos,) = find_photo_sets(root, ["unlabelled"])
    stems = {1: "a1", 2: "a2", 3: "a3", 4: "g1", 5: "g2"}
    judged = judge_groups(photos, stems, [(1, 2), (4, 5)])
    assert (judged["groups"], judged["pure"], judged["completeness"], judged["pair_precision"]) == (2, 2, 1, 1)
    judged = judge_groups(photos, stems, [(1, 3), (2, 4, 5)])
    assert (judged["pure"], judged["completeness"], judged["pair_precision"]) == (0, 0, 0)


def test_a_set_that_there_is_not_is_refused(root: Path) -> None:
    for name in ("oxford", "../landmarks"):
        with pytest.raises(CairnError, match="no set"):
            find_photo_sets(root, [name])
