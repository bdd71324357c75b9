"""Features of another program, from its files to answers: indexed, searched, added to, checked, mended."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path

import cv2
import numpy as np
import pytest
import skimage.data
from PIL import Image

import cairn as library
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.web.jobs import SearchJobs, ServedCollection
from retrieval.web.pool.workers import Refused
from retrieval.web.search_models import QueryPhoto, SearchRequest
from tests.conftest import Ran
from tests.support.paths import ROOT

Cairn = Callable[..., Ran]
EXAMPLE = ROOT / "docs" / "examples" / "own_features.py"
BOX = (120.0, 80.0, 330.0, 260.0)  # in the first view of each object
VIEWS = 3


@dataclass(frozen=True)
class Scenes:
    """Photos of two objects, seen from several places, and what another program made of them."""

    photos: Path
    features: Path  # of which a folder for each kind
    maps: dict[str, np.ndarray]  # by the photo's name: from the pixels of the first view of its object


def describe(photos: Path, features: Path, *options: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", [str(EXAMPLE), str(photos), str(features), *options])
        run_path(str(EXAMPLE), run_name="__main__")
    return features


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    folder = tmp_path_factory.mktemp("own")
    maps: dict[str, np.ndarray] = {}
    for name, image in (("cat", skimage.data.chelsea()), ("coffee", skimage.data.coffee())):
        photo = cv2.resize(np.ascontiguousarray(image[:, :, ::-1]), (440, 330), interpolation=cv2.INTER_AREA)
        for view in range(VIEWS):
            corners = np.float32([[0, 0], [439, 0], [439, 329], [0, 329]])
            moved = corners * (1, 0.9, 0.8)[view] + np.float32([[0, 0], [-9, 14], [-25, -8], [6, 3]]) * view + 10 * view
            maps[f"{name}/{view}.png"] = matrix = cv2.getPerspectiveTransform(corners, moved.astype(np.float32))
            path = folder / "photos" / name / f"{view}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), cv2.warpPerspective(photo, matrix, (460, 350), borderMode=cv2.BORDER_REFLECT_101))
    describe(folder / "photos", folder / "features" / "sift")
    return Scenes(folder / "photos", folder / "features", maps)


def make(cairn: Cairn, collection: Path, scenes: Scenes, kind: str, *options: object) -> Path:
    ran = cairn(
        *("index", collection, scenes.photos, "--features", scenes.features / kind),
        *("--words", 200, "--workers", 1, "--json", *options),
    )
    assert (ran.json["failed"], ran.json["added"]) == ([], 2 * VIEWS)
    return collection


def check_answer(scenes: Scenes, result: dict[str, object], most: float) -> None:
    """The views of the object come first, and the corners of the box lie in them where they are."""
    results = result["results"]
    assert isinstance(results, list)
    assert {entry["name"] for entry in results[:VIEWS]} == {f"coffee/{view}.png" for view in range(VIEWS)}
    x0, y0, x1, y1 = BOX
    corners = np.array([[[x0, y0]], [[x1, y0]], [[x1, y1]], [[x0, y1]]])
    for entry in results[:VIEWS]:
        found = cv2.perspectiveTransform(corners, np.array(entry["homography"]))
        assert np.abs(found - cv2.perspectiveTransform(corners, scenes.maps[entry["name"]])).max() < most
    assert all(entry["homography"] is None for entry in results[VIEWS:])


def test_objects_are_found_where_they_are(scenes: Scenes, cairn: Cairn, tmp_path: Path) -> None:
    collection = make(cairn, tmp_path / "own.cairn", scenes, "sift", "--keep-descriptors")
    facts = cairn("info", collection, "--json").json
    assert (facts["descriptor"]["name"], facts["descriptor"]["dim"]) == ("foreign:sift:128", 128)
    reported = cairn("info", collection).out
    assert "foreign:sift:128" in reported and "places, scales and angles, another program's" in reported
    for engine in ("tf-idf-sp", "raw"):
        result = cairn("query", collection, "coffee/0.png", "--box", *BOX, "--engine", engine, "--json").json
        check_answer(scenes, result, most=5)
        assert not result["turned"]
    photo = scenes.photos / "coffee" / "0.png"
    soft = cairn("query", collection, photo, "--soft", 3, "--json").json
    assert {entry["name"] for entry in soft["results"][:VIEWS]} == {f"coffee/{view}.png" for view in range(VIEWS)}
    assert cairn("check", collection).code == 0
    assert cairn("retrain", collection, "--words", 150, "--json").json["words"] == {"before": 200, "after": 150}


def test_features_of_a_query_count_for_that_query(scenes: Scenes, tmp_path: Path) -> None:
    """Whatever was given with another search of the same file."""
    features = scenes.features / "sift"
    given = {path.parent.name: path for path in features.rglob("*") if path.name.startswith("0.") and path.is_file()}
    new = tmp_path / "new.png"
    Image.new("RGB", (460, 350)).save(new)
    with library.create(tmp_path / "own.cairn", features=features, photos=scenes.photos, words=200) as collection:
        collection.add(scenes.photos, workers=1)
        for name in ("coffee", "cat", "coffee"):
            assert collection.search(new, features=given[name])[0].name.startswith(name)
        with pytest.raises(library.PhotoUnusable, match="there are no features of it in"):
            collection.search(new)
        assert collection.search("cat/1.png").found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["places", "orb"])
def test_places_alone_and_bits_find_them_too(kind: str, scenes: Scenes, cairn: Cairn, tmp_path: Path) -> None:
    describe(scenes.photos, scenes.features / kind, *(["--places"] if kind == "places" else ["--kind", "orb"]))
    collection = make(cairn, tmp_path / "own.cairn", scenes, kind, "--keep-descriptors")
    name = "foreign:orb:256:bits" if kind == "orb" else "foreign:places:128"
    assert cairn("info", collection, "--json").json["descriptor"]["name"] == name
    for engine in ("tf-idf-sp", "signatures-sp", "asmk-sp", "raw"):
        requested = ("query", collection, "coffee/0.png", "--box", *BOX, "--engine", engine, "--json")
        check_answer(scenes, cairn(*requested).json, most=8)
    expanded = cairn("query", collection, "coffee/0.png", "--engine", "tf-idf-sp", "--expand", "average", "--json").json
    assert {entry["name"] for entry in expanded["results"][:VIEWS]} == {f"coffee/{view}.png" for view in range(VIEWS)}
    assert cairn("group", collection, "--json").json["groups"] == 2


@pytest.mark.slow
def test_a_photo_from_elsewhere_is_asked_with_by_its_features(scenes: Scenes, cairn: Cairn, tmp_path: Path) -> None:
    collection = make(cairn, tmp_path / "own.cairn", scenes, "sift")
    photo = scenes.photos / "coffee" / "0.png"
    elsewhere = tmp_path / "elsewhere" / "other.png"
    elsewhere.parent.mkdir()
    cv2.imwrite(str(elsewhere), cv2.imread(str(photo))[:300])  # another file, and some of the pixels
    assert "--features" in cairn("query", collection, elsewhere).refused()
    described = describe(elsewhere.parent, tmp_path / "described") / "other.npz"
    for where in (described, described.parent):
        result = cairn("query", collection, elsewhere, "--box", *BOX, "--features", where, "--json").json
        check_answer(scenes, result, most=5)
    sift = scenes.features / "sift"
    assert "no features of it" in cairn("query", collection, elsewhere, "--features", sift).refused()
    assert "one photo" in cairn("query", collection, elsewhere, photo, "--features", described).refused()
    orb = describe(elsewhere.parent, tmp_path / "orb", "--kind", "orb") / "other.npz"
    assert "do not fit" in cairn("query", collection, elsewhere, "--features", orb).refused()

    # In the browser: a box in a photo of the collection, a match explained, and an upload, which nothing can describe.
    jobs = SearchJobs(ServedCollection(collection))
    number = next(
        row.number for row in jobs._opened().collection.catalogue.read(all_indexed) if row.name == "coffee/0.png"
    )
    requested = SearchRequest(queries=[QueryPhoto(photo=number, box=list(BOX))], engine="tf-idf-sp").model_dump(
        mode="json"
    )
    check_answer(scenes, jobs.do("search", requested)[0], most=5)
    other = next(
        row.number for row in jobs._opened().collection.catalogue.read(all_indexed) if row.name == "coffee/1.png"
    )
    match = jobs.do("match", requested | {"photo": other, "turn": None, "expand": "none"})[0]
    assert len(match["matches"]) == match["inliers"] > 20
    upload = SearchRequest(queries=[QueryPhoto(upload=0)]).model_dump(mode="json")
    upload["queries"][0] |= {"path": str(elsewhere), "name": "other.png"}
    with pytest.raises(Refused, match=r"only that can describe a new one\. Search with a photo of the collection"):
        jobs.do("search", upload)
    jobs.let_go()

    own = tmp_path / "cairn.cairn"
    cairn("index", own, photo, "--words", 20, "--max-features", 100, "--workers", 1)
    assert "own features" in cairn("query", own, elsewhere, "--features", described).refused()
    assert "own features" in cairn("index", own, scenes.photos, "--features", sift).refused()


@pytest.mark.slow
def test_photos_fail_one_at_a_time_and_other_features_are_refused_at_once(
    scenes: Scenes, cairn: Cairn, tmp_path: Path
) -> None:
    sift, features, collection = scenes.features / "sift", tmp_path / "sift", tmp_path / "own.cairn"
    shutil.copytree(sift, features)
    first, second, third, *_ = sorted(features.rglob("*.npz"))
    first.unlink()
    second.write_bytes(b"PK")
    arrays = dict(np.load(third))
    np.savez(third, **arrays | {"keypoints": arrays["keypoints"] + np.float32([4000, 0, 0, 0])})
    requested = ("index", collection, scenes.photos, "--features", features, "--words", 100, "--workers", 1, "--json")
    ran = cairn(*requested, "--strict")
    assert (ran.code, ran.json["added"]) == (1, 2 * VIEWS - 3)
    reasons = {Path(entry["path"]).stem: entry["reason"] for entry in ran.json["failed"]}
    for path, reason in ((first, "no features of it"), (second, "damaged"), (third, "outside the photo")):
        assert reason in reasons[path.stem]

    np.savez(first, **arrays | {"descriptors": arrays["descriptors"][:, :64]})
    refused = cairn(*requested).refused()  # at once, and nothing is lost
    assert "64 dimensions" in refused and str(first.relative_to(features).with_suffix(".png")) in refused
    for path in (first, second, third):
        shutil.copy(sift / path.relative_to(features), path)
    assert "come from another program" in cairn("index", collection, scenes.photos).refused()
    mended = cairn(*requested).json
    assert (mended["added"], mended["failed"], mended["images"]) == (3, [], 2 * VIEWS)
    assert cairn("index", collection, scenes.photos, "--json").json["unchanged"] == 2 * VIEWS  # nothing is new

    # A copy of a photo, which has fewer features of its own.
    shutil.copytree(scenes.photos, tmp_path / "photos")
    shutil.copy(tmp_path / "photos" / "coffee" / "0.png", tmp_path / "photos" / "coffee" / "copy.png")
    np.savez(
        features / "coffee" / "copy.npz", keypoints=arrays["keypoints"][:50], descriptors=arrays["descriptors"][:50]
    )
    copies = tmp_path / "copies.cairn"
    cairn("index", copies, tmp_path / "photos", "--features", features, "--words", 100, "--workers", 1)
    with Collection.open(copies) as opened:
        counts = {row.name: row.features for row in opened.catalogue.read(all_indexed)}
        images = opened.index.images
        assert counts["coffee/copy.png"] == 50 < counts["coffee/0.png"]
        assert all(len(images.features(row.number).words) == row.features for row in opened.catalogue.read(all_indexed))
    again = ("--features", features, "--workers", 1)
    cairn("retrain", copies, "--words", 90, *again)
    (geometry,) = copies.glob("segments/*/column_geometry.npy")
    geometry.write_bytes(geometry.read_bytes()[:-100])
    assert cairn("repair", copies, *again).code == 0
    with Collection.open(copies) as opened:
        assert {
            row.name: len(opened.index.images.features(row.number).words) for row in opened.catalogue.read(all_indexed)
        } == counts

    for option in (("--detector", "hessian-affine"), ("--rotated",), ("--max-side", "800"), ("--cluster", "local:1")):
        assert "--features cannot be used with" in cairn(*requested, *option).refused()
    assert "calls its descriptor" in cairn(*requested, "--features-name", "net").refused()
    assert "compares descriptors otherwise" in cairn(*requested, "--binary").refused()
    assert "names no descriptor" in cairn("index", tmp_path / "new", *requested[2:], "--features-name", "a b").refused()
    assert not (tmp_path / "new").exists()
    assert "need --features" in cairn("index", collection, scenes.photos, "--binary").refused()
    one = next(sift.rglob("*.npz"))
    assert "features of one photo" in cairn("index", tmp_path / "new", scenes.photos, "--features", one).refused()
    assert "nowhere" in cairn("index", collection, scenes.photos, "--features", tmp_path / "nowhere").refused()


@pytest.mark.slow
def test_a_damaged_segment_needs_the_features_again(scenes: Scenes, cairn: Cairn, tmp_path: Path) -> None:
    collection, sift = make(cairn, tmp_path / "own.cairn", scenes, "sift"), scenes.features / "sift"
    before = cairn("info", collection, "--json").json
    (geometry,) = collection.glob("segments/*/column_geometry.npy")
    geometry.write_bytes(geometry.read_bytes()[:-100])
    assert cairn("check", collection).code == 1
    assert "come from another program" in cairn("repair", collection).refused()
    fewer = tmp_path / "fewer" / "cat"
    fewer.mkdir(parents=True)
    for path in sorted((sift / "cat").iterdir()):  # of other features than those that were indexed
        arrays = dict(np.load(path))
        np.savez(
            fewer / path.name, **{name: some[5:] if some.shape[:1] > (5,) else some for name, some in arrays.items()}
        )
    assert "such as" in cairn("repair", collection, "--features", fewer.parent, "--workers", 1).refused()
    assert cairn("repair", collection, "--features", sift, "--workers", 1).code == 0
    assert cairn("check", collection).code == 0
    after = cairn("info", collection, "--json").json
    assert [after[key] for key in ("images", "features", "words")] == [
        before[key] for key in ("images", "features", "words")
    ]
    assert "--features" in cairn("retrain", collection).refused()
    retrained = cairn("retrain", collection, "--features", sift, "--words", 150, "--workers", 1, "--json")
    assert retrained.json["words"]["after"] == 150
    with Collection.open(collection) as opened:
        assert opened.extractor.is_foreign and not opened.extractor.is_ready
