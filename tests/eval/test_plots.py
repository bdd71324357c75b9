"""Plots: contents, files, and refusals."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import plots
from eval.plots import (
    lower_envelope,
    pixel_contribution,
    plot_bits,
    plot_dimension_error,
    plot_metric,
    plot_pooling_regions,
    plot_roc,
    plot_similarities,
)
from index.errors import CairnError
from tests.support.paths import ROOT

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(1)
MATCH = np.arange(400) % 2 == 0
CURVES = {
    "good": (np.where(MATCH, 1.0, 3.0) + RNG.normal(size=400), MATCH),
    "poor": (np.where(MATCH, 1.0, 2.0) + RNG.normal(size=400), MATCH),
}
REGIONS = np.array([[0, 0, 1], [-6, 2.5, 2], [5, 5, 4], [14, -14, 3]], np.float32)
WEIGHTS = np.array([1, 2, 0.5, 0.25], np.float32)
MODELS = {"pooling": [(100, 0.2), (200, 0.1), (150, 0.3)], "projection": [(30, 0.15)]}
BITS = {"32-D": ([64, 128], [0.3, 0.2], 0.15), "64-D": ([64, 128, 256], [0.35, 0.19, 0.15], 0.1)}
DRAW: dict[str, Callable[[Path], None]] = {
    "roc": lambda path: plot_roc(CURVES, path),
    "regions": lambda path: plot_pooling_regions(REGIONS, WEIGHTS, 15.5, path),
    "metric": lambda path: plot_metric(np.eye(8), path),
    "models": lambda path: plot_dimension_error(MODELS, path),
    "bits": lambda path: plot_bits(BITS, path),
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are written from here on."""
    figures: list[Any] = []
    save = plots.save_plot
    monkeypatch.setattr(plots, "save_plot", lambda figure, path: (figures.append(figure), save(figure, path)))
    return figures


@pytest.mark.parametrize("name", DRAW)
@pytest.mark.parametrize(("suffix", "begins"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
@pytest.mark.slow
def test_every_plot_is_written_and_is_the_same_twice(name: str, suffix: str, begins: bytes, tmp_path: Path) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    DRAW[name](one)
    DRAW[name](two)
    assert one.read_bytes().startswith(begins)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("name", DRAW)
def test_a_plot_that_cannot_be_written_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CairnError, match=r"\.png"):
        DRAW[name](tmp_path / "plot.bmp")
    with pytest.raises(CairnError, match="folder"):
        DRAW[name](tmp_path / "missing" / "plot.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(CairnError, match="pip install matplotlib"):
        DRAW[name](tmp_path / "plot.png")
    assert not any(tmp_path.iterdir())


def test_curves_are_those_of_the_distances_and_the_best_comes_first(drawn: list[Any], tmp_path: Path) -> None:
    from learning.measures.roc import fpr95, roc_curve

    plot_roc({"poor": CURVES["poor"], "good": CURVES["good"]}, tmp_path / "roc.png")
    axes = drawn[0].axes[0]
    errors = {label: 100 * fpr95(*curve) for label, curve in CURVES.items()}
    assert errors["good"] < errors["poor"]
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == [f"good ({errors['good']:.2f}%)", f"poor ({errors['poor']:.2f}%)"]
    for line, label in zip(axes.lines, ("good", "poor"), strict=False):
        np.testing.assert_array_equal(line.get_xydata().T, roc_curve(*CURVES[label])[:2])
    assert axes.get_xlim() == (0, 0.3)


def test_all_models_are_dots_and_the_best_of_each_dimension_a_line(drawn: list[Any], tmp_path: Path) -> None:
    plot_dimension_error(MODELS, tmp_path / "models.png")
    top, bottom = drawn[0].axes
    np.testing.assert_allclose(top.collections[0].get_offsets(), [[100, 20], [200, 10], [150, 30]])
    np.testing.assert_allclose(top.lines[0].get_xydata(), [[100, 20], [200, 10]])
    assert (top.get_title(), bottom.get_title()) == ("pooling", "projection")


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), min_size=1, max_size=30))
def test_the_envelope_is_what_no_model_as_small_equals_or_beats(models: list[tuple[int, int]]) -> None:
    dims, errors = lower_envelope(*np.array(models, np.float64).T)
    expected = {
        (dim, error)
        for dim, error in models
        if not any(d <= dim and e <= error and (d, e) != (dim, error) for d, e in models)
    }
    assert list(zip(dims, errors, strict=True)) == sorted(expected)


def test_a_pixel_s_share_is_the_weighted_mean_of_unit_mass_gaussians() -> None:
    size = 31
    expected = np.zeros((size, size))
    for (x, y, sigma), weight in zip(REGIONS.astype(float), WEIGHTS.astype(float), strict=True):
        mass = np.zeros((size, size))
        for row in range(size):
            for column in range(size):
                mass[row, column] = np.exp(-((column - 15 - x) ** 2 + (row - 15 - y) ** 2) / (2 * sigma**2))
        expected += weight * mass / mass.sum() / WEIGHTS.sum()
    found = pixel_contribution(REGIONS, WEIGHTS, size / 2)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    assert found.sum() == pytest.approx(1)
    assert np.unravel_index(found.argmax(), found.shape) == (15, 15)  # the narrow one
    assert pixel_contribution(REGIONS, 0 * WEIGHTS, size / 2).sum() == 0


def test_regions_are_circles_of_their_sigma(drawn: list[Any], tmp_path: Path) -> None:
    plot_pooling_regions(REGIONS, WEIGHTS, 15.5, tmp_path / "regions.png")
    left = drawn[0].axes[0]
    circles = {(*map(float, circle.center), float(circle.radius)) for circle in left.patches}
    assert circles == {tuple(map(float, row)) for row in REGIONS}
    assert len({circle.get_edgecolor() for circle in left.patches}) == len(REGIONS)
    low, high = left.get_ylim()
    assert (low, high) == (15.5, -15.5)  # y points down, as in the patch


def test_a_matrix_is_drawn_brighter_where_it_is_larger(drawn: list[Any], tmp_path: Path) -> None:
    root = np.random.default_rng(0).normal(size=(3, 40))
    plot_metric(root.T @ root, tmp_path / "metric.png")
    axes = drawn[0].axes[0]
    assert "rank 3" in axes.get_title()
    image = axes.images[0]
    np.testing.assert_array_equal(image.get_array(), root.T @ root)
    dark, bright = image.cmap(image.norm([image.norm.vmin, image.norm.vmax]))[:, 0]
    assert dark < bright


def test_codes_are_drawn_beside_what_they_were_made_of(drawn: list[Any], tmp_path: Path) -> None:
    plot_bits(BITS, tmp_path / "bits.png")
    lines = drawn[0].axes[0].lines
    np.testing.assert_allclose(lines[0].get_xydata(), [[64, 30], [128, 20]])
    np.testing.assert_allclose(lines[1].get_ydata(), [15, 15])
    assert lines[1].get_linestyle() == "--"
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()


def test_similarities_are_trimmed_and_drawn_on_a_linear_axis(drawn: list[Any], tmp_path: Path) -> None:
    matching, other = np.arange(1, 101) / 10, np.arange(100) / 20
    reported = plot_similarities({"tf-idf": (matching, other)}, tmp_path / "s.png", trim=0.08, linear=True)["tf-idf"]
    axes = drawn[0].axes[0]
    assert axes.get_xscale() == "linear"
    # Of 100 scores each the 8 least and the 8 largest are left out; the shares are of all.
    assert (reported["bins"][0], reported["bins"][-1]) == (pytest.approx(0.4), pytest.approx(9.2))
    assert sum(reported["matching"]) == pytest.approx(0.84) and sum(reported["not matching"]) == pytest.approx(0.84)
    whole = plot_similarities({"tf-idf": (matching, other)}, tmp_path / "s.png")["tf-idf"]
    assert sum(whole["matching"]) == pytest.approx(1)
    assert drawn[1].axes[0].get_xscale() == "log"


@pytest.mark.slow
def test_no_plot_loads_what_opens_windows(tmp_path: Path) -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; import numpy as np; from eval.plots import plot_metric;"
        "assert 'matplotlib' not in sys.modules;"
        f"plot_metric(np.eye(4), Path({str(tmp_path / 'plot.png')!r})); assert 'matplotlib.pyplot' not in sys.modules"
    )
    root = ROOT
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
