"""Mining of matches: photos with known homographies, criteria of P(x) and N(x), resuming after a kill, refusals."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import assume, given
from hypothesis import strategies as st

from eval.demo.synthetic import DemoCollection
from index.errors import CairnError
from learning.commands.mine import mine
from learning.mining import image_pairs
from learning.mining.homographies import MapOptions, PhotoMap, PhotoPoints, find_map, refine_map
from learning.mining.image_pairs import Overlaps, measurement_regions, mine_pair
from learning.mining.matches import MinedMatches
from learning.mining.mining import MiningOptions, MiningReport, mine_matches
from learning.mining.photo_source import PhotoSource
from learning.mining.proposals import random_pairs
from retrieval.commands.console import run
from retrieval.descriptors.sift import Sift
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.photos.decoding import read_photo
from retrieval.regions.overlap import overlap_error, transfer_ellipses
from tests.conftest import Indexed, Ran
from tests.support.made_once import made_once
from tests.support.patience import patience
from tests.support.processes import clean_forks

OPTIONS = MiningOptions(propose="random")
SCALE = 12.5


@pytest.fixture(scope="module")
def few(demo: DemoCollection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos of two objects, three views each, and two of neither."""
    return made_once(tmp_path_factory, "few", partial(_make_few, demo))


def _make_few(demo: DemoCollection, where: Path) -> Path:
    folder = where / "photos"
    folder.mkdir()
    for path in sorted(demo.images.iterdir()):
        if path.stem.startswith(("coffee", "cat")) or path.stem in ("distractor_001", "distractor_002"):
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def mined(few: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MiningReport]:
    def make(folder: Path) -> tuple[Path, MiningReport]:
        out = folder / "matches.npz"
        return out, mine_matches(PhotoSource.open(few), out, OPTIONS, work=folder / "work")

    return made_once(tmp_path_factory, "mined", make)


@pytest.fixture
def work(mined: tuple[Path, MiningReport], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the work folder of mining."""
    return shutil.copytree(mined[0].with_name("work"), tmp_path_factory.mktemp("kept") / "work")


class Truth:
    """The objects' places in the views."""

    def __init__(self, file: Path) -> None:
        record = json.loads(file.read_text())
        self._views = {stem: np.array(view["homography"]) for stem, view in record["views"].items()}
        self._boxes = {name: entry["box"] for name, entry in record["objects"].items()}

    def homography(self, one: str, other: str) -> np.ndarray:
        """From the pixels of one view of an object to those of another."""
        return self._views[other] @ np.linalg.inv(self._views[one])

    def on_object(self, stem: str, ellipses: np.ndarray) -> np.ndarray:
        """Mask of the regions whose centres lie on the object."""
        x, y = transfer_ellipses(ellipses, np.linalg.inv(self._views[stem]))[:, :2].T
        x0, y0, x1, y1 = self._boxes[stem.split("_")[0]]
        return (x > x0) & (x < x1) & (y > y0) & (y < y1)


@pytest.fixture(scope="module")
def truth(demo: DemoCollection) -> Truth:
    return Truth(demo.homographies)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `mine ARGUMENTS…`."""

    def start(*arguments: object) -> Ran:
        app = typer.Typer(pretty_exceptions_enable=False)
        app.command()(mine)
        monkeypatch.setattr(sys, "argv", ["mine", *map(str, arguments)])
        capfd.readouterr()
        code = 0
        try:
            run(app)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        return Ran(code, *capfd.readouterr())

    return start


def photo_features(path: Path) -> PhotoPoints:
    photo = read_photo(path)
    return PhotoPoints(Extractor(Sift(root=True), FeatureOptions()).extract(photo), photo.width, photo.height)


# Mined matches


def test_pairs_show_one_object_and_positives_are_the_same_spot_of_it(
    mined: tuple[Path, MiningReport], truth: Truth
) -> None:
    matches, report = MinedMatches.open(mined[0]), mined[1]
    assert (report.tried, report.kept, report.proposals) == (28, len(matches.pairs), "random")
    objects = 0
    for pair, (first, second) in enumerate(matches.pairs):
        one, other = str(matches.names[first]), str(matches.names[second])
        if one.split("_")[0] != other.split("_")[0]:
            continue  # they show the same gravel
        objects += 1
        homography = truth.homography(one, other)
        rows = np.array(matches.of_pair(pair))
        regions = matches.ellipses[matches.reference[rows]]
        seen = truth.on_object(one, regions)
        places, right = (transfer_ellipses(regions[seen], h)[:, :2] for h in (matches.homographies[pair], homography))
        assert np.median(np.linalg.norm(places - right, axis=1)) < 2
        # By the true map, nearly all positives still are.
        x = np.repeat(rows[seen], np.diff(matches.positive_starts)[rows[seen]])
        y = np.concatenate([matches.positives(int(row)) for row in rows[seen]])
        regions1, regions2 = (measurement_regions(matches.ellipses[part], SCALE) for part in (matches.reference[x], y))
        back = transfer_ellipses(regions2, np.linalg.inv(homography))
        overlap = 1 - overlap_error(regions1, back, np.column_stack([np.arange(len(x))] * 2))
        assert len(x) > 100
        assert (overlap > 0.5).mean() > 0.9
    assert objects >= 4  # of the six pairs there are


def test_sets_follow_from_overlap_of_measurement_regions(mined: tuple[Path, MiningReport]) -> None:
    matches, report = MinedMatches.open(mined[0]), mined[1]
    rng = np.random.default_rng(0)
    for x in rng.integers(matches.features, size=60).tolist():
        pair = int(matches.pair[x])
        targets = matches.targets(pair)
        assert set(matches.photos[targets]) == {matches.pairs[pair, 1]}
        assert matches.photos[matches.reference[x]] == matches.pairs[pair, 0]
        one = measurement_regions(matches.ellipses[matches.reference[[x]]], SCALE)
        others = measurement_regions(matches.ellipses[targets], SCALE)
        back = transfer_ellipses(others, np.linalg.inv(matches.homographies[pair]))
        overlap = 1 - overlap_error(one, back, np.column_stack([np.zeros(len(back), int), np.arange(len(back))]))
        assert matches.positives(x).tolist() == targets[overlap > 0.6].tolist()
        assert matches.ambiguous(x).tolist() == targets[(overlap >= 0.3) & (overlap <= 0.6)].tolist()
        assert matches.negatives(x).tolist() == targets[overlap < 0.3].tolist()
    sizes = [
        sum(len(part(x)) for x in range(matches.features))
        for part in (matches.positives, matches.negatives, matches.ambiguous)
    ]
    assert [report.positives, report.negatives, report.ambiguous] == sizes
    assert (report.features, report.patches) == (matches.features, len(matches.patches))


def test_patches_are_those_that_descriptors_see(mined: tuple[Path, MiningReport], few: Path) -> None:
    matches = MinedMatches.open(mined[0])
    second = int(matches.pairs[0, 1])
    rows = matches.targets(0)
    assert matches.extent == OPTIONS.extent > 1
    # Larger than the regions whose overlap counts.
    wide = FeatureOptions(measurement_scale=OPTIONS.extent * SCALE)
    photo = few / f"{matches.names[second]}.jpg"
    there = Extractor(Sift(root=True), wide).extract(read_photo(photo))
    np.testing.assert_array_equal(matches.ellipses[rows], there.ellipses)
    described = Sift(root=True).describe(matches.patches[rows])
    alike = (described * there.descriptors.astype(np.float32)).sum(axis=1)  # 1 but for rounded grey values
    assert np.quantile(alike, 0.02) > 0.99
    # Each feature once, and no more than are used.
    named = np.concatenate([matches.reference, matches.target_patches])
    assert np.array_equal(np.unique(named), np.arange(len(matches.patches)))


@pytest.mark.slow
def test_patches_are_as_large_as_the_scale_that_is_given(few: Path, tmp_path: Path) -> None:
    # A descriptor learnt from them describes photos of a collection at that scale.
    options = replace(OPTIONS, features=FeatureOptions(measurement_scale=8.0))
    mine_matches(PhotoSource.open(few), tmp_path / "matches.npz", options)
    matches = MinedMatches.open(tmp_path / "matches.npz")
    assert matches.extent == 1
    rows = matches.targets(0)
    photo = few / f"{matches.names[int(matches.pairs[0, 1])]}.jpg"
    there = Extractor(Sift(root=True), options.features).extract(read_photo(photo))
    described = Sift(root=True).describe(matches.patches[rows])
    assert np.quantile((described * there.descriptors.astype(np.float32)).sum(axis=1), 0.02) > 0.99


@pytest.mark.parametrize("extent", [0.0, -1.0, 50.0, float("nan")])
def test_an_extent_that_patches_cannot_have_is_refused(extent: float) -> None:
    with pytest.raises(CairnError, match="extent of patches"):
        MiningOptions(extent=extent)


def test_appearance_is_not_consulted_once_there_is_a_map(
    few: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (photo_features(few / f"{stem}.jpg") for stem in ("coffee_001", "coffee_002"))
    known = PhotoMap(truth.homography("coffee_001", "coffee_002"), 50)
    rng = np.random.default_rng(0)

    def shuffled(photo: PhotoPoints) -> PhotoPoints:
        rows = rng.permutation(photo.features.descriptors)
        return replace(photo, features=replace(photo.features, descriptors=rows))

    assert mine_pair(shuffled(one), shuffled(other), SCALE, MapOptions(), Overlaps()) is None  # nothing to find a map
    monkeypatch.setattr(image_pairs, "find_map", lambda *_: known)
    found = mine_pair(one, other, SCALE, MapOptions(), Overlaps())
    again = mine_pair(shuffled(one), shuffled(other), SCALE, MapOptions(), Overlaps())
    assert found is not None and again is not None
    assert len(found.positives) > 100
    np.testing.assert_array_equal(found.positives, again.positives)
    np.testing.assert_array_equal(found.ambiguous, again.ambiguous)
    assert set(found.ambiguous[:, 0]) <= set(found.references)


def test_a_projective_map_is_nearer_to_the_truth_than_an_affine_one(few: Path, truth: Truth) -> None:
    one, other = (photo_features(few / f"{stem}.jpg") for stem in ("coffee_001", "coffee_002"))
    regions = one.features.ellipses[truth.on_object("coffee_001", one.features.ellipses)]
    right = transfer_ellipses(regions, truth.homography("coffee_001", "coffee_002"))[:, :2]
    errors = {}
    for model in ("projective", "affine"):
        found = find_map(one, other, MapOptions(model=model))
        assert found is not None
        if model == "affine":
            np.testing.assert_allclose(found.homography[2], [0, 0, 1], atol=1e-12)
        places = transfer_ellipses(regions, found.homography)[:, :2]
        errors[model] = np.median(np.linalg.norm(places - right, axis=1))
    assert errors["projective"] < min(2, errors["affine"])
    assert find_map(one, other, MapOptions(inliers=10**6)) is None


@given(st.integers(0, 2**32 - 1), st.sampled_from(["projective", "affine"]))
def test_refinement_finds_the_map_among_wrong_matches(seed: int, model: str) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.eye(3)
    matrix[:2] += rng.uniform(-0.2, 0.2, (2, 3))
    if model == "projective":
        matrix[2, :2] = rng.uniform(-0.3, 0.3, 2)
    source = rng.uniform(0, 1, (150, 2))
    mapped = np.column_stack([source, np.ones(150)]) @ matrix.T
    target = mapped[:, :2] / mapped[:, 2:]
    clean = target.copy()
    target[:100] += rng.normal(0, 0.001, (100, 2))
    target[100:] = rng.uniform(0, 1, (50, 2))
    # As from verification: the affine map about the middle, and its loose inliers.
    centre = np.linalg.lstsq(np.column_stack([source[:100], np.ones(100)]), clean[:100], rcond=None)[0].T
    loose = np.linalg.norm(np.column_stack([source, np.ones(150)]) @ centre.T - target, axis=1) < 0.05
    assume(loose.sum() >= MapOptions().inliers)  # fewer are not mined; seen very aslant, few agree with an affine map
    found = refine_map(source, target, centre, np.flatnonzero(loose), MapOptions(model=model))
    again = np.column_stack([source, np.ones(150)]) @ found.T
    # A wrong match that agrees by chance moves the map a little.
    assert np.abs(again[:, :2] / again[:, 2:] - clean)[:100].max() < 0.01


# Proposals


@given(st.integers(2, 40), st.integers(1, 900), st.integers(0, 2**32 - 1))
def test_random_pairs_are_different_photos_and_none_twice(photos: int, number: int, seed: int) -> None:
    pairs = random_pairs(photos, number, np.random.default_rng(seed))
    assert len({frozenset(pair) for pair in pairs.tolist()}) == len(pairs) == min(number, photos * (photos - 1) // 2)
    assert all(one != other for one, other in pairs.tolist())
    assert 0 <= pairs.min() <= pairs.max() < photos
    assert pairs.tolist() == sorted(pairs.tolist())


def test_random_pairs_of_very_many_photos() -> None:
    pairs = random_pairs(10_000_000, 1000, np.random.default_rng(0))
    assert len(np.unique(pairs, axis=0)) == 1000
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert 4e6 < pairs.mean() < 6e6


@pytest.mark.slow
def test_a_ranking_proposes_what_overlaps(indexed: Indexed, command: Callable[..., Ran], tmp_path: Path) -> None:
    small = ("--max-side", 300, "--inliers", 20, "--work", tmp_path / "work", "--workers", 1, "--json")
    report = command(indexed.folder, "--out", tmp_path / "a.npz", "--pairs", 12, *small).json
    assert (report["proposals"], report["image_pairs_tried"]) == ("ranking", 12)
    drawn = command(indexed.photos, "--out", tmp_path / "b.npz", "--pairs", 12, *small, "--propose", "random")
    kept = drawn.json["image_pairs_kept"] if drawn.code == 0 else 0
    # The pairs with 20 inliers depend on the last bits of the drawn photos, which vary between machines.
    assert report["image_pairs_kept"] >= max(4, 2 * kept)
    assert set(report) >= {"features", "positives", "negatives", "ambiguous", "seconds"}
    everything = command(indexed.folder, "--out", tmp_path / "c.npz", "--propose", "random", *small).json
    assert everything["image_pairs_tried"] == 16 * 15 // 2
    assert everything["image_pairs_kept"] >= report["image_pairs_kept"]


# The same result, despite interruptions


@pytest.mark.slow
def test_the_file_is_the_same_with_any_number_of_workers_and_another_with_another_seed(
    mined: tuple[Path, MiningReport], few: Path, work: Path, tmp_path: Path
) -> None:
    source = PhotoSource.open(few)
    report = mine_matches(source, tmp_path / "a.npz", OPTIONS, workers=2)
    assert report == mined[1]
    assert (tmp_path / "a.npz").read_bytes() == mined[0].read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]  # nothing else is left
    mine_matches(source, tmp_path / "b.npz", replace(OPTIONS, seed=1), work=work)
    assert (tmp_path / "b.npz").read_bytes() != mined[0].read_bytes()


def _mine_until(moment: tuple[str, int], few: Path, out: Path) -> None:
    def tell(step: str, done: int, _of: int) -> None:
        if (step, done) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    mine_matches(PhotoSource.open(few), out, OPTIONS, progress=tell)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL") or not hasattr(os, "fork"), reason="needs processes to kill")
@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(
    mined: tuple[Path, MiningReport], few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "matches.npz"
    context = clean_forks(__name__)
    for moment in (("features", 3), ("pairs", 16), ("patches", 2)):
        process = context.Process(target=_mine_until, args=(moment, few, out))
        process.start()
        process.join(patience(120))
        assert process.exitcode == -signal.SIGKILL
        assert [path.name for path in tmp_path.iterdir()] == ["matches.npz.mining"]
    # Finished work is not repeated, and incomplete patches of a photo are discarded.
    (spool,) = out.with_name("matches.npz.mining").rglob("patches.raw")
    with spool.open("ab") as file:
        file.write(bytes(1000))
    monkeypatch.setattr(image_pairs, "find_map", lambda *_: pytest.fail("a pair is mined again"))
    steps = []
    report = mine_matches(PhotoSource.open(few), out, OPTIONS, progress=lambda *reported: steps.append(reported))
    assert next(done for step, done, _ in steps if step == "patches") == 3
    assert report == mined[1]
    assert out.read_bytes() == mined[0].read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["matches.npz"]


@pytest.mark.slow
def test_a_damaged_result_is_mined_again(
    mined: tuple[Path, MiningReport], few: Path, work: Path, tmp_path: Path
) -> None:
    out = tmp_path / "matches.npz"
    first = min(work.rglob("pairs-*/*.npz"))
    first.write_bytes(first.read_bytes()[:1000])
    mine_matches(PhotoSource.open(few), out, OPTIONS, work=work)
    assert out.read_bytes() == mined[0].read_bytes()
    # Other thresholds use the same features, and not the same results.
    staged = {path: path.stat().st_mtime_ns for path in (work / "features").rglob("*.npy")}
    report = mine_matches(PhotoSource.open(few), out, replace(OPTIONS, overlaps=Overlaps(0.8, 0.3)), work=work)
    assert report.positives < mined[1].positives
    assert staged == {path: path.stat().st_mtime_ns for path in (work / "features").rglob("*.npy")}


# Nothing to mine


def copy(few: Path, folder: Path, pattern: str) -> Path:
    folder.mkdir()
    for path in few.glob(pattern):
        shutil.copy(path, folder)
    return folder


@pytest.mark.slow
def test_what_gives_too_little_is_one_sentence(
    few: Path, work: Path, command: Callable[..., Ran], tmp_path: Path
) -> None:
    out = tmp_path / "a.npz"
    cases = {
        "one photo": copy(few, tmp_path / "one", "cat_001*"),
        "no photos": copy(few, tmp_path / "none", "nothing*"),
        "None of 1 image pairs": copy(few, tmp_path / "apart", "distractor*"),
    }
    for sentence, folder in cases.items():
        assert sentence in command(folder, "--out", out).refused()
    with pytest.raises(CairnError, match=r"Only \d+ features"):
        mine_matches(PhotoSource.open(few), out, replace(OPTIONS, least=10**6), work=work)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["apart", "none", "one"]


def test_requests_that_make_no_sense_are_refused(few: Path, command: Callable[..., Ran], tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    assert "cairn index" in command(few, "--out", out, "--propose", "ranking").refused()
    assert "random, ranking" in command(few, "--out", out, "--propose", "guess").refused()
    assert "projective, affine" in command(few, "--out", out, "--model", "bent").refused()
    assert "hessian-affine" in command(few, "--out", out, "--detector", "corners").refused()
    assert "a.npz" in command(few, "--out", tmp_path / "a").refused()
    assert "not a folder" in command(few, "--out", tmp_path / "no" / "a.npz").refused()
    assert "no file or folder" in command(tmp_path / "missing", "--out", out).refused()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_photos_that_cannot_be_read_are_told_and_left_out(
    few: Path, command: Callable[..., Ran], tmp_path: Path
) -> None:
    folder = copy(few, tmp_path / "photos", "coffee*")
    (folder / "broken.jpg").write_bytes((folder / "coffee_001.jpg").read_bytes()[:2000])
    shutil.copy(folder / "coffee_001.jpg", folder / "again.jpg")
    report = command(folder, "--out", tmp_path / "a.npz", "--json").json
    assert [Path(entry["path"]).name for entry in report["failed"]] == ["broken.jpg"]
    assert report["image_pairs_tried"] == 6
    (folder / "coffee_002.jpg").unlink()
    for name in ("coffee_003.jpg", "again.jpg"):
        (folder / name).write_bytes(b"")
    assert "not two photos that can be read" in command(folder, "--out", tmp_path / "b.npz").refused()


@pytest.mark.slow
def test_a_photo_that_changes_meanwhile_is_noticed(few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy(few, tmp_path / "photos", "coffee*")

    def change(step: str, done: int, of: int) -> None:
        if step == "pairs":
            shutil.copy(few / "cat_001.jpg", folder / "coffee_001.jpg")

    with pytest.raises(CairnError, match="has changed"):
        mine_matches(PhotoSource.open(folder), tmp_path / "a.npz", OPTIONS, progress=change)


@pytest.mark.slow
def test_options_shape_what_is_mined(few: Path, command: Callable[..., Ran], tmp_path: Path) -> None:
    folder = copy(few, tmp_path / "photos", "c*")
    rotated = ("--detector", "hessian-affine", "--rotated", "--max-side", 800, "--inliers", 20, "--model", "affine")
    command(folder, "--out", tmp_path / "a.npz", *rotated, "--json").json  # noqa: B018 (it ends with 0)
    matches = MinedMatches.open(tmp_path / "a.npz")
    features = matches.meta["options"]["features"]
    assert (features["regions"]["detector"], features["upright"]) == ("hessian-affine", False)
    assert matches.meta["measurement_scale"] == pytest.approx(3**0.5)
    assert matches.meta["options"]["image"]["max_side"] == 800
    assert (matches.inliers >= 20).all()
    np.testing.assert_allclose(matches.homographies[:, 2], [[0, 0, 1]] * len(matches.pairs), atol=1e-12)
    assert str(tmp_path) not in json.dumps(matches.meta)
