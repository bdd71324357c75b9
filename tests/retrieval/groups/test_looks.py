"""Copies that were turned, mirrored, resized or converted look the same; other photos do not."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from index.arrays import hash_file
from retrieval.catalogue.schema import ImageRow
from retrieval.groups.looks import Copy, find_copies, look
from retrieval.groups.sightings import see_photos

PICTURES = {"cat": data.chelsea, "coffee": data.coffee, "astronaut": data.astronaut, "rocket": data.rocket}


def picture(name: str) -> Image.Image:
    return Image.fromarray(PICTURES[name]()).convert("RGB")


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


CHANGES = {
    "turned by 90": (lambda image: image.transpose(Image.Transpose.ROTATE_90), (1, False)),
    "turned by 180": (lambda image: image.transpose(Image.Transpose.ROTATE_180), (2, False)),
    "turned by 270": (lambda image: image.transpose(Image.Transpose.ROTATE_270), (3, False)),
    "mirrored": (lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (0, True)),
    "upside down in a mirror": (lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM), (2, True)),
    "half the size": (lambda image: image.resize((image.width // 2, image.height // 2)), (0, False)),
    "grey": (lambda image: image.convert("L").convert("RGB"), (0, False)),
    "CMYK": (lambda image: image.convert("CMYK").convert("RGB"), (0, False)),
    "compressed": (lambda image: jpeg(image, 40), (0, False)),
    "brighter": (lambda image: image.point(lambda value: int(255 * (value / 255) ** 0.7)), (0, False)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_copy_is_known_and_how_it_was_turned(change: str) -> None:
    alter, (turn, mirrored) = CHANGES[change]
    seen = [np.asarray(picture(name)) for name in PICTURES]
    seen += [np.asarray(alter(picture(name))) for name in PICTURES]
    looks = {number: found for number, image in enumerate(seen) if (found := look(image)) is not None}
    assert len(looks) == len(seen)
    copies = find_copies(looks)
    assert [copy.pair for copy in copies] == [(number, number + len(PICTURES)) for number in range(len(PICTURES))]
    assert {(copy.turn, copy.mirrored) for copy in copies} == {(turn, mirrored)}


def test_the_copy_turned_as_told_is_the_original() -> None:
    original = np.asarray(picture("coffee"))
    turned = np.ascontiguousarray(np.rot90(original[:, ::-1]))
    (copy,) = find_copies({1: look(original), 2: look(turned)})  # type: ignore[dict-item]
    assert (np.rot90(turned[:, ::-1] if copy.mirrored else turned, -copy.turn) == original).all()


def test_photos_of_other_proportions_are_no_copies() -> None:
    image = picture("coffee")
    stretched = image.resize((image.width, image.height // 2))
    assert find_copies({1: look(np.asarray(image)), 2: look(np.asarray(stretched))}) == []  # type: ignore[dict-item]


def mounted(photo: Image.Image, shift: int) -> np.ndarray:
    """A photo on a card, as a black scanner bed shows it."""
    bed, card = Image.new("RGB", (1200, 900), (8, 8, 8)), Image.new("RGB", (1000, 720), (225, 215, 190))
    card.paste(photo.resize((760, 520)), (120, 80))
    bed.paste(card, (100 + shift, 90))
    return np.asarray(bed)


def test_other_photos_on_the_same_mount_are_no_copies() -> None:
    photos = [picture(name) for name in PICTURES]
    photos += [photo.transpose(Image.Transpose.ROTATE_90).crop((50, 50, 300, 250)) for photo in photos]
    scans = {number: look(mounted(photo, number % 3)) for number, photo in enumerate(photos)}
    assert find_copies(scans) == []  # type: ignore[arg-type]
    # The same photo scanned once more is one.
    again = {**scans, 100: look(np.asarray(jpeg(Image.fromarray(mounted(photos[2], 2)), 40)))}
    assert [copy.pair for copy in find_copies(again)] == [(2, 100)]  # type: ignore[arg-type]


def test_blank_pages_have_no_look() -> None:
    noise = np.random.default_rng(0).normal(240, 1, (400, 300, 3)).clip(0, 255).astype(np.uint8)
    assert look(noise) is None
    assert look(np.zeros((90, 120), np.uint8)) is None
    assert find_copies({}) == []


def test_photos_are_seen_by_their_thumbnails_and_those_that_have_gone_are_left_out(tmp_path: Path) -> None:
    rows = []
    for number, name in enumerate(PICTURES, start=1):
        path = tmp_path / f"{name}.png"
        image = picture(name)
        if name != "rocket":
            image.save(path)
        rows.append(ImageRow(number=number, path=str(path), name=name, width=image.width, height=image.height))
    # Of one content, by what is known of them: the first stands for both.
    rows[1].sha256 = rows[2].sha256 = hash_file(Path(rows[1].path))
    reported: list[tuple[str, int, int]] = []
    looks = see_photos(rows, tmp_path / "cache", progress=lambda *step: reported.append(step))
    assert sorted(looks) == [1, 2]
    assert reported[-1] == ("look", 3, 3)


def test_a_pair_is_told_by_ascending_numbers() -> None:
    assert Copy(3, 7, 0, False).pair == Copy(7, 3, 0, False).pair == (3, 7)
