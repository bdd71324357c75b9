"""Impressions in one frame, by Python and on the command line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

import cairn as cairn_library
from retrieval.impressions.pictures import FIRST, SECOND
from retrieval.library.impressions import AlignedPhotos, compare_aligned
from tests.conftest import Indexed, Ran
from tests.retrieval.impressions.test_clock import BREAKS
from tests.retrieval.library.test_print_clock import aligned  # noqa: F401
from tests.support.printed_blocks import age_block, cut_alike, cut_block, impression


@pytest.fixture(scope="module")
def opened(indexed: Indexed) -> Iterator[cairn_library.Collection]:
    """The small collection."""
    with cairn_library.open(indexed.folder) as collection:
        yield collection


def test_photos_of_one_print_lie_in_one_frame(
    indexed: Indexed, opened: cairn_library.Collection, tmp_path: Path
) -> None:
    found = opened.impressions(["page_001.jpg", "page_003.jpg", "cat_001.jpg", "page_003.jpg"])
    first, second = found.photos
    assert (first.name, second.name, first.inliers) == ("page_001.jpg", "page_003.jpg", None)
    assert found.left_out == [{"name": "cat_001.jpg", "reason": "it does not match page_001.jpg"}]
    width, height = found.size
    frame = np.array([[[0.2 * width, 0.2 * height], [0.8 * width, 0.3 * height], [0.5 * width, 0.8 * height]]])
    places = [cv2.perspectiveTransform(frame, one.homography) for one in (first, second)]
    true = cv2.perspectiveTransform(places[0], indexed.homography("page_001", "page_003"))
    assert np.abs(places[1] - true).max() < 3 + second.bend
    written = found.save(tmp_path / "new" / "out")
    assert [path.name for path in written] == [
        "aligned-1.png",
        "aligned-2.png",
        "overlay-2.png",
        "residual-2.png",
        "impressions.json",
    ]
    for path in written[:-1]:
        assert Image.open(path).size == found.size
    assert json.loads(written[-1].read_text()) == json.loads(json.dumps(found.to_dict()))


def test_a_box_is_the_frame(opened: cairn_library.Collection) -> None:
    box = (40.0, 40.0, 340.0, 240.0)
    found = opened.impressions(["page_003.jpg"], "page_001.jpg", box)
    assert found.box == box and found.photos[1].pixels.shape == (200, 300, 3) and found.size == (300, 200)


def test_any_two_are_laid_over_each_other(aligned: AlignedPhotos) -> None:  # noqa: F811
    found = compare_aligned(aligned)
    assert [(one.first, one.second) for one in found.pairs][-1] == ("old.png", "middle.png")
    x, y = BREAKS[1]
    at = y, x + 7
    assert tuple(found.residual(2, 1)[at]) == FIRST and tuple(found.residual(1, 2)[at]) == SECOND
    assert found.overlay(2, 1)[at] == pytest.approx(FIRST, abs=40) and (found.residual(1)[at] == SECOND).all()
    for wrong in ((1, 1), (3, 0), (0, -1)):
        with pytest.raises(cairn_library.CairnError, match="lay over each other"):
            found.overlay(*wrong)


def test_the_command_and_requests_that_cannot_be_met(
    opened: cairn_library.Collection, cairn: Callable[..., Ran], tmp_path: Path
) -> None:
    for photos, said in (
        (["page_001.jpg", "page_001.jpg"], "at least two photos"),
        ([], "at least two photos"),
        (["page_001.jpg", "nowhere.jpg"], "nowhere.jpg"),
        (["page_001.jpg", "cat_001.jpg"], "None of the photos matches page_001.jpg"),
    ):
        with pytest.raises(cairn_library.CairnError, match=said):
            opened.impressions(photos)
    with pytest.raises(cairn_library.CairnError, match="from 0 to 64"):
        opened.impressions(["page_001.jpg", "page_003.jpg"], tolerance=float("nan"))
    (tmp_path / "file").touch()
    with pytest.raises(cairn_library.CairnError, match="choose another folder"):
        opened.impressions(["page_003.jpg"], "page_001.jpg", (40, 40, 340, 240)).save(tmp_path / "file")
    box = ("--box", 40, 40, 340, 240, "--out", tmp_path / "out")
    ran = cairn("impressions", opened.folder, "page_001.jpg", "page_003.jpg", "cat_001.jpg", *box)
    assert ran.code == 0 and "page_001.jpg and page_003.jpg: " in ran.out and "Written: 5 files" in ran.out
    assert "cat_001.jpg is left out: it does not match page_001.jpg." in ran.out
    refused = cairn("impressions", opened.folder, "page_001.jpg", "cat_001.jpg", "--json").refused()
    assert "choose another --reference, or a --box in it" in refused


@pytest.mark.slow
def test_wear_is_told_from_a_block_cut_alike(tmp_path: Path) -> None:
    block = cut_block(1)
    states = {"old": block, "worn": age_block(block, 1), "copy": cut_alike(block, 1, 1.5)}
    for seed, (name, strokes) in enumerate(states.items(), start=101):
        Image.fromarray(impression(strokes, seed)[0]).save(tmp_path / f"{name}.png")
    with cairn_library.create(tmp_path / "c.cairn") as collection:
        collection.add(tmp_path, workers=1)
        found = collection.impressions(["old.png", "worn.png", "copy.png"])
    reported = {(one.first, one.second): one.verdict for one in found.pairs}
    assert reported == {
        ("old.png", "worn.png"): "one block",
        ("old.png", "copy.png"): "cut alike",
        ("worn.png", "copy.png"): "cut alike",
    }
