from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from retrieval.photos.decoding import photo_of_image
from retrieval.regions.detection import detect_regions, mostly_in
from retrieval.regions.text_lines import text_mask
from tests.support.hostile import photo as photograph_of
from tests.support.printed_pages import photograph, print_page, typefaces

needs_fonts = pytest.mark.skipif(len(typefaces()) < 5, reason="the fonts of DejaVu and Liberation are not installed")


def _on_page(photo, matrix, box):
    """Mask the part of a photo that a box of the page is printed in."""
    import cv2

    x0, y0, x1, y1 = box
    corners = cv2.perspectiveTransform(np.array([[[x0, y0], [x1, y0], [x1, y1], [x0, y1]]], np.float64), matrix)
    mask = np.zeros(photo.shape, np.uint8)
    cv2.fillConvexPoly(mask, np.rint(corners[0]).astype(np.int32), 1)
    return mask > 0


@needs_fonts
@pytest.mark.parametrize(
    ("typeface", "size", "columns", "upright"), [(0, 24, 1, True), (1, 18, 2, True), (4, 28, 1, False)]
)
def test_type_is_masked_and_the_ornament_is_not(typeface, size, columns, upright):
    page = print_page(3, (7,), font=typefaces()[typeface], size=size, columns=columns)
    photo, matrix = photograph(page, 5)
    mask = text_mask(photo.astype(np.float32)) if upright else text_mask(photo.T.astype(np.float32)).T
    ornament = _on_page(photo, matrix, page.places[7])
    ink = (page.pixels < 128) & ~np.isin(np.arange(page.pixels.shape[0]), range(page.places[7][1], page.places[7][3]))[
        :, None
    ]
    y, x = np.nonzero(ink)
    from cv2 import perspectiveTransform

    at = np.rint(perspectiveTransform(np.stack([x, y], 1)[None].astype(np.float64), matrix)[0]).astype(int)
    at = np.clip(at, 0, np.array(photo.shape[::-1]) - 1)
    assert mask[at[:, 1], at[:, 0]].mean() > 0.97
    assert mask[ornament].mean() < 0.1  # flowers of it lie close to lines


@pytest.mark.parametrize("name", ["chelsea", "coffee", "rocket", "astronaut", "brick", "grass", "gravel"])
def test_photos_without_type_are_left_alone(name):
    grey = np.asarray(photograph_of(name, (512, 512)).convert("L"), np.float32)
    assert text_mask(grey).mean() < 0.02


def test_a_scanned_page_is_type_and_a_small_or_blank_image_is_not():
    page = data.page().astype(np.float32)
    assert text_mask(page).mean() > 0.5
    assert not text_mask(page[:20, :20]).any()
    assert not text_mask(np.full((300, 300), 200, np.float32)).any()
    assert not text_mask(np.zeros((300, 1), np.float32)).any()


def test_no_region_is_taken_in_a_mask_and_others_are_what_they_were():
    grey = photo_of_image(photograph_of("coffee", (300, 200))).grey
    mask = np.zeros(grey.shape, bool)
    mask[:, 150:] = True
    everywhere, outside = detect_regions(grey), detect_regions(grey, outside=mask)
    left = ~mask[tuple(np.rint(everywhere.ellipses[:, 1::-1]).astype(int).T)]
    np.testing.assert_array_equal(outside.ellipses, everywhere.ellipses[left])
    # By counting pixels: a circle of radius 10 whose box lies to 9 of 21 columns in the mask, and to 12.
    circles = np.array([[148, 100, 0.01, 0, 0.01], [151, 100, 0.01, 0, 0.01]], np.float32)
    assert mostly_in(circles, mask, 1.0).tolist() == [False, True]
