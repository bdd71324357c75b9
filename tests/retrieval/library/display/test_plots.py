import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from retrieval.library.display.pictures import Picture
from retrieval.library.display.plots import plot_answer, plot_match
from tests.support.shown_photos import HOSTILE, ShownMatch, ShownResult, written_photo

PHOTO = Picture("photo", 100, 100, pixels=np.zeros((100, 100)))
GONE = Picture(HOSTILE, 40, 80, "gone.jpg")


@pytest.fixture(autouse=True)
def figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MPLBACKEND", "agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def test_a_match_is_drawn_with_its_regions_lines_and_outlines(tmp_path: Path) -> None:
    query = Picture("query", 200, 100, written_photo(tmp_path))
    match = ShownMatch(region=[[9.5, 9.5], [49.5, 9.5], [49.5, 49.5]])
    ax = plot_match(match, query, PHOTO, (-0.5, -0.5, 99.5, 99.5))
    assert ax.get_title() == "query  ·  photo\nsure (98%), 2 inliers"
    assert [image.get_extent() for image in ax.images] == [[0, 512, 384, 128], [528, 1040, 512, 0]]
    left, right, lines = ax.collections
    assert np.allclose(left.get_offsets(), [[26.88, 206.08], [231.68, 206.08]])
    assert np.allclose(lines.get_segments()[0], [left.get_offsets()[0], right.get_offsets()[0]])
    box, region = ax.patches[0], ax.patches[2]
    assert np.allclose(box.get_xy()[:4], [[0, 128], [256, 128], [256, 384], [0, 384]])
    assert np.allclose(region.get_xy()[:3], [[579.2, 51.2], [784, 51.2], [784, 256]])
    ax.figure.canvas.draw()


def test_it_is_drawn_where_one_wishes() -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_match(ShownMatch(), PHOTO, GONE, ax=ax) is ax
    assert len(ax.images) == 1 and [text.get_text() for text in ax.texts] == ["the file does not exist"]
    ax.figure.canvas.draw()  # whatever the name


def test_an_answer_is_a_grid() -> None:
    results = [ShownResult(rank, region=[[0, 0], [50, 0], [50, 50]]) for rank in range(1, 8)]
    axes = plot_answer(results, [PHOTO], [(0, 0, 50, 50)], most=6, columns=4)
    titles = [ax.get_title() for ax in axes]
    assert len(axes) == 7 and titles[0] == "query\nphoto" and titles[1] == "1. tower.jpg\nsure (98%)"
    figure = axes[0].figure
    assert len(figure.axes) == 8 and figure.get_supxlabel() == "and 1 more"
    assert all(len(ax.patches) >= 2 for ax in axes)
    figure.canvas.draw()


def test_a_long_name_shows_its_end() -> None:
    (ax, _) = plot_answer([ShownResult()], [Picture("folder/" * 9 + "0001.jpg", 9, 9, pixels=np.ones((9, 9)))])
    assert ax.get_title() == "query\n…/folder/folder/0001.jpg"


def test_what_cannot_be_drawn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (
        lambda: plot_answer([ShownResult()], [PHOTO], most=0),
        lambda: plot_answer([ShownResult()], [PHOTO], columns=0),
        lambda: plot_answer([], []),
    ):
        with pytest.raises(CairnError):
            wrong()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for drawing in (lambda: plot_answer([], [PHOTO]), lambda: plot_match(ShownMatch(), PHOTO, PHOTO)):
        with pytest.raises(CairnError, match="Plots need matplotlib: pip install matplotlib"):
            drawing()
