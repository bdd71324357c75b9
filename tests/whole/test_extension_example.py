"""The example of an extension: a whole extractor that runs ONNX networks."""

import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import cairn as library
from index.errors import CairnError
from index.extensions import ExtensionMissing
from retrieval.collection.options import read_options
from retrieval.library.testing import check_extractor, check_global_descriptor
from tests.conftest import Indexed, Ran
from tests.support.browser import chromium as chromium
from tests.support.browser import draw_box, visiting, wait_for_results
from tests.support.live import serving
from tests.support.onnx_models import aliked_like, disk_like, superpoint_like, text_encoder, write_model
from tests.support.paths import ROOT
from tests.support.toy_extensions import forget, install

EXAMPLE = ROOT / "docs" / "examples" / "extension"
PLACE = "cairn_onnx_features:OnnxFeatures"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The package as pip installs it, and a model for it."""
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    monkeypatch.syspath_prepend(str(EXAMPLE))
    install(monkeypatch, tmp_path / "site", declared, version="0.1.0")
    model = superpoint_like(tmp_path / "tiny.onnx")
    monkeypatch.setenv("CAIRN_ONNX_MODEL", str(model))
    yield model
    monkeypatch.undo()
    forget(monkeypatch)
    for name in ("cairn_onnx_features", "cairn_onnx_global"):
        sys.modules.pop(name, None)


@pytest.fixture
def photos(indexed: Indexed, tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("coffee_001", "coffee_002", "cat_001", "page_001"):
        (folder / f"{name}.jpg").write_bytes((indexed.photos / f"{name}.jpg").read_bytes())
    return folder


@pytest.mark.parametrize(("make", "colour"), [(superpoint_like, False), (aliked_like, True), (disk_like, True)])
def test_it_keeps_the_contract_with_networks_of_several_shapes(
    example: Path, tmp_path: Path, make: Callable[[Path], Path], colour: bool
) -> None:
    from cairn_onnx_features import OnnxFeatures

    check_extractor(OnnxFeatures(make(tmp_path / "model.onnx"), colour))


def test_keypoints_and_rows_that_a_network_gives_are_taken(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cairn_onnx_features

    made = cairn_onnx_features.OnnxFeatures(example)
    rows = np.eye(3, 8, dtype=np.float32)
    points = np.array([[10, 20], [30, 5], [200, 5]], np.float32)  # the last is where the image was filled up
    outputs = [points[None], rows[None], np.array([[0.1, 0.9, 0.5]], np.float32)]
    monkeypatch.setattr(cairn_onnx_features, "_load", lambda path: lambda blob: outputs)
    found = made.extract(np.zeros((40, 60), np.uint8))
    np.testing.assert_array_equal(found["keypoints"], points[[1, 0]])
    np.testing.assert_array_equal(found["descriptors"], rows[[1, 0]])
    # ALIKED gives parts of what it sees, which is 64 by 64 here.
    outputs = [np.array([[-1, -1], [0, 0.2]], np.float32), rows[:2], np.ones(2, np.float32)]
    np.testing.assert_allclose(made.extract(np.zeros((41, 61), np.uint8))["keypoints"], [[0, 0], [31.5, 37.8]])


def test_a_collection_made_with_it_is_searched_by_photos_files_and_boxes(
    example: Path, photos: Path, tmp_path: Path, cairn: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "c.cairn"
    reported = cairn("index", made, photos, "--features-from", "onnx", "--words", 200, "--workers", 1, "--json").json
    assert (reported["added"], reported["failed"]) == (4, [])
    kept = read_options(made / "collection.toml")
    assert kept.extensions == (f"{PLACE} 0.1.0",) and kept.features.extractor == PLACE
    assert kept.descriptor == "foreign:tiny:32"
    # A photo from elsewhere: a part of one, a quarter as large.
    whole = cv2.imread(str(photos / "coffee_001.jpg"))
    cv2.imwrite(str(tmp_path / "part.png"), whole[64:, 32:])
    for requested in (
        (tmp_path / "part.png",),
        (tmp_path / "part.png", "--box", 40, 40, 300, 300),
        ("coffee_001.jpg",),
    ):
        best = cairn("query", made, *requested, "--json").json["results"][0]
        assert best["name"] == "coffee_001.jpg" and best["inliers"] > 20
    found = np.array(cairn("query", made, tmp_path / "part.png", "--json").json["results"][0]["homography"])
    np.testing.assert_allclose(found[:2, 2], (32, 64), atol=1)
    with library.open(made) as collection:
        assert collection.search(whole[64:, 32:, ::-1]).results[0].name == "coffee_001.jpg"
    # What is there is not computed again, and new photos need no more words.
    cv2.imwrite(str(photos / "new.png"), whole[32:, :])
    assert cairn("index", made, photos, "--json").json["added"] == 1
    assert cairn("index", made, photos, "--features", photos).refused().endswith("leave out --features.")
    # Another model describes otherwise; the package may be gone.
    superpoint_like(example, 16)
    forget(monkeypatch)
    assert "its model or version differs" in cairn("query", made, tmp_path / "part.png").refused()
    monkeypatch.delenv("CAIRN_ONNX_MODEL")
    forget(monkeypatch)
    assert "cannot be loaded (KeyError: 'CAIRN_ONNX_MODEL')" in cairn("query", made, tmp_path / "part.png").refused()
    monkeypatch.undo()
    forget(monkeypatch)
    with pytest.raises(ExtensionMissing, match=f"the extractor '{PLACE} 0.1.0', which is neither installed"):
        library.open(made)


def test_photos_are_found_by_words_with_a_pair_of_encoders(
    example: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    tokenizers = pytest.importorskip("tokenizers")
    known = {"other": 0, "red": 1, "green": 2, "blue": 3}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="other"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    colours = np.eye(3).reshape(3, 3, 1, 1)
    monkeypatch.setenv("CAIRN_ONNX_GLOBAL", str(write_model(tmp_path / "i.onnx", {"mean": (colours, np.zeros(3), 1)})))
    monkeypatch.setenv("CAIRN_ONNX_TEXT", str(text_encoder(tmp_path / "t.onnx", np.vstack([np.zeros(3), np.eye(3)]))))
    for place, name in enumerate(("blue", "green", "red")):  # OpenCV writes BGR
        plain = np.zeros((64, 64, 3), np.uint8)
        plain[..., place] = 255
        cv2.imwrite(str(photos / f"{name}.png"), plain)
    from cairn_onnx_global import OnnxGlobal

    check_global_descriptor(OnnxGlobal())
    with library.create(tmp_path / "c.cairn", words=50, max_features=200) as collection:
        collection.add(photos, workers=1)
        collection.add_global_descriptors("onnx", workers=1)
        for name in ("red", "green", "blue"):
            assert collection.photos_like(f"a {name} door", where={"name": ".png"})[0][0].name == f"{name}.png"


@pytest.mark.slow
@pytest.mark.browser
def test_a_collection_made_with_it_is_searched_in_a_browser(
    example: Path, photos: Path, tmp_path: Path, chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{EXAMPLE}:{tmp_path / 'site'}:{ROOT}")  # of the server's processes
    with library.create(tmp_path / "c.cairn", features_from="onnx", words=200) as collection:
        collection.add(photos, workers=1)
    cv2.imwrite(str(tmp_path / "part.jpg"), cv2.imread(str(photos / "coffee_001.jpg"))[64:, 32:])
    with serving(tmp_path / "c.cairn", tmp_path / "cache") as address, visiting(chromium, address) as visit:
        page = visit.open("/search")
        page.locator("#upload").set_input_files(tmp_path / "part.jpg")
        page.wait_for_selector(".box-canvas")
        draw_box(page, (40, 40, 300, 300))
        page.locator("#run-box").click()
        assert wait_for_results(page)[0] == "coffee_001.jpg"


def test_an_extractor_that_fails_fails_its_photo_alone(photos: Path, tmp_path: Path) -> None:
    class Corners:
        name, dim, geometry, fingerprint = "corners", 4, "scales", "1"

        def extract(self, image: np.ndarray) -> dict[str, np.ndarray]:
            if image.shape[0] == image.shape[1]:
                raise RuntimeError("squares are not for me")
            y, x = np.mgrid[8 : image.shape[0] - 8 : 12, 8 : image.shape[1] - 8 : 12]
            points = np.stack([x.ravel(), y.ravel(), np.full(x.size, 6)], axis=1)
            around = [image[y + dy, x + dx].ravel() for dx, dy in ((-4, 0), (4, 0), (0, -4), (0, 4))]
            return {"keypoints": points, "descriptors": np.stack(around, axis=1) + np.float32(1)}

    cv2.imwrite(str(photos / "square.png"), np.zeros((64, 64), np.uint8))
    with library.create(tmp_path / "c.cairn", features_from=Corners(), words=20, max_features=300) as collection:
        added = collection.add(photos, workers=1)
        assert added.added == 4
        assert [one["reason"] for one in added.failed] == [
            "the extractor corners failed: 'RuntimeError: squares are not for me'"
        ]
        assert collection.info().features == 4 * 300
        assert collection.search("cat_001.jpg").results[0].name == "cat_001.jpg"
    with pytest.raises(CairnError, match="features_from brings its own descriptor: leave out descriptor"):
        library.create(tmp_path / "d.cairn", features_from=Corners(), descriptor="sift")


def test_it_is_short() -> None:
    for name in ("cairn_onnx_features.py", "cairn_onnx_global.py"):
        lines = (EXAMPLE / name).read_text(encoding="utf-8").splitlines()
        assert sum(bool(line.strip()) for line in lines) <= 60


def test_a_network_that_describes_photos_as_a_whole_ranks_photos_uploads_and_boxes(
    example: Path, photos: Path, tmp_path: Path, cairn: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_ONNX_GLOBAL", str(aliked_like(tmp_path / "whole.onnx")))
    monkeypatch.setenv("CAIRN_ONNX_SIDE", "64")
    from cairn_onnx_global import OnnxGlobal

    check_global_descriptor(OnnxGlobal())
    made = tmp_path / "c.cairn"
    with library.create(made, words=50, max_features=200) as collection:
        collection.add(photos, workers=1)
    assert "4 photos described" in cairn("global", made, "onnx", "--workers", 1).out
    assert "described by whole (cairn_onnx_global:OnnxGlobal)" in cairn("info", made).out
    cv2.imwrite(str(tmp_path / "small.png"), cv2.resize(cv2.imread(str(photos / "cat_001.jpg")), None, fx=0.5, fy=0.5))
    how = ("--global-descriptors", "alone", "--json")
    for requested in ((tmp_path / "small.png",), ("cat_001.jpg",), (tmp_path / "small.png", "--box", 5, 5, 300, 220)):
        assert cairn("query", made, *requested, *how).json["results"][0]["name"] == "cat_001.jpg"


@pytest.mark.slow
def test_pip_installs_it_beside_cairn_and_worker_processes_find_it(photos: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for file in EXAMPLE.glob("*.*"):
        (project / file.name).write_bytes(file.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", tmp_path / "site", project], check=True)
    model = superpoint_like(tmp_path / "tiny.onnx")
    environment = {"PYTHONPATH": f"{tmp_path / 'site'}:{ROOT}", "PATH": "/usr/bin", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "cairn", "index", tmp_path / "c.cairn", photos, "--features-from", "onnx"]
    ran = subprocess.run(
        [*command, "--words", "100", "--workers", "2"],
        env={**environment, "CAIRN_ONNX_MODEL": str(model)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0 and "4 added" in ran.stdout, ran.stderr
