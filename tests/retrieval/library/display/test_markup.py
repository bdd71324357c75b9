import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from retrieval.library.display.markup import answer_html, match_html, photos_html
from retrieval.library.display.pictures import Picture
from tests.support.shown_photos import HOSTILE, ShownMatch, ShownResult, ellipses, written_photo

VOID = {"img", "image", "polygon", "ellipse", "line", "rect"}


class Page(HTMLParser):
    """Elements with their attributes, and the text; what is not closed is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        text.encode()
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def jpeg(uri: str) -> Image.Image:
    kind, data = uri.split(",")
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.fixture
def query(tmp_path: Path) -> Picture:
    return Picture("query.png", 200, 100, written_photo(tmp_path, "query.png"))


def test_an_answer_shows_query_and_results(query: Picture, tmp_path: Path) -> None:
    photo = written_photo(tmp_path)
    results = [
        ShownResult(path=photo, region=[[-0.5, -0.5], [99.5, -0.5], [99.5, 99.5]]),
        ShownResult(2, "other.jpg", photo, inliers=0, probability=0.3, found=False),
    ]
    page = Page(answer_html(results, [query], [(-0.5, -0.5, 199.5, 49.5)], seconds=0.0834))
    assert page.texts[0] == "1 photo shows this, 1 more perhaps (0.08 s)"
    assert page.texts[1:] == [
        *("query.png", "query"),
        *("1. tower.jpg", "sure (98%)", "12 inliers"),
        *("2. other.jpg", "perhaps (30%)", "not verified"),
    ]
    images = page.all("img")
    assert [image["alt"] for image in images] == [
        "query query.png",
        "tower.jpg, sure (98%); what was found is outlined",
        "other.jpg, perhaps (30%)",
    ]
    assert [jpeg(image["src"]).size for image in images] == [(200, 100)] * 3
    # Tiles are 210 wide at most: 200 x 100 pixels are drawn as 210 x 105.
    outlines = [polygon["points"] for polygon in page.all("polygon")]
    assert outlines == ["0.0,0.0 210.0,0.0 210.0,52.5 0.0,52.5"] * 2 + ["0.0,0.0 105.0,0.0 105.0,105.0"] * 2


def test_what_was_found_is_said_in_a_sentence(query: Picture) -> None:
    sure, perhaps = ShownResult(), ShownResult(found=False)
    for results, said in (
        ([], "No photo shows this"),
        ([perhaps], "No photo shows this for sure, 1 perhaps"),
        ([sure, sure], "2 photos show this"),
    ):
        assert Page(answer_html(results, [query])).texts[0] == said


def test_no_more_than_twenty_photos_are_embedded(query: Picture) -> None:
    page = Page(answer_html([ShownResult(rank) for rank in range(1, 56)], [query]))
    assert page.texts[-1] == "and 35 more" and "20. tower.jpg" in page.texts and "21. tower.jpg" not in page.texts
    photos = [ShownResult() for _ in range(21)]
    page = Page(photos_html(photos))
    assert page.texts[0] == "21 photos" and page.texts[-1] == "and 1 more"
    assert page.texts.count("tower.jpg") == 20
    assert "more" not in Page(photos_html(photos[:20])).texts[-1]


def test_photos_are_looked_at_no_further_than_shown() -> None:
    class Many:
        def __len__(self) -> int:
            return 1_000_000

        def __iter__(self):  # type: ignore[no-untyped-def]
            for number in range(1_000_000):
                assert number <= 20
                yield ShownResult(name=f"{number}.jpg", width=None, height=None)

    page = Page(photos_html(Many(), "All"))
    assert page.texts[0] == "All" and page.texts[-1] == "and 999,980 more"
    assert "size not known" in page.texts


def test_several_queries_say_which_one_found_a_photo(query: Picture) -> None:
    page = Page(answer_html([ShownResult(query_index=1)], [query, query], [None, None]))
    assert "by query 2" in page.texts and len(page.all("img")) == 2


def test_a_photo_that_has_gone_is_a_grey_tile(query: Picture) -> None:
    page = Page(answer_html([ShownResult(path="gone.jpg")], [query]))
    (tile,) = (attributes for _, attributes in page.elements if attributes.get("role") == "img")
    assert tile["aria-label"] == "tower.jpg, sure (98%), which cannot be shown: the file does not exist"
    assert "rgba(128,128,128" in tile["style"] and "the file does not exist" in page.texts
    shown = Page(match_html(ShownMatch(), query, Picture("gone", 10, 10, "gone.jpg")))
    assert len(shown.all("image")) == 1 and len(shown.all("rect")) == 1 and "the file does not exist" in shown.texts


def test_a_match_joins_regions_of_equal_colours(query: Picture, tmp_path: Path) -> None:
    photo = Picture("photo", 100, 100, pixels=np.zeros((100, 100)))
    match = ShownMatch(region=[[9.5, 9.5], [49.5, 9.5], [49.5, 49.5]])
    page = Page(match_html(match, query, photo, (-0.5, -0.5, 99.5, 99.5)))
    assert page.texts == ["These photos show the same: sure (98%), 2 inliers.", "query.png", "photo"]
    (drawing,) = page.all("svg")
    assert drawing["viewbox"] == "0 0 854.0 420.0" and "query.png next to photo" in drawing["aria-label"]
    assert [jpeg(image["href"]).size for image in page.all("image")] == [(200, 100), (100, 100)]
    outlines = [polygon["points"] for polygon in page.all("polygon")]
    assert outlines[0] == "0.0,105.0 210.0,105.0 210.0,315.0 0.0,315.0"
    assert outlines[2] == "476.0,42.0 644.0,42.0 644.0,210.0"
    lines, drawn = page.all("line"), page.all("ellipse")
    assert (
        [line["stroke"] for line in lines]
        == [one["stroke"] for one in drawn[::2]]
        == [one["stroke"] for one in drawn[1::2]]
    )
    first = lines[0]  # (10, 30) in both: 2.1 and 4.2 units a pixel
    assert [float(first[name]) for name in ("x1", "y1", "x2", "y2")] == pytest.approx(
        [22.05, 169.05, 478.1, 128.1], abs=0.06
    )
    assert [float(one["rx"]) for one in drawn[:2]] == pytest.approx([10.5, 21], abs=0.06)


def test_of_many_matches_sixty_are_drawn(query: Picture) -> None:
    match = ShownMatch(300, query_ellipses=ellipses(300), photo_ellipses=ellipses(300))
    page = Page(match_html(match, query, query))
    assert len(page.all("line")) == 60 and len(page.all("ellipse")) == 120


def test_a_match_without_inliers_confirms_nothing(query: Picture) -> None:
    none = ShownMatch(0, 0.02, False, None, ellipses(0), ellipses(0))
    page = Page(match_html(none, query, query))
    assert page.texts[0] == "Nothing confirms that these photos show the same: perhaps (2%)."
    assert not page.all("line")


def test_no_name_breaks_out_and_nothing_comes_from_elsewhere(query: Picture, tmp_path: Path) -> None:
    hostile = Picture(HOSTILE, 10, 10, str(tmp_path / "<img onerror=alert(1)>"))
    result = ShownResult(name=HOSTILE, path=tmp_path / "a\0b")
    for text in (
        answer_html([result], [hostile]),
        photos_html([result], HOSTILE.replace("\udcff", "")),
        match_html(ShownMatch(), hostile, hostile, (0, 0, 5, 5)),
        answer_html([ShownResult(path=query.path)], [query]),  # type: ignore[arg-type]
    ):
        page = Page(text)
        assert {tag for tag, _ in page.elements} <= {"div", "b", "span", "svg"} | VOID | {"text"}
        for _, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on")]
            assert attributes.get("src", "data:").startswith("data:")
            assert attributes.get("href", "data:").startswith("data:")
            assert "url(" not in attributes.get("style", "")
        assert not re.findall(r"color:#|https?://(?!www\.w3\.org/2000/svg)", text)
