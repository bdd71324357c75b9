"""Google Landmarks v2: its tables as published, mAP@100 and GAP as the challenges' programs compute them."""

from pathlib import Path

import pytest

from eval.protocols.google_landmarks import score_recognition
from eval.protocols.truth import read_truth
from eval.rankings.files import read_rankings
from eval.rankings.ground_truth import read_truth_of_rankings
from eval.rankings.scoring import score_rankings
from index.errors import CairnError
from learning.measures.precision import average_precision_at, global_average_precision

SOLUTION = "id,images,Usage\nq1,a b c,Public\nq2,a,Private\nq3,None,Ignored\nq4,d e,Private\n"
RECOGNITION = "id,landmarks,Usage\nq1,7 8,Public\nq2,,Public\nq3,9,Public\nq4,5,Private\nq5,,Private\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_ground_truth_has_two_parts_of_whole_photos(tmp_path: Path) -> None:
    truth = read_truth(written(tmp_path / "retrieval_solution_v2.1.csv", SOLUTION))
    assert (truth.protocols, truth.depth, truth.database, truth.cropped) == (("public", "private"), 100, None, False)
    assert [(one.name, one.box, *one.labels) for one in truth.queries] == [
        ("q1", None, "public"),
        ("q2", None, "private"),
        ("q4", None, "private"),
    ]
    assert truth.queries[0].labels["public"].positives == {"a", "b", "c"}


def test_rankings_as_the_challenge_takes_them_are_scored_to_100_photos(tmp_path: Path) -> None:
    truth = read_truth_of_rankings(written(tmp_path / "solution.csv", SOLUTION))
    wrong = " ".join(f"x{number}" for number in range(99))
    # Of q1 two in three, at 1 and 3. The photo of q2 is the 101st.
    lines = ["id,images", "q1,a x b", f"q2,{wrong} y a", "q4,d e"]
    rankings = read_rankings(written(tmp_path / "submission.csv", "\n".join(lines)))
    report = score_rankings(rankings, truth)
    assert report.mean("public") == pytest.approx((1 + 2 / 3) / 3)
    assert [score.ap for score in report.protocols["private"]] == [0, 1]
    with pytest.raises(CairnError, match="ranks the photo 'a' twice"):
        score_rankings(read_rankings(written(tmp_path / "twice.csv", "id,images\nq1,a x a\n")), truth)


@pytest.mark.parametrize(
    ("ranking", "positives", "depth", "expected"),
    [
        ("xab", "ab", 100, (1 / 2 + 2 / 3) / 2),
        ("ab", "abcd", 100, 2 / 4),  # two are never found
        ("ab", "abcd", 2, 1.0),  # no more than two can be among two
        ("xya", "a", 2, 0.0),
        ("jaxb", "ab", 3, (1 + 2 / 3) / 2),  # junk takes no rank
    ],
)
def test_average_precision_of_the_first_photos(ranking: str, positives: str, depth: int, expected: float) -> None:
    assert average_precision_at(ranking, positives, depth, "j") == pytest.approx(expected)


def test_the_global_average_precision_ranks_all_photos_together(tmp_path: Path) -> None:
    solution = written(tmp_path / "solution.csv", RECOGNITION)
    # By score: q2 (no landmark: wrong), q1 (right), q3 (right). Of the private part q4 is wrong.
    told = "id,landmarks\nq1,8 0.5\nq2,7 0.9\nq3,9 0.1\nq4,7 3\nq5,\n"
    scored = score_recognition(solution, written(tmp_path / "told.csv", told))
    assert scored["public"].gap == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert scored["public"].landmarks_alone == 1
    assert (scored["private"].gap, scored["private"].predicted, scored["private"].photos) == (0, 1, 2)
    # Equal scores: by the photo's name.
    tied = written(tmp_path / "tied.csv", "id,landmarks\nq2,7 1\nq1,7 1\n")
    assert score_recognition(solution, tied)["public"].gap == 1 / 2
    assert global_average_precision([], 3) == 0


@pytest.mark.parametrize(
    ("solution", "told", "said"),
    [
        ("id,images\nq1,a\n", "id,landmarks\nq1,1 1\n", "no columns id and landmarks"),
        (RECOGNITION, "id,landmarks\nq9,1 1\n", "has no photo 'q9'"),
        (RECOGNITION, "id,landmarks\nq1,1\n", "line 2: a prediction is one landmark and its score"),
        (RECOGNITION, "id,landmarks\nq1,1 nan\n", "one landmark and its score"),
        (RECOGNITION, "id,landmarks\nq1,1 1\nq1,1 1\n", "line 3: the photo 'q1' is there twice"),
        (RECOGNITION, "id,landmarks\nq1,1 1,2\n", "3 cells where the header has 2"),
        ("id,landmarks,Usage\nq1,,Public\n", "id,landmarks\n", "shows a landmark"),
        (RECOGNITION, "", "is empty"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, solution: str, told: str, said: str) -> None:
    with pytest.raises(CairnError, match=said):
        score_recognition(written(tmp_path / "s.csv", solution), written(tmp_path / "t.csv", told))


def test_a_photo_does_not_find_itself(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="line 2: the photo 'q1' is to find itself"):
        read_truth(written(tmp_path / "s.csv", "id,images,Usage\nq1,q1 a,Public\n"))
    with pytest.raises(CairnError, match="has another one to find"):
        read_truth(written(tmp_path / "s.csv", "id,images,Usage\nq1,None,Ignored\n"))
