"""The demo collection: reproducible by seed, with correct ground truth and homographies."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from eval.demo.scenes import HEIGHT, WIDTH, photograph
from eval.demo.synthetic import _OBJECTS, DemoCollection, build_demo_collection
from index.errors import CairnError
from learning.labels.ground_truth import read_ground_truth


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoCollection:
    with pytest.MonkeyPatch.context() as patch:  # two objects are enough, and quicker
        chosen = ("galaxies", "page")
        patch.setattr("eval.demo.synthetic._OBJECTS", tuple(o for o in _OBJECTS if o[0] in chosen))
        return build_demo_collection(tmp_path_factory.mktemp("demo"), seed=3, distractors=2)


def _grey(picture: np.ndarray) -> np.ndarray:
    return cv2.cvtColor(np.ascontiguousarray(picture), cv2.COLOR_RGB2GRAY).astype(np.float32)


def _fit(warped: np.ndarray, photo: np.ndarray, seen: np.ndarray) -> float:
    """Multiple correlation of a view with its warped photograph under light that changes linearly across the view."""
    y, x = (values / 500 for values in np.nonzero(seen))
    source, target = warped[seen] / 255, photo[seen] - photo[seen].mean()
    design = np.column_stack([source, source * x, source * y, x, y, np.ones_like(x)])
    residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(np.sqrt(1 - residual.var() / target.var()))


@pytest.mark.slow
def test_a_photo_depends_on_the_seed_and_itself_alone(
    demo: DemoCollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.demo.synthetic._OBJECTS", tuple(o for o in _OBJECTS if o[0] == "galaxies"))
    same = build_demo_collection(tmp_path / "same", seed=3, distractors=1)
    other = build_demo_collection(tmp_path / "other", seed=4, views=3, distractors=1)
    assert same.photos == 8 + 1
    for path in [*same.images.iterdir(), *same.gt.iterdir()]:
        assert path.read_bytes() == (demo.images.parent / path.parent.name / path.name).read_bytes(), path.name
    for path in other.images.iterdir():
        assert path.read_bytes() != (demo.images / path.name).read_bytes(), path.name


@pytest.mark.slow
def test_homographies_map_the_photograph_onto_each_view(demo: DemoCollection) -> None:
    record = json.loads(demo.homographies.read_text())
    assert len(record["views"]) == 8 * len(demo.objects)
    for stem, view in record["views"].items():
        if view["recipe"]["occluders"]:
            continue  # occluders do not fit
        thing = record["objects"][view["object"]]
        x0, y0, x1, y1 = thing["box"]
        source = _grey(photograph(thing["file"]))
        with Image.open(demo.images / f"{stem}.jpg") as picture:
            photo = _grey(np.asarray(picture))
        homography = np.array(view["homography"])
        # Blurred to compare positions, not sharpness.
        source = cv2.GaussianBlur(source, (0, 0), max(source.shape) / 512)
        inside = np.zeros(source.shape, np.uint8)
        inside[y0 + 8 : y1 - 8, x0 + 8 : x1 - 8] = 1
        warped = cv2.warpPerspective(source, homography, (WIDTH, HEIGHT))
        seen = cv2.warpPerspective(inside, homography, (WIDTH, HEIGHT), flags=cv2.INTER_NEAREST) > 0
        aligned = _fit(warped, photo, seen)
        assert aligned > 0.85, stem
        # And not nearly so, but exactly: any shift by 3 pixels fits worse.
        for shift in ((3, 0), (-3, 0), (0, 3), (0, -3)):
            assert _fit(warped, np.roll(photo, shift, axis=(0, 1)), seen) < aligned, (stem, shift)


def test_ground_truth_is_complete_and_honest(demo: DemoCollection) -> None:
    stems = {path.stem for path in demo.images.glob("*.jpg")}
    assert len(stems) == demo.photos == 8 * len(demo.objects) + demo.distractors
    record = json.loads(demo.homographies.read_text())
    queries = read_ground_truth(demo.gt)
    assert len(queries) == demo.queries == 2 * len(demo.objects)
    for query in queries:
        name = query.name.rsplit("_", 1)[0]
        views = {stem for stem in stems if stem.rsplit("_", 1)[0] == name}
        listed = [*query.good, *query.ok, *query.junk]
        assert set(listed) == views
        assert len(listed) == len(views)
        assert set(query.junk) == {query.stem}
        assert all(record["views"][stem]["visible"] >= 0.6 for stem in query.good)

        x0, y0, x1, y1 = query.box
        assert 0 <= x0 < x1 <= WIDTH - 1
        assert 0 <= y0 < y1 <= HEIGHT - 1
        bx0, by0, bx1, by1 = record["objects"][name]["box"]
        corners = np.array([[bx0, by0, 1], [bx1, by0, 1], [bx1, by1, 1], [bx0, by1, 1]], float)
        seen = corners @ np.array(record["views"][query.stem]["homography"]).T
        seen = (seen[:, :2] / seen[:, 2:]).clip(0, [WIDTH - 1, HEIGHT - 1])
        np.testing.assert_allclose([x0, y0, x1, y1], [*seen.min(axis=0), *seen.max(axis=0)], atol=1.5)


def test_what_is_hard_to_see_is_ok_and_not_hidden(demo: DemoCollection) -> None:
    views = json.loads(demo.homographies.read_text())["views"]
    assert all(view["visible"] >= 0.3 for view in views.values())
    assert all(view["visible"] <= 0.7 for view in views.values() if view["recipe"]["occluders"])
    ok = {stem for query in read_ground_truth(demo.gt) for stem in query.ok}
    assert ok == {stem for stem, view in views.items() if view["visible"] < 0.6 or view["slant"] > 45}
    assert len(ok) >= len(demo.objects)


def test_other_photos_are_never_mixed_in(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.jpg").write_bytes(b"")
    with pytest.raises(CairnError, match="choose an empty folder"):
        build_demo_collection(tmp_path)
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["mine.jpg"]
