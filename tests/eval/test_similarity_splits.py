"""Splits: queries are never in the training set, and by objects neither are their objects."""

from pathlib import Path

import numpy as np
import pytest

from eval.similarity_options import SimilaritySplitOptions
from eval.similarity_splits import group_queries, lessons
from index.errors import CairnError
from learning.labels.ground_truth import GroundTruthQuery, read_ground_truth
from retrieval.catalogue.schema import ImageRow

BOX = (0.0, 0.0, 1.0, 1.0)


def rows_of(stems: list[str]) -> list[ImageRow]:
    return [
        ImageRow(number=number, path=f"/photos/{stem}.jpg", name=f"{stem}.jpg", sha256=stem, size=1, mtime_ns=1)
        for number, stem in enumerate(stems, start=3)
    ]


def ground_truth(folder: Path) -> list[GroundTruthQuery]:
    """Six objects of five photos each, two of them queries; with junk, and ten background photos."""
    folder.mkdir()
    for thing in range(6):
        photos = [f"o{thing}p{place}" for place in range(5)]
        for place in range(2):
            name = f"object{thing}_{place}"
            parts = {"query": f"{photos[place]} 0 0 9 9", "good": "\n".join(photos), "ok": "", "junk": f"junk{thing}"}
            for part, text in parts.items():
                (folder / f"{name}_{part}.txt").write_text(text + "\n")
    return read_ground_truth(folder)


STEMS = [f"o{thing}p{place}" for thing in range(6) for place in range(5)]
STEMS += [f"junk{thing}" for thing in range(6)] + [f"b{n}" for n in range(10)]


def test_by_photos_four_in_five_are_learnt_from_and_all_queries_measure(tmp_path: Path) -> None:
    queries, rows = ground_truth(tmp_path / "gt"), rows_of(STEMS)
    stems = {row.number: Path(row.path).stem for row in rows}
    seen = []
    for seed in range(3):
        (lesson,) = lessons(tmp_path / "gt", queries, rows, SimilaritySplitOptions(), seed)
        assert lesson.queries == queries
        known = {stems[number] for number in lesson.numbers.tolist()}
        assert not known & {query.stem for query in queries}
        assert abs(len(known) - 0.8 * (len(rows) - 12)) < 1
        assert lesson.seen(stems) == {stem for stem in known if stem.startswith("o")}
        seen.append(lesson.seen(stems))
    assert len(set(seen)) > 1
    again = next(lessons(tmp_path / "gt", queries, rows, SimilaritySplitOptions(), 0))
    assert again.seen(stems) == seen[0]


def test_by_objects_none_of_what_is_asked_for_is_learnt_from(tmp_path: Path) -> None:
    queries, rows = ground_truth(tmp_path / "gt"), rows_of(STEMS)
    stems = {row.number: Path(row.path).stem for row in rows}
    parts = list(lessons(tmp_path / "gt", queries, rows, SimilaritySplitOptions(by="objects", parts=3), 1))
    assert sorted(query.name for part in parts for query in part.queries) == sorted(query.name for query in queries)
    for part in parts:
        relevance = part.labels.relevance(part.numbers, np.random.default_rng(0))
        known = {stems[number] for number in relevance.database.tolist()}
        requested = {query.stem[:2] for query in part.queries}
        assert len(part.queries) == 4 and len(requested) == 2
        assert not any(
            stem[:2] in requested or stem.removeprefix("junk") in {one[1] for one in requested} for stem in known
        )
        # All photos of the others are in the training set, including queries of other parts.
        assert len(relevance.queries) == 20 and len(known) == 20 + 4 + 10
    with pytest.raises(CairnError, match="6 objects"):
        next(lessons(tmp_path / "gt", queries, rows, SimilaritySplitOptions(by="objects", parts=7), 0))


def test_queries_that_find_two_objects_do_not_say_what_they_show(tmp_path: Path) -> None:
    def query(name: str, *good: str) -> GroundTruthQuery:
        return GroundTruthQuery(name, name, BOX, frozenset(good), frozenset(), frozenset())

    queries = [query("q1", "a"), query("q2", "b"), query("both", "a", "b"), query("q3", "c"), query("q4", "d")]
    groups = group_queries(queries)
    assert [[one.name for one in group] for group in groups] == [["q1", "q2", "both"], ["q3"], ["q4"]]
    rows = rows_of(["a", "b", "c", "d", "q1", "q2", "both", "q3", "q4", "x"])
    for lesson in lessons(tmp_path, queries, rows, SimilaritySplitOptions(by="objects", parts=3), 0):
        objects = [sorted(Path(rows[n - 3].path).stem for n in one.positives) for one in lesson.labels.objects]
        assert all(one in (["a", "q1"], ["b", "q2"], ["c", "q3"], ["d", "q4"]) for one in objects)
