"""Recall and average precision of matching: compared with cases worked out by hand, and with the project's own
features."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from eval.demo.synthetic import DemoCollection
from eval.matching import (
    MatchingOptions,
    ViewFeatures,
    evaluate_matching,
    evaluate_pair,
    find_pairs,
    match_features,
    matching_average_precision,
)
from index.errors import CairnError
from learning.measures.precision import average_precision
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.options import FeatureOptions
from retrieval.photos.options import ImageOptions
from retrieval.regions.overlap import OverlapSets
from tests.conftest import Ran

Cairn = Callable[..., Ran]
DATASETS = Path(os.environ.get("CAIRN_DATASETS") or "nowhere")


class Constant:
    """Describes every patch the same."""

    name, dim, patch_size, fingerprint, bytes, extent = "constant", 3, 16, "constant", 12, 1.0

    def __init__(self, value: float) -> None:
        self.value = value

    def describe(self, patches: np.ndarray) -> np.ndarray:
        return np.full((len(patches), self.dim), self.value, np.float32)


# Matches


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float16)[:, None]


def pairs(*rows: tuple[int, int]) -> np.ndarray:
    return np.array(rows, np.int64).reshape(-1, 2)


# Features 0, 2, 3 and 5 of the first photo have positives; the numbers below are each one's distances to 0..4.
FIRST = column(0, 50, 10, 20, 60, 30)
SECOND = column(1, 12, 16, 26, 31)
SETS = OverlapSets(
    positives=pairs((0, 0), (2, 0), (2, 1), (3, 3), (5, 4)),
    ambiguous=pairs((0, 1), (1, 2), (3, 2), (5, 3)),
)
# 0: P {1},    N {16, 26, 31}       right, 1,  second 16
# 2: P {9, 2}, N {6, 16, 21}        right, 2,  second 6
# 3: P {6},    N {19, 8, 11}        right, 6,  second 8   (16, at 4, is ambiguous)
# 5: P {1},    N {29, 18, 14}       right, 1,  second 14  (26, at 4, is ambiguous)


def test_matches_of_a_case_worked_out_by_hand() -> None:
    matches = match_features(FIRST, SECOND, SETS)
    assert matches.features.tolist() == [0, 2, 3, 5]
    assert matches.right.tolist() == [True] * 4
    assert matches.scores.tolist() == [1, 2, 6, 1]

    ratios = match_features(FIRST, SECOND, SETS, ratio=True)
    np.testing.assert_allclose(ratios.scores, [1 / 16, 2 / 6, 6 / 8, 1 / 14])

    # Without the ambiguous set those become negatives, and nearer than the positive for one feature.
    harsh = match_features(FIRST, SECOND, OverlapSets(SETS.positives, pairs()))
    assert harsh.right.tolist() == [True, True, False, True]
    assert harsh.scores.tolist() == [1, 2, 4, 1]


def test_recall_and_precision_of_a_case_worked_out_by_hand() -> None:
    # Three circles far apart, each with its counterpart, and a fourth without; the photos lie upon each other.
    circles = np.array([[20.0 * n, 20, 0.25, 0, 0.25] for n in range(1, 5)])
    first = ViewFeatures(circles, (100, 100), [column(0, 10, 20, 30)])
    second = ViewFeatures(circles[:3], (100, 100), [column(1, 14, 16)])
    # 0 -> 1 at 1: right. 10 -> 14 at 4: right. 20 -> 16, at 4, its own: right; 30 has no positive.
    (score,) = evaluate_pair("a", first, second, np.eye(3))
    assert (score.pair, score.features, score.regions, score.recall, score.ap) == ("a", 3, (4, 3), 1, 1)

    worse = ViewFeatures(circles[:3], (100, 100), [column(1, 19, 11.5)])
    # 0 -> 1, right. 10 -> 11.5, wrong, at 1.5. 20 -> 19, wrong, at 1. Ranking: {right, wrong} tie at 1, then wrong:
    # the right one first gives 1/3 · (1 + 1)/2, the wrong one first gives 1/3 · (0 + 1/2)/2; the mean is 5/24.
    (score,) = evaluate_pair("b", first, worse, np.eye(3))
    assert score.recall == pytest.approx(1 / 3)
    assert score.ap == pytest.approx(5 / 24)

    # By ratio: 0: 1/11.5, right; 10: 1.5/9; 20: 1/8.5. So the right one comes first.
    (score,) = evaluate_pair("c", first, worse, np.eye(3), MatchingOptions(ratio=True))
    assert score.recall == pytest.approx(1 / 3)
    assert score.ap == pytest.approx(1 / 3)


def test_every_descriptor_of_the_views_is_scored_over_the_same_features() -> None:
    circles = np.array([[20.0 * n, 20, 0.25, 0, 0.25] for n in range(1, 4)])
    rows = [column(0, 10, 20), np.eye(3, dtype=np.float16), np.ones((3, 7), np.float16)]
    scores = evaluate_pair("a", ViewFeatures(circles, (50, 90), rows), ViewFeatures(circles, (50, 90), rows), np.eye(3))
    assert [score.features for score in scores] == [3, 3, 3]
    assert [score.recall for score in scores] == [1, 1, 0]
    assert [score.ap for score in scores] == [1, 1, 0]


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_matches_are_those_of_all_distances(seed: int, ratio: bool) -> None:
    rng = np.random.default_rng(seed)
    first, second = (rng.normal(size=(count, 8)).astype(np.float16) for count in (30, 20))
    kind = rng.choice(3, (30, 20), p=[0.9, 0.05, 0.05])  # negative, positive, ambiguous
    sets = OverlapSets(np.argwhere(kind == 1), np.argwhere(kind == 2))
    matches = match_features(first, second, sets, ratio=ratio)
    assert matches.features.tolist() == np.flatnonzero((kind == 1).any(axis=1)).tolist()
    for x, right, score in zip(matches.features, matches.right, matches.scores, strict=True):
        d = np.linalg.norm(first[x].astype(np.float64) - second.astype(np.float64), axis=1)
        counted = np.flatnonzero(kind[x] != 2)
        by_distance = counted[np.argsort(d[counted])]
        assert right == (kind[x, by_distance[0]] == 1)
        expected = d[by_distance[0]] / d[by_distance[1]] if ratio else d[by_distance[0]]
        assert score == pytest.approx(expected)


def test_blocks_do_not_change_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    first, second = (rng.normal(size=(count, 16)).astype(np.float16) for count in (40, 25))
    kind = rng.choice(3, (40, 25), p=[0.9, 0.05, 0.05])
    sets = OverlapSets(np.argwhere(kind == 1), np.argwhere(kind == 2))
    whole = match_features(first, second, sets)
    monkeypatch.setattr("eval.matching._BLOCK", 70)
    parts = match_features(first, second, sets)
    assert parts.right.tolist() == whole.right.tolist()
    np.testing.assert_allclose(parts.scores, whole.scores)


def test_a_feature_without_a_second_candidate_is_the_surest() -> None:
    alone = OverlapSets(pairs((0, 0), (1, 1)), pairs((0, 1)))
    matches = match_features(column(5, 0), column(0, 0), alone, ratio=True)
    assert matches.right.tolist() == [True, False]  # 1: a positive and a negative at the distance 0
    assert matches.scores.tolist() == [0, 1]


# Average precision


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6))
def test_average_precision_is_the_mean_over_the_orders_of_ties(ranked: list[tuple[int, bool]]) -> None:
    scores, right = (np.array(each) for each in zip(*ranked, strict=True))
    values = []
    for order in itertools.permutations(range(len(scores))):
        if all(scores[a] <= scores[b] for a, b in itertools.pairwise(order)):
            # A wrong match hides the right one of its feature, which is then never found.
            ranking = [str(x) if right[x] else f"not {x}" for x in order]
            values.append(average_precision(ranking, [str(x) for x in range(len(scores))]))
    assert matching_average_precision(scores, right) == pytest.approx(np.mean(values))


def test_average_precision_worked_out_by_hand() -> None:
    # Right, wrong, right of three: 1/3 · (1 + 1)/2 + 1/3 · (1/2 + 2/3)/2.
    assert matching_average_precision([0.1, 0.2, 0.3], [True, False, True]) == pytest.approx(1 / 3 + 7 / 36)
    for scores in ([], [0.0, np.nan]):
        with pytest.raises(ValueError):
            matching_average_precision(scores, [True] * len(scores))


# Photos


def warped(photo: np.ndarray, homography: np.ndarray) -> np.ndarray:
    return cv2.warpPerspective(photo, homography, photo.shape[1::-1], flags=cv2.INTER_AREA)


@pytest.fixture(scope="module")
def sequence(demo: DemoCollection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Img1, the same again as img2, a known view of it as img3, and nothing at all as img4."""
    folder = tmp_path_factory.mktemp("views") / "scene"
    folder.mkdir()
    with Image.open(demo.images / "coffee_001.jpg") as file:
        photo = np.asarray(file.convert("RGB").resize((480, 360)))
    view = np.array([[0.8, 0.1, 20], [-0.05, 0.9, 25], [1e-4, -5e-5, 1]])
    images = {1: photo, 2: photo, 3: warped(photo, view), 4: np.full_like(photo, 128)}
    for number, image in images.items():
        Image.fromarray(image).save(folder / f"img{number}.png")
    for number, homography in {2: np.eye(3), 3: -5 * view, 4: np.eye(3)}.items():
        np.savetxt(folder / f"H1to{number}p", homography)
    return folder


def test_a_photo_matches_itself_and_a_view_of_it(sequence: Path) -> None:
    names = ("sift", "rootsift")
    reports = evaluate_matching(find_pairs(sequence), [find_descriptor(name) for name in names])
    assert tuple(report.descriptor for report in reports) == names
    for report in reports:
        same, view, blank = report.scores
        assert [score.pair for score in report.scores] == ["scene/img2", "scene/img3", "scene/img4"]
        assert same.features == same.regions[0] == same.regions[1] > 100
        assert (same.recall, same.ap) == (1, 1)
        assert 0.25 * view.regions[0] < view.features < view.regions[0]
        assert view.recall > 0.8 and view.ap > 0.75
        assert (blank.features, blank.regions[1], blank.recall, blank.ap) == (0, 0, None, None)
        assert report.recall == pytest.approx((1 + view.recall) / 2)
        assert report.mean_ap == pytest.approx((1 + view.ap) / 2)


def test_a_homography_holds_for_the_originals_at_whatever_size_they_are_read(sequence: Path) -> None:
    (whole,) = evaluate_matching(find_pairs(sequence)[1:2], [find_descriptor("rootsift")])
    (half,) = evaluate_matching(
        find_pairs(sequence)[1:2], [find_descriptor("rootsift")], image=ImageOptions(max_side=300)
    )
    assert half.scores[0].regions < whole.scores[0].regions
    assert half.scores[0].features > 0.25 * half.scores[0].regions[0]
    assert half.recall > 0.75  # next to nothing, were the homography not brought to this size


def test_the_measurement_region_is_what_overlaps(sequence: Path) -> None:
    counts = []
    for scale in (1.0, 3.0, 12.5):
        options = FeatureOptions(measurement_scale=scale)
        (report,) = evaluate_matching(find_pairs(sequence)[1:2], [Constant(1)], features=options)
        counts.append(report.scores[0].features)
    assert counts[0] < counts[1] < counts[2]  # the larger the regions, the less does a shift of the centre


def test_a_descriptor_that_tells_nothing_apart_matches_nothing(sequence: Path) -> None:
    (report,) = evaluate_matching(find_pairs(sequence), [Constant(0.3)])
    assert [score.recall for score in report.scores] == [0, 0, None]
    assert (report.recall, report.mean_ap) == (0, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e6])
def test_descriptors_without_distances_are_refused(sequence: Path, value: float) -> None:
    with pytest.raises(CairnError, match="'constant' gives numbers that are not finite"):
        evaluate_matching(find_pairs(sequence), [Constant(value)])


def test_pairs_of_either_layout(sequence: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pairs"
    for part in ("1", "2", "h"):
        (folder / part).mkdir(parents=True)
    for number, name in ((4, "a"), (3, "b")):
        shutil.copy(sequence / "img1.png", folder / "1" / f"{name}.png")
        shutil.copy(sequence / f"img{number}.png", folder / "2" / f"{name}.png")
        shutil.copy(sequence / f"H1to{number}p", folder / "h" / f"{name}.txt")
    found = find_pairs(folder)
    assert [pair.name for pair in found] == ["pairs/a", "pairs/b"]
    (by_pairs,) = evaluate_matching(found[::-1], [find_descriptor("sift")])
    (by_sequence,) = evaluate_matching(find_pairs(sequence)[1:], [find_descriptor("sift")])
    for one, other in zip(by_pairs.scores, by_sequence.scores, strict=True):
        assert (one.features, one.recall, one.ap) == (other.features, other.recall, other.ap)


# The command


def test_the_command_tells_each_pair_and_the_means(sequence: Path, cairn: Cairn) -> None:
    report = cairn("evaluate", "matching", sequence, "--descriptor", "sift", "--json").json
    assert report.keys() >= {"recall", "mAP", "descriptor", "pairs", "seconds"}
    assert report["descriptor"] == "sift"
    same, view, blank = report["pairs"]
    assert same.keys() >= {"pair", "features", "recall", "ap"}
    assert (same["pair"], same["recall"], same["ap"]) == ("scene/img2", 1, 1)
    assert (blank["pair"], blank["features"], blank["recall"], blank["ap"]) == ("scene/img4", 0, None, None)
    assert report["recall"] == pytest.approx((1 + view["recall"]) / 2, abs=1e-6)
    assert report["mAP"] == pytest.approx((1 + view["ap"]) / 2, abs=1e-6)

    text = cairn("evaluate", "matching", sequence, "--descriptor", "sift")
    assert (text.code, text.err) == (0, "")
    lines = text.out.splitlines()
    assert len(lines) == 4 and lines[0].endswith("scene/img2") and lines[0].startswith("1.0000  1.0000")
    assert f"recall {report['recall']:.4f}, mAP {report['mAP']:.4f} over 2 pairs" in lines[3]


@pytest.mark.slow
def test_options_of_the_command_change_what_is_measured(sequence: Path, cairn: Cairn) -> None:
    def view(*options: object) -> tuple[int, float, float]:
        pair = cairn("evaluate", "matching", sequence, "--json", *options).json["pairs"][1]
        return pair["features"], pair["recall"], pair["ap"]

    features, recall, ap = view()
    assert view("--overlap", 0.8, 0.3)[0] < features < view("--overlap", 0.4, 0.3)[0]
    assert view("--overlap", 0.6, 0.6)[1] <= recall  # what was ambiguous is negative now
    by_ratio = view("--ratio")
    assert by_ratio[:2] == (features, recall) and by_ratio[2] != ap
    for other in (["--detector", "hessian-affine"], ["--rotated"], ["--measurement-scale", 6], ["--max-side", 300]):
        assert view(*other) != (features, recall, ap)


def test_a_folder_of_blank_photos_has_no_means(tmp_path: Path, cairn: Cairn) -> None:
    for number in (1, 2):
        Image.new("L", (64, 64), 100).save(tmp_path / f"img{number}.png")
    np.savetxt(tmp_path / "H1to2p", np.eye(3))
    report = cairn("evaluate", "matching", tmp_path, "--json").json
    assert (report["recall"], report["mAP"], report["pairs"][0]["features"]) == (None, None, 0)
    text = cairn("evaluate", "matching", tmp_path)
    assert text.code == 0 and "nan" not in text.out.lower()


# The last row follows from the others; rounding leaves a determinant of about 1e-7.
SINGULAR = np.array([[812.3, 311.7, 5123.9], [97.1, 1033.3, -711.3]])
SINGULAR = np.vstack([SINGULAR, 0.1 * SINGULAR[0] - 0.7 * SINGULAR[1]])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: shutil.rmtree(folder), "no folder"),
        (lambda folder: [path.unlink() for path in folder.iterdir()], "img1"),
        (lambda folder: (folder / "H1to3p").unlink(), "H1to3p"),
        (lambda folder: (folder / "H1to2p").write_text("1 0 0\n0 1 zero\n0 0 1\n"), "H1to2p"),
        (lambda folder: (folder / "H1to2p").write_text("1 0 0\n0 1 0\n"), "H1to2p"),
        (lambda folder: (folder / "H1to2p").write_text("nan 0 0\n0 1 0\n0 0 1\n"), "H1to2p"),
        (lambda folder: (folder / "H1to2p").write_bytes(b"\xff\xfe\x00"), "H1to2p"),
        (lambda folder: (folder / "H1to2p").write_text("1 2 3\n4 5 6\n7 8 9\n"), "homography"),
        (lambda folder: np.savetxt(folder / "H1to2p", SINGULAR), "singular"),
        (lambda folder: (folder / "img3.png").write_bytes(b"no photo"), "img3.png"),
        (lambda folder: (folder / "img1.png").write_bytes(b""), "img1.png"),
    ],
)
def test_a_damaged_folder_is_refused_with_a_sentence(
    sequence: Path, tmp_path: Path, cairn: Cairn, damage: Callable[[Path], object], expected: str
) -> None:
    folder = tmp_path / "scene"
    shutil.copytree(sequence, folder)
    damage(folder)
    assert expected in cairn("evaluate", "matching", folder).refused()


@pytest.mark.parametrize("overlap", [(0.3, 0.6), (1.0, 0.3), (0.6, 0.0), (float("nan"), 0.3)])
def test_overlaps_that_make_no_sense_are_refused(sequence: Path, cairn: Cairn, overlap: tuple[float, float]) -> None:
    assert "overlaps" in cairn("evaluate", "matching", sequence, "--overlap", *overlap).refused()


def test_a_descriptor_that_is_not_there_is_refused(sequence: Path, cairn: Cairn) -> None:
    assert "'brief'" in cairn("evaluate", "matching", sequence, "--descriptor", "brief").refused()


@pytest.mark.photos
@pytest.mark.skipif(not DATASETS.is_dir(), reason="CAIRN_DATASETS names no folder of real photos")
def test_what_rootsift_reaches_on_real_photos() -> None:
    root = DATASETS / "matching"
    found = find_pairs(root / "vgg_affine" / "graf")[:1] + find_pairs(root / "evd")[:1]
    (report,) = evaluate_matching(found, [find_descriptor("rootsift")])
    assert report.scores[0].features > 1000
    assert report.scores[0].recall > 0.55 and report.scores[0].ap > 0.5
    assert report.scores[1].features > 50 and report.scores[1].recall > 0.5
