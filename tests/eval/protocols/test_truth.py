"""One form of all ground truths; and queries of one camera for photos of another, in one folder or in several."""

from pathlib import Path

import pytest

from eval.protocols.scoring import mean_precision, score_ranking
from eval.protocols.truth import PLAIN, one_right_answer, read_truth
from eval.retrieval.photos import choose_photos
from eval.sets.checks import check
from eval.sets.layouts import locate
from index.errors import CairnError

PHOTOS = {"q_1": ("r_1", "q_2 r_2"), "q_2": ("r_2", "r_1"), "r_1": ("q_1", ""), "q_3": ("q_1", "r_1")}
"""Of each what is good, and what is junk."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (good, junk) in PHOTOS.items():
        (tmp_path / f"{name}_query.txt").write_text(f"{name} 0 0 9 9\n")
        for kind, names in (("good", good), ("ok", ""), ("junk", junk)):
            (tmp_path / f"{name}_{kind}.txt").write_text("\n".join(names.split()))
    return tmp_path


def test_photos_of_one_camera_search_those_of_another(folder: Path) -> None:
    truth = one_right_answer(read_truth(folder), "q_", "r_")
    assert [query.name for query in truth.queries] == ["q_1", "q_2"]  # a query photo is a positive of q_3
    first = truth.queries[0].labels[PLAIN]
    assert (first.positives, first.junk) == ({"r_1"}, {"r_2"})
    assert (truth.database, truth.cutoffs) == ({"r_1", "r_2"}, (1,))
    # q_1 has its answer first once junk takes no rank; q_2 has it behind a wrong one.
    rankings = {"q_1": ["r_2", "r_1", "r_3"], "q_2": ["r_3", "r_2", "r_1"]}
    scores = [score_ranking(query, PLAIN, rankings[query.name], 0.0, truth) for query in truth.queries]
    assert [score.ap for score in scores] == [1, 1 / 4]
    assert mean_precision(scores, 1) == 1 / 2


def test_no_such_photo_is_said(folder: Path) -> None:
    with pytest.raises(CairnError, match="is of a photo s_"):
        one_right_answer(read_truth(folder), "s_", "r_")


def test_each_phone_of_a_category_searches_for_the_reference_of_its_number(tmp_path: Path) -> None:
    """As the archives have them: the same names in each folder, and as many folders as phones."""
    names = ["book_covers/Reference/001", "book_covers/Droid/001", "book_covers/5800/001", "landmarks/Reference/001"]
    names += ["landmarks/Query/001", "landmarks/Query/002", "landmarks/Reference/003"]  # one alone, and one in no query
    for name in names:
        (tmp_path / "smvs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "smvs" / f"{name}.jpg").write_bytes(b"photo")
    located = locate("smvs", tmp_path)
    truth = read_truth(located.ground_truth)
    assert [(query.name, query.named) for query in truth.queries] == [
        ("book_covers/5800/001", {"book_covers/Reference/001"}),
        ("book_covers/Droid/001", {"book_covers/Reference/001"}),
        ("landmarks/Query/001", {"landmarks/Reference/001"}),
    ]
    references = {name for name in names if "/Reference/" in name}
    assert truth.database == references and truth.protocols == ("book_covers", "landmarks")
    photos, _ = choose_photos(located.images, truth, queries=located.queries)
    assert {truth.name_of(path) for path in photos.image_files} == references
    assert {name: truth.name_of(path) for name, path in photos.queries.items()} == {
        name: name for name in photos.queries
    }
    assert photos.queries.keys() == {query.name for query in truth.queries}
    finding = check("smvs", tmp_path)
    assert finding.missing == ["landmarks/Reference/002.jpg"] and not finding.whole
    assert (finding.found["images"], finding.found["queries"], finding.wanted["queries"]) == (7, 3, 4)
    assert len(read_truth(tmp_path / "smvs" / "landmarks").queries) == 1  # a category by itself
