"""Building labelled patches: from sequences with known homographies, and from correspondences."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import typer

from index.errors import CairnError
from learning.building.correspondence import Detections
from learning.building.detections import SIFT_SIDE, cut, detect, inside, keypoint_frames, keypoint_space
from learning.building.options import DetectionOptions, SplitOptions
from learning.building.patchset import build_from_points, build_from_sequences
from learning.building.point_splits import draw_non_matches, split_points
from learning.measures.roc import fpr95
from learning.patches.phototour import SPLITS, PatchSet
from retrieval.descriptors.sift import Sift
from retrieval.photos.decoding import Photo
from retrieval.regions.patches import resample_patches

SIDE = 360
# The second view is turned and larger, the third slanted.
HOMOGRAPHIES = (
    np.eye(3),
    np.array([[1.2 * np.cos(0.5), -1.2 * np.sin(0.5), 60], [1.2 * np.sin(0.5), 1.2 * np.cos(0.5), -80], [0, 0, 1]]),
    np.array([[0.9, 0.1, 10], [-0.05, 0.8, 20], [4e-4, -2e-4, 1]]),
)
ALL = SplitOptions(train=600, validation=200, test=300, seed=3)


def texture(seed: int) -> np.ndarray:
    """Noise with detail at many scales (SIDE, SIDE) uint8."""
    rng = np.random.default_rng(seed)
    image = sum(
        cv2.GaussianBlur(rng.normal(size=(SIDE, SIDE)), (0, 0), sigma) * sigma for sigma in (1.5, 3.0, 6.0, 12.0)
    )
    return np.clip(128 + 40 * image / np.std(image), 0, 255).astype(np.uint8)


def photo_of(pixels: np.ndarray) -> Photo:
    return Photo(pixels.astype(np.float32), pixels.shape[1], pixels.shape[0])


def write_sequence(folder: Path, seed: int) -> Path:
    folder.mkdir()
    source = texture(seed)
    for number, homography in enumerate(HOMOGRAPHIES, start=1):
        view = cv2.warpPerspective(source, homography, (SIDE, SIDE), borderMode=cv2.BORDER_REFLECT_101)
        cv2.imwrite(str(folder / f"img{number}.png"), view)
        if number > 1:
            np.savetxt(folder / f"H1to{number}p", homography * 2)  # the scale of a homography means nothing
    return folder


@pytest.fixture(scope="module")
def sequence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sequence(tmp_path_factory.mktemp("sequences") / "first", 0)


@pytest.fixture(scope="module")
def built(sequence: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sequences in one set; read-only."""
    second = write_sequence(sequence.parent / "second", 1)
    out = tmp_path_factory.mktemp("built") / "set"
    build_from_sequences(out, [sequence, second], splits=ALL)
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def differences(first: np.ndarray, second: np.ndarray, homography: np.ndarray) -> tuple[float, float, float]:
    """Pixels, octaves and radians between two rows of interest.txt, by the definition: finite differences."""

    def project(at: np.ndarray) -> np.ndarray:
        u, v, w = homography @ [*at, 1]
        return np.array([u, v]) / w

    at, step = first[1:3], 1e-3
    along, across = np.array([step, 0]), np.array([0, step])
    jacobian = np.stack([project(at + along) - project(at - along), project(at + across) - project(at - across)], 1)
    jacobian /= 2 * step
    octaves = first[4] + 0.5 * np.log2(np.linalg.det(jacobian)) - second[4]
    direction = jacobian @ [np.cos(first[3]), np.sin(first[3])]
    turn = np.arctan2(direction[1], direction[0]) - second[3]
    return (
        float(np.linalg.norm(project(at) - second[1:3])),
        abs(float(octaves)),
        abs(float((turn + np.pi) % (2 * np.pi) - np.pi)),
    )


def test_pairs_obey_the_rule(built: Path) -> None:
    opened = PatchSet.open(built)
    interest = np.loadtxt(built / "interest.txt")
    assert (interest[:, 0] == opened.photos).all()
    views = [*HOMOGRAPHIES, *HOMOGRAPHIES]
    kinds = set()
    for split in SPLITS:
        pairs = opened.pairs(split)
        for first, second, match in zip(pairs.first, pairs.second, pairs.match, strict=True):
            one, two = opened.photos[first], opened.photos[second]
            assert one // 3 == two // 3  # of the same sequence
            if match:
                kinds.add((one % 3, two % 3))
                onto = views[two] @ np.linalg.inv(views[one])
                pixels, octaves, radians = differences(interest[first], interest[second], onto)
                assert pixels <= 5.001 and octaves <= 0.2501 and radians <= 0.3928
            else:
                # Both brought to the reference: a difference of two that are moved alike.
                pixels, octaves, radians = difference_in_reference(interest, first, second, views[one], views[two])
                assert pixels > 9.999 or octaves > 0.4999 or radians > 0.7853
    assert kinds == {(0, 1), (0, 2), (1, 2)}


def difference_in_reference(
    interest: np.ndarray, first: int, second: int, one: np.ndarray, two: np.ndarray
) -> tuple[float, float, float]:
    moved = []
    for row, homography in ((interest[first], one), (interest[second], two)):
        frame = keypoint_frames(np.array([2 ** row[4]]), np.degrees(row[3:4]))
        reference = Detections(row[None, 1:3], frame).transfer(np.linalg.inv(homography))
        moved.append([0, *reference.centres[0], reference.angles[0], np.log2(reference.sides[0] / SIFT_SIDE)])
    return differences(np.array(moved[0]), np.array(moved[1]), np.eye(3))


def test_matches_look_alike(built: Path) -> None:
    opened = PatchSet.open(built)
    pairs = opened.pairs("test")
    patches = [opened.read(numbers).reshape(len(pairs), -1).astype(float) for numbers in (pairs.first, pairs.second)]
    first, second = (one - one.mean(axis=1, keepdims=True) for one in patches)
    correlation = (first * second).sum(1) / np.sqrt((first**2).sum(1) * (second**2).sum(1))
    assert np.median(correlation[pairs.match]) > 0.8
    assert abs(np.median(correlation[~pairs.match])) < 0.3
    assert np.mean(correlation[pairs.match] > 0.4) > 0.95


def test_no_point_is_in_two_splits_and_no_pair_twice(built: Path) -> None:
    opened = PatchSet.open(built)
    seen: list[set[int]] = []
    for split in SPLITS:
        pairs = opened.pairs(split)
        seen.append(set(opened.points[pairs.first]) | set(opened.points[pairs.second]))
        both = {tuple(sorted(pair)) for pair in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}
        assert len(both) == len(pairs)
        assert not (pairs.first == pairs.second).any()
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    # A point is at most once in a photo.
    assert len(np.unique(np.stack([opened.points, opened.photos]), axis=1).T) == len(opened)


def test_names_counts_and_provenance_agree(built: Path) -> None:
    provenance = json.loads((built / "provenance.json").read_text())
    opened = PatchSet.open(built)
    assert provenance["sequences"] == ["first", "second"]
    assert provenance["splits"] == {"train": 600, "validation": 200, "test": 300, "seed": 3}
    assert provenance["counts"]["patches"] == len(opened)
    assert provenance["counts"]["points"] == len(np.unique(opened.points))
    assert provenance["counts"]["images"] == 6
    for number, split in enumerate(SPLITS):
        reported = provenance["counts"]["pairs"][split]
        matches = int(opened.pairs(split).match.sum())
        assert reported["file"] == f"m50_{matches}_{len(opened.pairs(split)) - matches}_{number}.txt"
        assert (reported["matches"], reported["wanted"]) == (matches, getattr(ALL, split))
        assert 0 < matches <= reported["wanted"] / 2 == reported["non_matches"]
    assert str(built.parent) not in (built / "provenance.json").read_text()
    assert not [path for path in built.parent.iterdir() if path != built]  # nothing temporary is left


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(built: Path, sequence: Path, tmp_path: Path) -> None:
    folders = [sequence, sequence.parent / "second"]
    build_from_sequences(tmp_path / "again", folders, splits=ALL)
    assert contents(tmp_path / "again") == contents(built)
    build_from_sequences(tmp_path / "other", folders, splits=SplitOptions(600, 200, 300, seed=4))
    assert (tmp_path / "other" / "info.txt").read_bytes() == (built / "info.txt").read_bytes()
    other, same = (PatchSet.open(folder).pairs("test") for folder in (tmp_path / "other", built))
    assert other.first.tolist() != same.first.tolist()


@pytest.mark.slow
def test_a_split_of_size_0_leaves_its_points_to_the_others(built: Path, sequence: Path, tmp_path: Path) -> None:
    report = build_from_sequences(tmp_path / "set", [sequence], splits=SplitOptions(0, 0, 100_000))
    assert list(report.pairs) == ["test"]
    opened = PatchSet.open(tmp_path / "set")
    assert [name[-6:] for name in opened.pair_files] == ["_2.txt"]
    assert report.pairs["test"]["points"] == report.points
    # All matches there are, and they make up every point that is in two photos or more.
    matches = opened.pairs().match.sum()
    assert matches == report.pairs["test"]["matches"] < 50_000


@pytest.mark.parametrize(
    ("detector", "upright"), [("dog-affine", True), ("hessian-affine", False)], ids=["upright", "turned"]
)
@pytest.mark.slow
def test_regions_of_the_projects_own_detectors(sequence: Path, tmp_path: Path, detector: str, upright: bool) -> None:
    options = DetectionOptions(detector, upright=upright)
    build_from_sequences(tmp_path / "set", [sequence], options, splits=SplitOptions(0, 0, 400))
    opened = PatchSet.open(tmp_path / "set")
    pairs = opened.pairs("test")
    first, second = (opened.read(numbers[pairs.match]) for numbers in (pairs.first, pairs.second))
    correlation = [np.corrcoef(one.ravel(), two.ravel())[0, 1] for one, two in zip(first, second, strict=True)]
    assert len(correlation) > 30 and np.median(correlation) > 0.6


# Patches


def test_a_patch_is_the_direct_warp_of_the_smoothed_photo() -> None:
    pixels = texture(5)
    photo = photo_of(pixels)
    for x, y, size, degrees, tolerance in ((170.3, 181.8, 30.0, 200.0, 2.0), (90.2, 200.7, 5.0, 33.0, 0.6)):
        _, patches = cut(
            photo, keypoint_space(photo), Detections(np.array([[x, y]]), keypoint_frames([size], [degrees]))
        )
        spacing = SIFT_SIDE * size / 64
        smooth = photo.grey
        if spacing > 1:  # so that as much smoothing as in a photo is left at the spacing
            smooth = cv2.GaussianBlur(smooth, (0, 0), 0.5 * np.sqrt(spacing**2 - 1))
        cosine, sine = spacing * np.cos(np.radians(degrees)), spacing * np.sin(np.radians(degrees))
        turn = np.array([[cosine, -sine], [sine, cosine]])
        matrix = np.column_stack([turn, [x, y] - turn @ [31.5, 31.5]])
        direct = cv2.warpAffine(smooth, matrix, (64, 64), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
        assert np.abs(patches[0] - direct).mean() < tolerance
        assert np.std(direct) > 15


def test_nothing_aliases() -> None:
    stripes = np.zeros((400, 400), np.uint8)
    stripes[::2] = 255
    photo = photo_of(stripes)
    _, patches = cut(photo, keypoint_space(photo), Detections(np.array([[200.0, 200]]), keypoint_frames([40], [10])))
    assert np.abs(patches.astype(float) - 127.5).max() < 6


def test_patches_that_leave_the_photo_are_dropped() -> None:
    # Upright, 64 pixels of side: the outermost pixels' centres are 31.5 from the keypoint.
    size = 64 / SIFT_SIDE
    centres = np.array([[31.5, 50], [31.4, 50], [50, 67.5], [50, 67.6], [127.5, 50], [127.6, 50], [50, 31.4]])
    found = Detections(centres, keypoint_frames(np.full(7, size), np.zeros(7)))
    assert inside(found, (100, 160)).tolist() == [True, False, True, False, True, False, False]
    # Turned by 45 degrees it needs more room.
    turned = Detections(np.array([[50.0, 44], [50, 45]]), keypoint_frames([size, size], [45, 45]))
    assert inside(turned, (100, 160)).tolist() == [False, True]

    photo = photo_of(texture(6))
    kept, patches = detect(photo, DetectionOptions())
    assert len(kept) == len(patches) > 50
    assert inside(kept, photo.grey.shape).all()


def test_detections_are_limited_by_side_and_number() -> None:
    photo = photo_of(texture(6))
    everything, _ = detect(photo, DetectionOptions(max_detections=0))
    large, _ = detect(photo, DetectionOptions(min_side=30))
    assert len(large) == (everything.sides >= 30).sum() < len(everything)
    few, _ = detect(photo, DetectionOptions(max_detections=40))
    assert 0 < len(few) <= 40
    assert (few.centres == everything.centres[: len(few)]).all()


@pytest.mark.parametrize(
    "wrong", [{"detector": "corners"}, {"measurement_scale": 3.0}, {"detector": "dog-affine", "measurement_scale": 0.0}]
)
def test_detection_options_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(CairnError):
        DetectionOptions(**wrong)


# Splits


def test_points_are_shared_out_in_proportion() -> None:
    points = np.repeat(np.arange(1000), 3)[np.random.default_rng(0).permutation(3000)]
    split = split_points(points, (6, 0, 4), np.random.default_rng(1))
    assert np.unique(split).tolist() == [0, 2]
    assert len(np.unique(points[split == 0])) == 600
    assert not set(points[split == 0]) & set(points[split == 2])


def test_non_matches_are_drawn_until_there_are_no_more() -> None:
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    pairs = draw_non_matches(np.arange(8), groups, lambda a, b: (a != b) & (a + b != 3), 1000, np.random.default_rng(0))
    found = {tuple(sorted(pair)) for pair in pairs.tolist()}
    assert len(found) == len(pairs)
    assert found == {(0, 1), (0, 2), (1, 3), (2, 3), (4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7)}
    assert len(draw_non_matches(np.arange(0), groups, lambda a, b: a != b, 5, np.random.default_rng(0))) == 0


def test_non_matches_are_drawn_evenly() -> None:
    groups = np.zeros(200, int)
    pairs = draw_non_matches(np.arange(200), groups, lambda a, b: a != b, 8000, np.random.default_rng(0))
    assert len(pairs) == 8000
    counts = np.bincount(pairs.reshape(-1), minlength=200)
    assert 50 < counts.min() <= counts.mean() == 80 <= counts.max() < 115


# Correspondences


@pytest.fixture
def points_file(tmp_path: Path) -> Path:
    """Three photos of one object, each shifted by ten pixels, and a fourth with another name; eight points in each."""
    photos = tmp_path / "photos"
    photos.mkdir()
    source = texture(8)
    names = ["a_0", "a_1", "a_2", "b_0"]
    for number, name in enumerate(names):
        cv2.imwrite(str(photos / f"{name}.png"), np.roll(source, 10 * number, axis=1))
    at = np.array([[60, 60], [68, 60], [150, 60], [60, 150], [150, 150], [240, 150], [60, 240], [240, 240]], float)
    image = np.repeat(np.arange(4), 8)
    x, y = (np.tile(at, (4, 1)) + np.outer(10 * image, [1, 0])).T
    rows = np.arange(32).reshape(4, 8)
    pairs = np.concatenate([np.stack([rows[a], rows[b]], 1) for a in range(4) for b in range(a + 1, 4)])
    np.savez(
        tmp_path / "points.npz",
        names=np.array(names),
        image=image.astype(np.int16),
        x=x.astype(np.float32),
        y=y.astype(np.float32),
        size=np.full(32, 4, np.float32),
        angle=np.zeros(32, np.float32),
        point=np.tile(np.arange(8) * 10, 4),
        pairs=pairs,
        pair_angle=np.repeat([10.0, 40, 20, 70, 5, 5], 8),
    )
    return tmp_path / "points.npz"


TEST = SplitOptions(0, 0, 500)


def build_points(file: Path, name: str = "set", **options: Any) -> PatchSet:
    out = file.with_name(name)
    build_from_points(out, file, file.with_name("photos"), **{"splits": TEST, **options})
    return PatchSet.open(out)


def change(file: Path, **arrays: np.ndarray | None) -> None:
    with np.load(file) as given:
        kept = {**given, **arrays}
    np.savez(file, **{name: array for name, array in kept.items() if array is not None})


def test_matches_are_the_given_pairs(points_file: Path) -> None:
    opened = build_points(points_file)
    pairs = opened.pairs("test")
    assert len(opened) == 32 and pairs.match.sum() == 48
    assert np.unique(opened.points).tolist() == list(range(0, 80, 10))
    assert (opened.read(pairs.first[pairs.match]) == opened.read(pairs.second[pairs.match])).all()
    # Points 0 and 10 lie 8 pixels apart in every photo: between match and non-match, wherever they are seen.
    others = {frozenset(two) for two in zip(opened.points[pairs.first], opened.points[pairs.second], strict=True)}
    assert frozenset((0, 10)) not in others
    assert len(others) == 8 + 27
    # Of every other two points all 16 pairs of their patches, none twice.
    assert (~pairs.match).sum() == 250 and len(opened.pair_files) == 1
    provenance = json.loads((opened.folder / "provenance.json").read_text())
    assert (provenance["points"], provenance["photos"], provenance["images"]) == ("points.npz", "photos", "*")


def test_photos_are_chosen_by_name_and_pairs_by_angle(points_file: Path) -> None:
    opened = build_points(points_file, pattern="a_*")
    assert np.unique(opened.photos).tolist() == [0, 1, 2]
    assert opened.pairs("test").match.sum() == 24
    opened = build_points(points_file, "again", min_angle=40.0)
    assert opened.pairs("test").match.sum() == 16
    assert len(opened) == 8 * 3  # the third photo is in no such pair: 0-2 at 40 degrees, 1-2 at 70


def test_keypoints_whose_patch_leaves_the_photo_lose_their_pairs(points_file: Path) -> None:
    with np.load(points_file) as given:
        x = given["x"].copy()
    x[9] = 3
    change(points_file, x=x)
    opened = build_points(points_file)
    assert len(opened) == 31 and opened.pairs("test").match.sum() == 45


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"pairs": None}, "has no array 'pairs'"),
        ({"pair_angle": None}, "has no array 'pair_angle'"),
        ({"x": np.zeros(31)}, "'x' should hold numbers in the shape"),
        ({"pairs": np.array([[0, 32]]), "pair_angle": np.ones(1)}, "'pairs' should hold numbers from 0 to 31"),
        (
            {"pairs": np.array([[0, 9]]), "pair_angle": np.ones(1)},
            "the two keypoints of a pair should be of the same point",
        ),
        ({"image": np.full(32, 4)}, "'image' should hold numbers from 0 to 3"),
        ({"size": np.zeros(32)}, "sizes positive"),
        ({"angle": np.full(32, np.nan)}, "should be finite"),
        ({"names": np.array(["a_0", "a_1", "a_2", "c_0"])}, "has no photo c_0"),
        ({"pairs": np.zeros((0, 2), int), "pair_angle": np.zeros(0)}, "No two detections match"),
    ],
)
def test_damaged_correspondences_are_refused(
    points_file: Path, arrays: dict[str, np.ndarray | None], reason: str
) -> None:
    change(points_file, **arrays)
    with pytest.raises(CairnError, match=reason.replace("(", r"\(")):
        build_points(points_file, min_angle=1.0)
    assert not points_file.with_name("set").exists()


def test_files_that_hold_no_correspondences_are_refused(points_file: Path) -> None:
    with pytest.raises(CairnError, match="No photo has a name like 'z_\\*'; the file's are a_0, a_1, a_2"):
        build_points(points_file, pattern="z_*")
    np.savez(points_file, names=np.array([{}], object))
    with pytest.raises(CairnError, match=r"is damaged, or is no \.npz"):
        build_points(points_file)
    points_file.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(CairnError, match=r"is damaged, or is no \.npz"):
        build_points(points_file)
    points_file.unlink()
    with pytest.raises(CairnError, match="There is no file"):
        build_points(points_file)


# Sequences that cannot be used


def refused(folder: Path, out: Path) -> str:
    with pytest.raises(CairnError) as error:
        build_from_sequences(out, [folder])
    assert not out.exists()
    assert not list(out.parent.glob(".*.tmp"))
    return str(error.value)


def test_sequences_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    folder, out = write_sequence(tmp_path / "one", 2), tmp_path / "set"
    assert "There is no folder" in refused(tmp_path / "none", out)
    (folder / "H1to3p").write_text("1 0 0\n0 1 0\n0 0")
    assert "H1to3p is no homography" in refused(folder, out)
    (folder / "H1to3p").write_text("1 0 0\n0 1 0\n1 0 0")
    assert "H1to3p is no homography" in refused(folder, out)
    (folder / "H1to3p").write_text("1 0 0\n0 1 0\n0 0 one")
    assert "H1to3p cannot be read" in refused(folder, out)
    (folder / "H1to3p").unlink()
    assert "H1to3p is missing" in refused(folder, out)
    (folder / "img2.png").write_bytes((folder / "img2.png").read_bytes()[:900])
    np.savetxt(folder / "H1to3p", np.eye(3))
    assert "img2.png cannot be read: the file is truncated." in refused(folder, out)
    (folder / "img1.png").unlink()
    assert "is no image sequence" in refused(folder, out)


def test_a_homography_of_other_photos_is_found_out(tmp_path: Path) -> None:
    folder = write_sequence(tmp_path / "one", 2)
    for number in (2, 3):
        cv2.imwrite(str(folder / f"img{number}.png"), np.full((SIDE, SIDE), 90, np.uint8))
    assert "No two detections match" in refused(folder, tmp_path / "set")


@pytest.mark.slow
def test_pairs_in_folders(tmp_path: Path) -> None:
    source = write_sequence(tmp_path / "one", 2)
    pairs = tmp_path / "pairs"
    for part in ("1", "2", "h"):
        (pairs / part).mkdir(parents=True)
    for name, number in (("boat", 2), ("house", 3)):
        (pairs / "1" / f"{name}.png").write_bytes((source / "img1.png").read_bytes())
        (pairs / "2" / f"{name}.png").write_bytes((source / f"img{number}.png").read_bytes())
        (pairs / "h" / f"{name}.txt").write_bytes((source / f"H1to{number}p").read_bytes())
    report = build_from_sequences(tmp_path / "set", [pairs], splits=TEST)
    assert report.images == 4
    assert json.loads((tmp_path / "set" / "provenance.json").read_text())["sequences"] == ["pairs/boat", "pairs/house"]
    opened = PatchSet.open(tmp_path / "set")
    pair = opened.pairs("test")
    assert (opened.photos[pair.first] // 2 == opened.photos[pair.second] // 2).all()
    (pairs / "2" / "house.png").unlink()
    assert "has no image house" in refused(pairs, tmp_path / "other")


def test_what_is_there_is_never_overwritten(sequence: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine").touch()
    with pytest.raises(CairnError, match="already exists"):
        build_from_sequences(tmp_path / "set", [sequence])
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["mine"]
    (tmp_path / "set" / "mine").unlink()
    build_from_sequences(tmp_path / "set", [sequence], splits=TEST)  # an empty folder is fine
    assert (tmp_path / "set" / "info.txt").is_file()


@pytest.mark.parametrize("sizes", [(0, 0, 0), (-1, 5, 5)])
def test_impossible_splits_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(CairnError):
        SplitOptions(*sizes)


# Real photos

DATASETS = Path(os.environ.get("CAIRN_DATASETS") or "nowhere")


@pytest.mark.slow
@pytest.mark.photos
@pytest.mark.skipif(not DATASETS.is_dir(), reason="CAIRN_DATASETS names no folder of real photos")
@pytest.mark.parametrize(
    ("name", "most"),
    [("boat", 0.08), *(pytest.param(*more, marks=pytest.mark.slow) for more in (("ubc", 0.05), ("wide", 0.06)))],
    ids=["boat", "ubc", "strecha, 60 degrees"],
)
def test_sift_tells_real_matches_from_others(name: str, most: float, tmp_path: Path) -> None:
    # Wrong labels would show: with patches cut or matched wrongly, it is at half of the non-matches.
    matching, splits = DATASETS / "matching", SplitOptions(0, 0, 4000)
    if name == "wide":
        photos = DATASETS / "landmarks" / "images"
        build_from_points(tmp_path / "set", matching / "strecha_points.npz", photos, min_angle=60, splits=splits)
    else:
        options = DetectionOptions(max_detections=1500)
        build_from_sequences(tmp_path / "set", [matching / "vgg_affine" / name], options, splits=splits)
    opened = PatchSet.open(tmp_path / "set")
    pairs = opened.pairs()
    assert pairs.match.sum() > 1500
    sift = Sift()
    first, second = (
        sift.describe(resample_patches(opened.read(numbers), sift.patch_size))
        for numbers in (pairs.first, pairs.second)
    )
    assert fpr95(((first - second) ** 2).sum(axis=1), pairs.match) < most


# The command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs `cairn patches ARGUMENTS…`: code, standard output, standard error."""
    from learning.commands.patches import patches
    from retrieval.commands.console import run

    app = typer.Typer()
    app.add_typer(patches, name="patches")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cairn", "patches", *map(str, arguments)])
        capfd.readouterr()
        code = 0
        try:
            run(app)
        except SystemExit as stop:
            code = int(stop.code or 0)
        return (code, *capfd.readouterr())

    return call


@pytest.mark.slow
def test_the_command_reports_what_it_built(
    command: Callable[..., tuple[int, str, str]], sequence: Path, points_file: Path, tmp_path: Path
) -> None:
    code, out, err = command(
        "build", tmp_path / "one", sequence, "--train", 400, "--validation", 0, "--test", 100, "--json"
    )
    assert (code, err) == (0, "")
    reported = json.loads(out)
    assert {"patches", "points", "images", "pairs", "unused", "seconds"} <= set(reported)
    assert list(reported["pairs"]) == ["train", "test"]
    opened = PatchSet.open(tmp_path / "one")
    assert (reported["patches"], reported["images"]) == (len(opened), 3)

    photos = points_file.with_name("photos")
    code, out, err = command(
        "build", tmp_path / "two", points_file, "--photos", photos, "--images", "a_*", "--train", 100
    )
    assert (code, err) == (0, "")
    assert "of 8 points in 3 photos" in out and "there are no more; 100 pairs were wanted" in out.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["SEQUENCE", "--train", 0, "--validation", 0, "--test", 0], "one at least must be above 0"),
        (["SEQUENCE", "--photos", "x"], "go with an .npz"),
        (["SEQUENCE", "--detector", "corners"], "There is no detector 'corners'"),
        (["SEQUENCE", "--upright"], "have a size and an orientation of their own"),
        (["POINTS"], "give their folder with --photos"),
        (["POINTS", "SEQUENCE"], "name one .npz, or folders"),
        (["POINTS", "--photos", "nowhere"], "There is no folder nowhere"),
        (["POINTS", "--photos", "nowhere", "--detector", "dog-affine"], "brings its own detections"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    command: Callable[..., tuple[int, str, str]],
    sequence: Path,
    points_file: Path,
    tmp_path: Path,
    arguments: list[object],
    reason: str,
) -> None:
    named = {"SEQUENCE": sequence, "POINTS": points_file}
    code, out, err = command("build", tmp_path / "set", *(named.get(str(one), one) for one in arguments))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("cairn: ") and reason in err
    assert not (tmp_path / "set").exists()
