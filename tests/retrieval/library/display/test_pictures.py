import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from index.errors import CairnError
from retrieval.library.display.pictures import Picture, counted, picture_of, strength
from retrieval.photos.thumbnails import thumbnail
from tests.support.shown_photos import HOSTILE, ShownResult, written_photo


def test_a_photo_is_read_from_its_file_or_from_memory(tmp_path: Path) -> None:
    red = Picture("red", 200, 100, written_photo(tmp_path)).thumbnail(64)
    assert red.shape == (32, 64, 3) and red.dtype == np.uint8
    assert np.abs(red.astype(int) - (200, 40, 40)).max() < 5
    for pixels in (
        np.full((100, 200), 0.5),
        np.full((100, 200, 3), 128, np.uint8),
        np.full((100, 200), 32768, np.uint16),
    ):
        grey = Picture("grey", 200, 100, "nowhere", pixels).thumbnail(50)
        assert grey.shape == (25, 50, 3) and set(np.unique(grey)) <= {127, 128}


def test_a_tile_is_the_thumbnail_that_is_kept(tmp_path: Path) -> None:
    photo = written_photo(tmp_path, size=(600, 300))
    kept = thumbnail(photo, None, 256, tmp_path)
    assert Picture("red", 600, 300, "nowhere", kept=lambda size: thumbnail(photo, None, size, tmp_path)).tile() == kept

    def gone(size: int) -> bytes:
        raise CairnError("It has gone.")

    made = Picture("red", 600, 300, photo, kept=gone).tile()
    assert Image.open(io.BytesIO(made)).size == (256, 128)
    assert picture_of(ShownResult()).kept is None


def test_what_cannot_be_shown_says_why() -> None:
    for picture in (Picture("gone", 2, 2, "gone.jpg"), Picture("kept nowhere", 2, 2), Picture("odd", 2, 2, "a\0b")):
        with pytest.raises(CairnError):
            picture.thumbnail(64)


def test_how_sure_a_result_is_stands_in_words() -> None:
    assert strength(ShownResult(probability=0.9996)) == "sure (>99%)"
    assert strength(ShownResult(probability=0.63, found=False)) == "perhaps (63%)"
    assert counted(1, "photo") == "1 photo" and counted(1234, "photo") == "1,234 photos"


def test_a_name_stays_on_its_line() -> None:
    label = Picture(HOSTILE, 1, 1).label
    assert label.isprintable() and "<script>" in label and "\\xff" in label
    label.encode()
