"""`cairn learn similarity`, from labels and from nothing, and searching with what it learnt."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from index.similarity import SimilarityMatrix
from learning.labels.ground_truth import read_ground_truth
from tests.conftest import Indexed, Ran

Cairn = Callable[..., Ran]


@pytest.fixture
def table(indexed: Indexed, tmp_path: Path) -> Path:
    """Labels of the demo's photos as a table: the object of each, by the photo's name."""
    objects: dict[str, set[str]] = {}
    for query in read_ground_truth(indexed.gt):
        objects.setdefault(query.name.rsplit("_", 1)[0], set()).update({query.stem}, query.positives)
    lines = [f"{stem},{name}" for name, stems in objects.items() for stem in sorted(stems)]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["photo,label", *lines]) + "\n")
    return path


def test_what_is_learnt_from_labels_is_used_by_searches(cairn: Cairn, indexed: Indexed, table: Path) -> None:
    out = table.with_name("similarity.npz")
    reported = cairn(
        "learn", "similarity", indexed.folder, "--gt", table, "--out", out, "--iterations", 5, "--json"
    ).json
    matrix = SimilarityMatrix.load(out)
    assert reported["fingerprint"] == matrix.fingerprint and reported["pairs"] == len(matrix.values) > 0
    assert reported["objects"] >= 2 and reported["triplets"] > reported["hard"] >= 0
    assert reported["objective"][0] == pytest.approx(1) and len(reported["history"]) == len(reported["objective"])
    assert reported["held_out"]["learnt"] >= reported["held_out"]["tf-idf"]
    assert matrix.provenance["labels"] == "labels.csv" and matrix.provenance["neighbours"] == 2
    assert "as_published" not in matrix.provenance
    photo = next(iter(indexed.boxes))
    plain = cairn("query", indexed.folder, indexed.photos / f"{photo}.jpg", "--engine", "tf-idf", "--json").json
    other = cairn(
        *("query", indexed.folder, indexed.photos / f"{photo}.jpg", "--engine", "tf-idf", "--json"), "--similarity", out
    ).json
    assert other["similarity"]["fingerprint"] == matrix.fingerprint
    assert other["results"][0]["name"] == plain["results"][0]["name"]
    assert [entry["score"] for entry in other["results"]] != [entry["score"] for entry in plain["results"]]
    # A run with the same seed gives the same file, to the last bit.
    again = table.with_name("again.npz")
    ran = cairn("learn", "similarity", indexed.folder, "--gt", table, "--out", again, "--iterations", 5, "--workers", 1)
    assert ran.code == 0
    assert again.read_bytes() == out.read_bytes()


def test_photos_that_ground_truth_asks_with_are_left_out(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    gt = tmp_path / "gt"
    gt.mkdir()
    for path in indexed.gt.glob("*_1_*.txt"):  # one query an object, of which each photo is a query
        shutil.copy(path, gt)
    requested = read_ground_truth(gt)
    out = tmp_path / "s.npz"
    arguments = ("learn", "similarity", indexed.folder, "--gt", gt, "--out", out, "--iterations", 2)
    reported = cairn(*arguments, "--neighbours", 0, "--no-refit", "--json").json
    photos = len(list(indexed.photos.iterdir()))
    assert reported["photos"] + reported["held_out"]["photos"] == photos - len({query.stem for query in requested})
    assert reported["pairs"] == 0 and reported["neighbours"] == 0


def test_photos_that_verify_each_other_need_no_labels(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    out = tmp_path / "s.npz"
    ran = cairn("learn", "similarity", indexed.folder, "--verified", "--out", out, "--iterations", 2)
    assert ran.code == 0 and "photos of" in ran.out and "held out" in ran.out
    assert SimilarityMatrix.load(out).provenance["labels"] == "verified"


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ("", "holds no labels"),
        ("nobody.jpg,a\nnoone.jpg,a\n", "nobody.jpg"),
        ("{0},a\n{0},b\n{1},a\n", "b"),
        ("{0},a\n{1},b\n", "two photos"),
    ],
)
def test_labels_that_make_no_sense_are_refused(
    cairn: Cairn, indexed: Indexed, tmp_path: Path, labels: str, says: str
) -> None:
    names = sorted(path.name for path in indexed.photos.iterdir())
    path = tmp_path / "labels.csv"
    path.write_text(labels.format(*names))
    out = tmp_path / "s.npz"
    assert says in cairn("learn", "similarity", indexed.folder, "--gt", path, "--out", out).refused()
    assert not out.exists()


def test_requests_that_make_no_sense_are_refused(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    learn = ("learn", "similarity", indexed.folder)
    out = tmp_path / "s.npz"
    assert "--gt" in cairn(*learn, "--out", out).refused()
    assert (
        "Say what to learn from: labels (--gt), or"
        in cairn(*learn, "--out", out, "--gt", indexed.gt, "--verified").refused()
    )
    assert "s.txt" in cairn(*learn, "--gt", indexed.gt, "--out", tmp_path / "s.txt").refused()
    assert "no labels" in cairn(*learn, "--out", out, "--gt", tmp_path / "none").refused()
    assert "verified" in cairn(*learn, "--out", out, "--verified", "--inliers", 100_000).refused()
    assert "no collection" in cairn("learn", "similarity", tmp_path, "--gt", indexed.gt, "--out", out).refused()


def test_the_plot_of_similarities_is_drawn(cairn: Cairn, indexed: Indexed, table: Path) -> None:
    pytest.importorskip("matplotlib")
    with_labels = ("--gt", table)
    learnt, out = table.with_name("s.npz"), table.with_name("s.png")
    with_identity = SimilarityMatrix.identity(_fingerprint(indexed.folder), _words(indexed.folder))
    with_identity.save(learnt)
    reported = cairn(
        "plot", "similarity", indexed.folder, *with_labels, "--similarity", learnt, "--out", out, "--json"
    ).json
    assert out.read_bytes().startswith(b"\x89PNG")
    # The identity is tf-idf.
    assert reported["learnt"] == reported["tf-idf"] and 0 <= reported["tf-idf"]["overlap"] < 1
    assert 0 < sum(reported["tf-idf"]["matching"]) <= 1 + 1e-9


def _fingerprint(folder: Path) -> str:
    from retrieval.collection.collection import Collection

    with Collection.open(folder) as collection:
        return collection.vocabulary.fingerprint


def _words(folder: Path) -> int:
    from retrieval.collection.collection import Collection

    with Collection.open(folder) as collection:
        return collection.vocabulary.words
