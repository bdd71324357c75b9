"""Out to structure from motion: pairs, features as they were given, indices of matches, hloc's and COLMAP's files."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import cairn as library
from retrieval.foreign import extractor
from tests.conftest import Indexed, Ran
from tests.support.points_seen import SIZE, Seen, see_points

Cairn = Callable[..., Ran]
CLOSE = 0.05  # pixels: of a match to where exact cameras put it


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return see_points(tmp_path_factory.mktemp("seen"))


@pytest.fixture(scope="module")
def collection(seen: Seen, tmp_path_factory: pytest.TempPathFactory) -> Iterator[library.Collection]:
    folder = tmp_path_factory.mktemp("pairs") / "seen.cairn"
    with library.create(
        folder, features=seen.features, photos=seen.photos, words=60, keep_descriptors=True
    ) as collection:
        assert collection.add(seen.photos, workers=1).failed == []
        yield collection


def same_points(seen: Seen, one: str, other: str, matches: np.ndarray) -> np.ndarray:
    """Which matches are of one point."""
    first, second = seen.points[one][matches[:, 0]], seen.points[other][matches[:, 1]]
    return (first == second) & (first >= 0)


def off_lines(matrix: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Distance of points of the second photo to the epipolar lines of those of the first."""
    lines = np.column_stack([one, np.ones(len(one))]) @ matrix.T
    return np.abs((np.column_stack([other, np.ones(len(other))]) * lines).sum(axis=1)) / np.linalg.norm(
        lines[:, :2], axis=1
    )


def test_features_are_as_they_were_given(seen: Seen, collection: library.Collection) -> None:
    for name, keypoints in seen.keypoints.items():
        features = collection.features(name)
        assert np.array_equal(features.keypoints, keypoints) and features.keypoints.dtype == np.float32
        assert features.rows is not None and features.rows.tolist() == list(range(len(keypoints)))
        with h5py.File(seen.features) as file:
            given = file[name]["descriptors"][()].T
        assert features.descriptors is not None and np.abs(features.descriptors - given).max() < 1e-3
        assert (features.width, features.height) == SIZE


def test_indices_of_a_match_name_the_same_points(seen: Seen, collection: library.Collection) -> None:
    for box in (None, (150.0, 100.0, 450.0, 400.0)):
        match = collection.match("a/1.png", "a/2.png", box=box)
        assert match.inliers > 20 and len(match.indices) == match.inliers
        assert same_points(seen, "a/1.png", "a/2.png", match.indices).mean() > 0.8
        drawn = np.abs(match.query_ellipses[:, :2] - seen.keypoints["a/1.png"][match.indices[:, 0]])
        assert drawn.max() <= 640 / 2047 and (match.indices >= 0).all()


def test_pairs_are_of_one_object(seen: Seen, collection: library.Collection, tmp_path: Path) -> None:
    verified = list(collection.pairs(verified=True, workers=1))
    assert verified == sorted(set(verified)) and all(one[0] == other[0] for one, other in verified)
    assert {(f"a/{one}.png", f"a/{one + 1}.png") for one in range(4)} < set(verified)
    best = collection.pairs(1, workers=1)
    assert list(collection.pairs(1, workers=2)) == list(best)
    assert {name for pair in best for name in pair} == set(seen.keypoints) and len(best) <= len(seen.keypoints)
    path = best.save(tmp_path / "pairs.txt")
    assert [tuple(line.split(" ")) for line in path.read_text().splitlines()] == list(best)
    answer = collection.search("a/0.png")
    assert answer.to_pairs() == [("a/0.png", result.name) for result in answer]
    with pytest.raises(library.CairnError, match="at least"):
        collection.pairs(0)


def test_a_pair_that_is_no_match_is_left_out(seen: Seen, tmp_path: Path) -> None:
    with library.create(tmp_path / "own.cairn", features=seen.features, photos=seen.photos, words=60) as collection:
        collection.add(seen.photos, workers=1)
        collection.reject("a/0.png", ["a/1.png"])
        collection.hide(["b/2.png"])
        for verified in (False, True):
            pairs = list(collection.pairs(verified=verified, workers=1))
            assert ("a/0.png", "a/1.png") not in pairs and ("a/0.png", "a/2.png") in pairs
            assert "b/2.png" not in {name for pair in pairs for name in pair}


def test_colmaps_database_has_the_matches_and_the_geometry(
    seen: Seen, collection: library.Collection, tmp_path: Path
) -> None:
    pairs = collection.pairs(verified=True, workers=1)
    path = pairs.save_colmap(tmp_path / "database.db")
    with sqlite3.connect(path) as database:
        names = dict(database.execute("SELECT image_id, name FROM images").fetchall())
        for number, rows, columns, data in database.execute("SELECT * FROM keypoints"):
            given = seen.keypoints[names[number]] + np.float32(0.5)  # COLMAP counts from the corner of the pixel
            assert (rows, columns) == given.shape and np.array_equal(
                np.frombuffer(data, np.float32).reshape(-1, 2), given
            )
        assert {row[1:4] for row in database.execute("SELECT * FROM cameras")} == {(2, *SIZE)}
        geometry = {
            number: (np.frombuffer(data, np.uint32).reshape(rows, 2), config, np.frombuffer(matrix).reshape(3, 3))
            for number, rows, data, config, matrix in database.execute(
                "SELECT pair_id, rows, data, config, F FROM two_view_geometries"
            )
        }
        matches = {
            number: np.frombuffer(data, np.uint32).reshape(rows, 2)
            for number, rows, data in database.execute("SELECT pair_id, rows, data FROM matches")
        }
    assert {tuple(names[one] for one in divmod(number, 2_147_483_647)) for number in matches} == set(pairs)
    assert geometry.keys() == matches.keys()
    for number, (inliers, config, matrix) in geometry.items():
        one, other = (names[image] for image in divmod(number, 2_147_483_647))
        assert same_points(seen, one, other, matches[number]).mean() > 0.9
        assert same_points(seen, one, other, inliers).mean() > 0.97 and len(inliers) > 100 and config == 3
        assert {tuple(row) for row in inliers.tolist()} <= {tuple(row) for row in matches[number].tolist()}
        # All points that both see lie on the lines of the matrix, as they do by the cameras.
        common = np.intersect1d(seen.points[one], seen.points[other])[1:]
        first, second = (
            seen.keypoints[name][[np.flatnonzero(seen.points[name] == point)[0] for point in common]]
            for name in (one, other)
        )
        assert off_lines(seen.fundamental(one, other), first, second).max() < CLOSE
        assert np.median(off_lines(matrix, first + 0.5, second + 0.5)) < 10 * CLOSE


def test_hlocs_file_has_features_and_matches(
    seen: Seen, collection: library.Collection, cairn: Cairn, tmp_path: Path
) -> None:
    path, listed = tmp_path / "matches.h5", tmp_path / "pairs.txt"
    ran = cairn("pairs", collection.folder, "--top", 2, "--h5", path, "--out", listed, "--json")
    pairs = [tuple(pair) for pair in ran.json["pairs"]]
    assert pairs == [tuple(line.split()) for line in listed.read_text().splitlines()] and ran.json["h5"] == str(path)
    with h5py.File(path) as file:
        for name in {name for pair in pairs for name in pair}:
            assert np.array_equal(file[name]["keypoints"], seen.keypoints[name])
            assert file[name]["descriptors"].shape == (32, len(seen.keypoints[name]))
        for one, other in pairs:
            group = file[one.replace("/", "-")][other.replace("/", "-")]
            matches, scores = group["matches0"][()], group["matching_scores0"][()]
            assert len(matches) == len(scores) == len(seen.keypoints[one])
            assert ((matches >= 0) == (scores > 0)).all()
            if one[0] == other[0]:
                sure = np.flatnonzero(scores == 1)
                assert same_points(seen, one, other, np.column_stack([sure, matches[sure]])).mean() > 0.97
    assert "already exists" in cairn("pairs", collection.folder, "--h5", path).refused()


def test_features_of_cairn_are_where_it_detected_them(indexed: Indexed, cairn: Cairn, tmp_path: Path) -> None:
    path = tmp_path / "database.db"
    ran = cairn("pairs", indexed.folder, "--verified", "--colmap", path, "--workers", 1, "--json")
    one, other = next(pair for pair in ran.json["pairs"] if {Path(name).stem for name in pair} <= indexed.views.keys())
    with library.open(indexed.folder) as collection, sqlite3.connect(path) as database:
        names = {name: number for number, name in database.execute("SELECT image_id, name FROM images")}
        features = [collection.features(name) for name in (one, other)]
        number = names[one] * 2_147_483_647 + names[other]
        inliers, config, matrix = database.execute(
            "SELECT data, config, H FROM two_view_geometries WHERE pair_id = ?", (number,)
        ).fetchone()
    assert config == 6
    rows = np.frombuffer(inliers, np.uint32).reshape(-1, 2).T
    places = [side.keypoints[some] for side, some in zip(features, rows, strict=True)]
    true = indexed.homography(Path(one).stem, Path(other).stem)
    for plane, shift in ((true, 0.0), (np.frombuffer(matrix).reshape(3, 3), 0.5)):
        mapped = np.column_stack([places[0] + shift, np.ones(len(places[0]))]) @ plane.T
        assert np.median(np.abs(mapped[:, :2] / mapped[:, 2:] - places[1] - shift)) < 2


def test_photos_of_an_earlier_version_have_their_keypoints_roughly(
    seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their segments have no keypoints, and neither has one that they are merged into."""
    with library.create(tmp_path / "own.cairn", features=seen.features, photos=seen.photos, words=60) as collection:
        with monkeypatch.context() as patch:
            plain = extractor.features_of
            patch.setattr(extractor, "features_of", lambda *given: replace(plain(*given), keypoints=None))
            collection.add(seen.photos, exclude=["a"], workers=1)
        collection.add(seen.photos, include=["a"], workers=1)
        for rough, exact in ((["b/0.png"], ["a/0.png"]), (["b/0.png", "a/0.png"], [])):
            for name in exact:
                assert np.array_equal(collection.features(name).keypoints, seen.keypoints[name])
            for name in rough:
                features = collection.features(name)
                assert features.rows is None and len(features) == len(seen.keypoints[name])
                near = np.abs(features.keypoints[:, None] - seen.keypoints[name][None]).max(axis=2).min(axis=1)
                assert near.max() < 640 / 2047
            collection.compact()
