"""Which of several photos of one picture is the original."""

import random

import pytest

from retrieval.catalogue.schema import ImageRow
from retrieval.groups.originals import original_first, says_copy


def photo(number: int, name: str, width: int = 400, height: int = 300, taken: str | None = None) -> ImageRow:
    return ImageRow(number=number, path=f"/p/{name}", name=name, width=width, height=height, taken=taken)


@pytest.mark.parametrize(
    "name",
    [
        "Bridge copy",
        "Bridge - Copy (2)",
        "copy of Bridge",
        "Bridge Kopie",
        "Kopie von Bridge",
        "BRIDGE-KOPIE 3",
        "Bridge - copie",
        "copia de Bridge",
        "Bridge co\u0301pia",
        "Bridge_copy",
        "IMG_1234copy",
    ],
)
def test_names_of_copies(name: str) -> None:
    assert says_copy(name)


@pytest.mark.parametrize("name", ["Bridge", "copyright", "Copiap\u00f3", "photocopy", "Bridge_1", "IMG_0001", ""])
def test_names_that_say_nothing_of_copies(name: str) -> None:
    assert not says_copy(name)


def test_the_original_is_told_by_pixels_then_date_then_name_then_number() -> None:
    expected = [
        photo(9, "large (1).jpg", 800, 600),
        photo(8, "dated~.jpg", taken="1923-05"),
        photo(7, "dated.jpg", taken="1924"),
        photo(5, "undated.jpg"),
        photo(6, "undated.png"),
        photo(1, "undated_caption.jpg"),
        photo(4, "undated~2.jpg"),
        photo(3, "undated (1).jpg"),
        photo(2, "small.jpg", 40, 30, "1900"),
        photo(1, "Copies of copies/a copy.jpg", 4000, 3000, "1800"),  # never wins
        photo(0, "Kopie.jpg"),
    ]
    shuffled = random.Random(0).sample(expected, len(expected))
    assert sorted(shuffled, key=original_first) == expected


def test_the_folder_decides_only_between_photos_that_nothing_else_tells_apart() -> None:
    assert original_first(photo(1, "Kopien/2020/a.jpg")) > original_first(photo(2, "a longer name.jpg"))
    assert original_first(photo(1, "copy/a.jpg")) < original_first(photo(2, "a (1).jpg"))
