import os
from collections import Counter
from pathlib import Path

import pytest

from index.errors import CairnError
from learning.labels.ground_truth import GroundTruthQuery, missing_photos, read_ground_truth


def write(folder: Path, name: str, query: str = "shot 1 2 30 40", good: str = "", ok: str = "", junk: str = "") -> None:
    for part, content in (("query", query), ("good", good), ("ok", ok), ("junk", junk)):
        (folder / f"{name}_{part}.txt").write_text(content, encoding="utf-8")


def test_a_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    write(tmp_path, "b_2", "oxc1_all_souls_000013 136.5 34.1 648.5 955.7\n", "x\ny\n", "z\n", "j\n")
    write(tmp_path, "a_1", "my photo 3  10\t20 1e2 200\r\n\n", "\n oxc1_kept \r\n\r\nname with spaces\n", "", "")
    (tmp_path / "README.txt").write_text("not a query")
    assert read_ground_truth(tmp_path) == [
        GroundTruthQuery(
            "a_1",
            "my photo 3",
            (10.0, 20.0, 100.0, 200.0),
            frozenset({"oxc1_kept", "name with spaces"}),
            frozenset(),
            frozenset(),
        ),
        GroundTruthQuery(
            "b_2",
            "all_souls_000013",
            (136.5, 34.1, 648.5, 955.7),
            frozenset({"x", "y"}),
            frozenset({"z"}),
            frozenset({"j"}),
        ),
    ]
    assert read_ground_truth(tmp_path)[1].positives == {"x", "y", "z"}


def test_awkward_but_harmless_files(tmp_path: Path) -> None:
    write(tmp_path, "q", good="a\na\n", junk="b")
    (tmp_path / "q_query.txt").write_bytes(b"\xef\xbb\xbfsh\xc3\xb6t 30 40 1 2")
    (query,) = read_ground_truth(tmp_path)
    assert query.stem == "shöt"
    assert query.box == (1, 2, 30, 40)  # swapped corners
    assert query.good == {"a"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "q_query.txt, line 1: the file is empty"),
        ("shot 1 2 3", "q_query.txt, line 1: expected 'stem x0 y0 x1 y1', found 'shot 1 2 3'"),
        ("1 2 30 40", "q_query.txt, line 1: expected"),
        ("\n\nshot 1 2 3 four", "q_query.txt, line 3: expected"),
        ("shot 1 2 30 40\n\nshot 1 2 30 40", "q_query.txt, line 3: a query is one line"),
        ("shot 1 2 nan 40", "q_query.txt, line 1: the box"),
        ("shot 1 2 1e999 40", "q_query.txt, line 1: the box"),
        ("shot 1 2 1 40", "q_query.txt, line 1: the box"),
        ("sh\0ot 1 2 30 40", "q_query.txt, line 1: there are control characters"),
    ],
)
def test_a_damaged_query_names_its_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    write(tmp_path, "p")
    write(tmp_path, "q", content)
    with pytest.raises(CairnError) as caught:
        read_ground_truth(tmp_path)
    assert message in str(caught.value)


def test_damaged_lists_name_their_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, "q", good="a\nb\n", ok="c\n", junk="d\n\nb\n")
    with pytest.raises(CairnError, match=r"q_junk.txt, line 3: 'b' is listed as good too"):
        read_ground_truth(tmp_path)
    (tmp_path / "q_junk.txt").write_bytes(b"d\ncaf\xe9\n")
    with pytest.raises(CairnError, match=r"q_junk.txt, line 2: this is not text in UTF-8"):
        read_ground_truth(tmp_path)
    (tmp_path / "q_junk.txt").unlink()
    (tmp_path / "q_junk.txt").mkdir()
    with pytest.raises(CairnError, match=r"q_junk.txt is not a regular file"):
        read_ground_truth(tmp_path)


@pytest.mark.parametrize("part", ["query", "good", "ok", "junk"])
def test_a_missing_file_is_named(tmp_path: Path, part: str) -> None:
    write(tmp_path, "q")
    (tmp_path / f"q_{part}.txt").unlink()
    with pytest.raises(CairnError, match=f"lacks the file '.*q_{part}.txt'"):
        read_ground_truth(tmp_path)


def test_no_ground_truth_at_all(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="holds no ground truth"):
        read_ground_truth(tmp_path)
    with pytest.raises(CairnError, match="no ground-truth folder"):
        read_ground_truth(tmp_path / "gone")


def test_photos_that_are_missing(tmp_path: Path) -> None:
    write(tmp_path, "p", good="a\nb", junk="j")
    write(tmp_path, "q", ok="b\nc", junk="k")
    assert missing_photos(read_ground_truth(tmp_path), ["b", "k", "z"]) == ["a", "c", "j"]


@pytest.mark.photos
@pytest.mark.skipif("CAIRN_DATASETS" not in os.environ, reason="CAIRN_DATASETS is not set")
def test_paris6k_as_published() -> None:
    folder = Path(os.environ["CAIRN_DATASETS"]) / "paris6k_gt"
    assert len(list(folder.glob("*.txt"))) == 220
    queries = read_ground_truth(folder)
    assert len(queries) == 55
    landmarks = Counter(query.name.rpartition("_")[0] for query in queries)
    assert len(landmarks) == 11 and set(landmarks.values()) == {5}
    # Every query is a photo of the set, is its own positive, and has its answers counted line by line.
    for query in queries:
        assert query.stem in query.positives
        lines = [(folder / f"{query.name}_{part}.txt").read_text().split() for part in ("good", "ok", "junk")]
        assert [len(query.good), len(query.ok), len(query.junk)] == [len(part) for part in lines]
    first = queries[0]
    assert (first.name, first.stem, first.box) == ("defense_1", "paris_defense_000605", (130.0, 17.0, 843.0, 732.0))
