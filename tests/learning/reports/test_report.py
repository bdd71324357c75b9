"""The report: one file that loads nothing with any texts, and drawings of the alternation."""

import base64
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from index.errors import CairnError
from learning.latent.alternation import LogEntry
from learning.mining.image_pairs import Overlaps
from learning.reports import report
from learning.reports.closeup import Closeup, Crop, project_matches
from learning.reports.history_drawing import history_figure
from learning.reports.report import check_report, write_report
from retrieval.descriptors.learnt import LearntModel, Pooling
from retrieval.descriptors.pooling import ChannelOptions

pytest.importorskip("matplotlib")

HOSTILE = "<script>alert('1')</script> \"quoted\" & $x_{1$ \udce9\0 https://example.org/a.png"
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td", "strong"}
TAGS |= {"figure", "figcaption", "img"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "scope", "alt", "src"}
ROUNDS = ((0.9, 0.7, 0.6, 0.5), (0.8, 0.4, 0.4, 0.3))
STEPS = ("negatives", "parameters", "positives", "selection")
HISTORY = [
    LogEntry("pooling", number, step, value, 0.4 + 0.1 * number if step == "selection" else None, None)
    for number, values in enumerate(ROUNDS)
    for step, value in zip(STEPS, values, strict=True)
] + [LogEntry("projection", 0, "negatives", 0.5, None, 0.25), LogEntry("projection", 0, "parameters", 0.2, None, 0.5)]
POOLING = Pooling(
    np.array([[0, 0, 1], [5, 5, 2]], np.float32),
    np.array([1, 2], np.float32),
    np.arange(2, dtype=np.int32),
    ChannelOptions(),
)
TRIED: list[dict[str, Any]] = [
    {"stage": "pooling", "share": 0.5, "mu": 0.0125, "gamma": 10.0, "dim": 1280, "validation": None},
    {"stage": "projection", "share": 0.8, "mu": 0.25, "dim": 96, "validation": 0.6789, "chosen": True, "<b>": HOSTILE},
]


def _closeup(name: str) -> Closeup:
    region = np.array([50, 40, 0.01, 0, 0.01])
    shifted = region + np.array([[1, 0, 0, 0, 0], [8, 0, 0, 0, 0], [18, 0, 0, 0, 0]])
    matches = project_matches(region, shifted, ("positive", "ambiguous", "negative"), np.eye(3))
    pixels = np.random.default_rng(0).integers(0, 256, (80, 80, 3), np.uint8)
    crop = Crop(pixels, (20, 100, 80, 0), (20, 100, 80, 0))
    counts = {"positive": 1, "ambiguous": 2, "negative": 3456}
    return Closeup(name, f"2{name}", region, matches, counts, Overlaps(), 77, crop, crop)


def _write(path: Path, **other: Any) -> str:
    given: dict[str, Any] = {
        "title": "What was learnt",
        "verdict": "It is better.",
        "facts": {"Source": "photos", "Recall of rootSIFT": "61.2%"},
        "model": LearntModel("pooled", POOLING),
        "history": HISTORY,
        "tried": TRIED,
        "closeups": [_closeup("castle")],
    }
    write_report(path, **given | other)
    return path.read_text(encoding="utf-8")


class _Page(HTMLParser):
    """The page as parsed by a browser."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        self.text = " ".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"] and data.strip():
            self.texts.append(data.strip())

    def images(self) -> list[np.ndarray]:
        """The pictures, decoded."""
        found = []
        for tag, attributes in self.tags:
            if tag == "img":
                head, data = str(attributes["src"]).split(",")
                assert head in ("data:image/png;base64", "data:image/jpeg;base64")
                begins = b"\x89PNG" if "png" in head else b"\xff\xd8"
                contents = base64.b64decode(data, validate=True)
                assert contents.startswith(begins)
                found.append(cv2.imdecode(np.frombuffer(contents, np.uint8), cv2.IMREAD_COLOR))
        return found


@pytest.mark.slow
def test_texts_are_texts_and_nothing_is_loaded(tmp_path: Path) -> None:
    page = _Page(
        _write(
            tmp_path / "a.html",
            title=HOSTILE,
            verdict=HOSTILE,
            facts={HOSTILE: HOSTILE},
            closeups=[_closeup(HOSTILE)],
        )
    )
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= TAGS
    for tag, attributes in page.tags:
        assert set(attributes) <= ATTRIBUTES
        assert tag == "img" or "src" not in attributes
    (style,) = [part.split("</style>")[0] for part in (tmp_path / "a.html").read_text().split("<style>")[1:]]
    assert "url" not in style
    assert "@" not in style
    shown = HOSTILE.replace("\udce9", "\\xe9").replace("\0", "\\x00")
    # Title twice, verdict, name and value of the fact, both photos, a heading's cell.
    assert page.text.count(shown) == 8
    assert len(page.images()) == 3
    (policy,) = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert str(policy).startswith("default-src 'none'; img-src data:;")


def test_a_report_tells_what_it_was_given(tmp_path: Path) -> None:
    page = _Page(_write(tmp_path / "a.html"))
    for text in (
        "It is better.",
        "Recall of rootSIFT 61.2%",
        "castle",
        "2castle",
        "77 matches",
        "3,456 negative (1 shown)",
    ):
        assert text in page.text
    table = page.text[page.text.index("Models tried") :]
    for row in (
        "stage K, share of features μ γ dimensions recall, validation <b>",
        "pooling 0.5 0.0125 10 1,280 – –",
        "projection 0.8 0.25 – 96 67.89% ",
        "The marked one was chosen",
    ):
        assert row in table
    marked = [tag for tag, attributes in page.tags if attributes.get("class") == "chosen"]
    assert marked == ["tr"]
    closeup, regions, course = page.images()
    assert all(image.shape[1] > 1000 and image.std() > 10 for image in (closeup, regions, course))


def test_what_there_is_not_is_said(tmp_path: Path) -> None:
    model = LearntModel("rootsift", projection=np.eye(8, 128, dtype=np.float32))
    page = _Page(_write(tmp_path / "a.html", model=model, history=[], tried=[], closeups=[]))
    assert page.images() == []
    for text in ("No close-ups", "rootsift-proj projects SIFT", "Not recorded"):
        assert text in page.text


@pytest.mark.slow
def test_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    assert _write(tmp_path / "a.html") == _write(tmp_path / "b.html")


@pytest.mark.slow
def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _write(tmp_path / "a.html")

    def fail(*_: Any) -> bytes:
        raise OSError("no more memory")

    monkeypatch.setattr(report, "history_figure", fail)
    with pytest.raises(OSError, match="memory"):
        _write(tmp_path / "a.html", title="Another")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert (tmp_path / "a.html").read_text() == before


def test_a_report_that_cannot_be_written_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.html").mkdir()
    check_report(tmp_path / "a.HTML")
    for name, reason in (("a.pdf", r"\.html"), ("missing/a.html", "does not exist"), ("folder.html", "is a folder")):
        with pytest.raises(CairnError, match=reason):
            check_report(tmp_path / name)
        with pytest.raises(CairnError, match=reason):
            _write(tmp_path / name)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CairnError, match="pip install matplotlib"):
        check_report(tmp_path / "a.html")


def test_the_objective_is_drawn_step_by_step_and_broken_between_rounds() -> None:
    above, other, below, beside = history_figure(HISTORY).axes
    lines = [line for line in above.lines if line.get_drawstyle() == "steps-post"]
    first, second = (np.column_stack([np.arange(4) + 4 * number, values]) for number, values in enumerate(ROUNDS))
    np.testing.assert_allclose(lines[0].get_xydata(), first)
    np.testing.assert_allclose(lines[1].get_xydata(), second)
    marks = {each.get_label(): np.asarray(each.get_offsets()) for each in above.collections}
    for place, step in enumerate(STEPS):
        np.testing.assert_allclose(marks[step], [first[place], second[place]])
    assert len({tuple(each.get_facecolor()[0]) for each in above.collections if len(each.get_offsets())}) == len(STEPS)
    np.testing.assert_allclose(other.lines[0].get_xydata(), [[0, 0.5], [1, 0.2]])
    # Recall only where it was measured, in percent.
    (line,) = [line for line in below.lines if line.get_label() == "training features"]
    np.testing.assert_allclose(line.get_xydata(), [[3, 40], [7, 50]])
    (line,) = beside.lines
    assert line.get_label() == "validation features"
    np.testing.assert_allclose(line.get_xydata(), [[0, 25], [1, 50]])
