"""The picture of a verdict: lengths of bars match the figures, and text is escaped."""

from typing import Any
from xml.etree import ElementTree

import pytest

from learning.reports.verdict_picture import draw_verdict

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = {"won": 30, "lost": 10, "difference": 0.25, "standard_error": 0.1}
FOUND: dict[str, Any] = {
    "sentence": "It finds <more> & more.",
    "before": {"descriptor": "<script>", "map": {"words": 0.5, "verified": 0.25}},
    "after": {"descriptor": "learnt", "map": {"words": 0.75, "verified": 1.0}},
    "searches": {"photos": 9, "scenes": 4, "queries": 80, "words": FIGURES, "verified": FIGURES},
}


def widths(picture: str, kind: str) -> list[float]:
    """Widths of the bars of a kind, without the legend."""
    found = [one for one in ElementTree.fromstring(picture).iter(f"{SVG}rect") if one.get("class") == kind]
    return [float(one.get("width", 0)) for one in found if float(one.get("height", 0)) > 12]


def test_bars_are_as_long_as_their_figures() -> None:
    picture = draw_verdict(FOUND)
    full = 395.0
    assert widths(picture, "before") == pytest.approx([0.25 * full, 0.5 * full], abs=0.1)
    assert widths(picture, "after") == pytest.approx([full, 0.75 * full], abs=0.1)
    assert widths(picture, "won") == pytest.approx([30 / 80 * full] * 2, abs=0.1)
    assert widths(picture, "lost") == pytest.approx([10 / 80 * full] * 2, abs=0.1)
    assert "+25.0 ± 19.6 points" in picture and "30 found more" in picture


def test_names_are_text() -> None:
    picture = draw_verdict(FOUND)
    assert "<script" not in picture
    root = ElementTree.fromstring(picture)
    assert root.findtext(f"{SVG}title") == FOUND["sentence"]
    assert not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize("change", [{"searches": None}, {"after": None}, {"before": {"descriptor": "a", "map": None}}])
def test_what_was_not_measured_is_not_drawn(change: dict[str, Any]) -> None:
    picture = draw_verdict(FOUND | change)
    assert "No searches could be measured" in picture and not widths(picture, "after")


def test_one_scene_has_no_interval() -> None:
    one = FIGURES | {"standard_error": None}
    reported = FOUND["searches"] | {"scenes": 1, "words": one, "verified": one}
    assert "+25.0 points" in draw_verdict(FOUND | {"searches": reported})
