"""Photos in which nothing is found are reported: they can never be found."""

from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageFilter

import cairn as public
from tests.conftest import Ran
from tests.support.hostile import encode, photo

Cairn = Callable[..., Ran]


def test_photos_that_can_never_be_found_are_counted_and_listed(cairn: Cairn, tmp_path: Path) -> None:
    folder, collection = tmp_path / "photos", tmp_path / "a.cairn"
    folder.mkdir()
    blurred = photo("coffee").filter(ImageFilter.GaussianBlur(60))
    shown = {"blank.png": Image.new("L", (300, 200), 127), "blurred.png": blurred, "tiny.png": photo(size=(6, 4))}
    for name, image in {**shown, "sharp.png": photo("rocket")}.items():
        (folder / name).write_bytes(encode(image, "PNG"))
    said = cairn("index", collection, folder, "--words", 20)
    assert "4 added" in said.out and "3 photos can never be found: blank, blurred or too small" in said.out
    assert "never be found" not in cairn("index", collection, folder).out
    assert cairn("info", collection, "--json").json["featureless"] == sorted(shown)
    reported = cairn("info", collection).out
    assert all(name in reported for name in ("3 photos can never be found", *shown)) and "sharp.png" not in reported
    cairn("remove", collection, "blank.png", "tiny.png")
    with public.open(collection) as opened:
        assert opened.info().featureless == ["blurred.png"]
    assert "1 photo can never be found" in cairn("info", collection).out
