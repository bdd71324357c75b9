"""Folds: training photos show no test scene, every query is measured once, scenes have equal weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.tables.folds import Scene, compare, find_scenes, make_folds
from eval.tables.sets import RetrievalSet, find_set
from index.errors import CairnError

# Queries of a set: the photo, positives, and ignored photos.
TOWERS = {"tower_1": ("a", "b", "c"), "tower_2": ("c", "d", ""), "gate_1": ("e", "f", "")}


def write_set(folder: Path, queries: dict[str, tuple[str, str, str]], photos: str = "abcdefx") -> RetrievalSet:
    """Write a set of fake photos."""
    (folder / "images").mkdir(parents=True)
    (folder / "gt").mkdir()
    for stem in photos:
        (folder / "images" / f"{stem}.jpg").write_text(stem)
    for name, (own, good, junk) in queries.items():
        for kind, text in {"query": f"{own} 0 0 9 9", "good": "\n".join(good), "ok": "", "junk": junk}.items():
            (folder / "gt" / f"{name}_{kind}.txt").write_text(text)
    return RetrievalSet.find(folder)


def test_queries_that_share_a_photo_are_of_one_scene(tmp_path: Path) -> None:
    """In one set, also by ignored photos, and over sets with common photos."""
    photos = write_set(tmp_path / "towers", TOWERS)
    twin = replace(photos, name="twin", box=0.5)
    other = write_set(tmp_path / "other", {"gate_1": ("a", "b", "")}, "ab")
    scenes = find_scenes([photos, twin, other])
    assert [sorted(path.stem for path in scene.photos) for scene in scenes] == [["a", "b"], [*"abcd"], ["e", "f"]]
    assert [sorted(scene.queries) for scene in scenes] == [
        [("other", "gate_1")],
        [("towers", "tower_1"), ("towers", "tower_2"), ("twin", "tower_1"), ("twin", "tower_2")],
        [("towers", "gate_1"), ("twin", "gate_1")],
    ]


@given(st.lists(st.integers(1, 6), min_size=3, max_size=20), st.integers(2, 3), st.integers(0, 5))
def test_nothing_is_learnt_from_what_is_measured(queries: list[int], number: int, seed: int) -> None:
    scenes = [
        Scene(
            frozenset(Path(f"{place}-{one}.jpg") for one in range(2)),
            frozenset(("all", f"{place}_{one}") for one in range(count)),
        )
        for place, count in enumerate(queries)
    ]
    always = [Path("always.jpg"), Path("0-0.jpg")]
    folds = make_folds(scenes, number, seed, always)
    tested = [scene for fold in folds for scene in fold.tested]
    assert sorted(tested, key=scenes.index) == scenes
    every = {path for scene in scenes for path in scene.photos}
    for fold in folds:
        shown = {path for scene in fold.tested for path in scene.photos}
        assert set(fold.training) == (every | {always[0]}) - shown
    sizes = [sum(len(scene.queries) for scene in fold.tested) for fold in folds]
    assert max(sizes) - min(sizes) <= max(queries)


def test_folds_need_scenes() -> None:
    scene = Scene(frozenset([Path("a.jpg")]), frozenset())
    with pytest.raises(CairnError, match="two folds at least"):
        make_folds([scene], 1)
    with pytest.raises(CairnError, match="1 scenes cannot be dealt out to 2"):
        make_folds([scene], 2)


def test_each_scene_counts_as_much_as_the_others(tmp_path: Path) -> None:
    photos = write_set(tmp_path / "towers", TOWERS)
    scenes = find_scenes([photos])
    before = {"tower_1": 0.5, "tower_2": 0.5, "gate_1": 0.8}
    after = {"tower_1": 0.7, "tower_2": 0.6, "gate_1": 0.4}
    found = compare(scenes, photos, after, before)
    means = [(0.2 + 0.1) / 2, -0.4]
    assert found.mean == pytest.approx(np.mean(means))
    assert found.error == pytest.approx(np.std(means, ddof=1) / np.sqrt(2))
    assert (found.scenes, found.worst) == (2, (("gate_1", pytest.approx(-0.4)),))
    assert compare(scenes[:1], photos, after, before).error == np.inf
    with pytest.raises(CairnError, match="No query of other"):
        compare(scenes, replace(photos, name="other"), after, before)


def test_the_solid_set_asks_with_photos_of_groups(tmp_path: Path) -> None:
    """A few of each group of at least two, for the others; groups of another kind are only distractors."""
    lines = ["folder\tfile\tgroup"]
    for name, group in (("fox_1", "fox:images"), ("front_1", "front:front"), ("turtle_1", "turtle:turtle")):
        lines += [f"unlabelled\t{name}{letter}.jpg\t{group}" for letter in "abcdefgh"]
    lines += ["unlabelled\tdim_1.jpg\tdim:1", "unlabelled\tdim_2.jpg\tdim:1", "unlabelled\tolsson_1.jpg\tolsson:1"]
    lines += ["distractors\tfox_2.jpg\tfox:images"]
    for line in lines[1:]:
        folder, file, _ = line.split("\t")
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / file).write_text(line)
    with pytest.raises(CairnError, match=r"groups\.tsv"):
        find_set(tmp_path, "solid")
    (tmp_path / "unlabelled" / "groups.tsv").write_text("\n".join(lines))
    photos = find_set(tmp_path, "solid")
    assert len(photos.photos) == 28
    # The front of the turtle is the turtle.
    assert sorted(query.name for query in photos.asked) == sorted(
        [*(f"fox:images_{n}" for n in range(1, 6)), *(f"turtle:turtle_{n}" for n in range(1, 6))]
    )
    fox = [query for query in photos.asked if query.name.startswith("fox")]
    assert [query.stem for query in fox] == ["fox_1a", "fox_1b", "fox_1d", "fox_1e", "fox_1g"]
    assert all(query.positives == {f"fox_1{letter}" for letter in "abcdefgh"} - {query.stem} for query in fox)
    assert [path.stem for path in photos.query_files] == [query.stem for query in photos.asked]
