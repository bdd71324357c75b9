"""The plotting commands: input, output, and refusals."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from eval import plots
from eval.patches import evaluate_patches
from learning.patches.phototour import write_bitmaps, write_info, write_pairs
from retrieval.descriptors.codes import BinaryCode
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, Pooling, save_model
from retrieval.descriptors.pooling import ChannelOptions
from retrieval.descriptors.registry import find_descriptor
from tests.conftest import Ran

pytest.importorskip("matplotlib")
Draw = Callable[..., Ran]
POINTS, VIEWS = 60, 2


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Draw:
    """Runs `cairn plot ARGUMENTS…` in this process."""
    from eval.commands.plot import plot
    from retrieval.commands.console import run

    def call(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["cairn plot", *map(str, arguments)])
        capfd.readouterr()
        code = 0
        try:
            run(plot)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)

    return call


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, ...]]:
    """Arguments of each plotting function, by its name."""
    given: dict[str, tuple[Any, ...]] = {}

    def listen(name: str) -> None:
        plain = getattr(plots, name)
        monkeypatch.setattr(plots, name, lambda *values: (given.__setitem__(name, values), plain(*values)))

    for name in ("plot_roc", "plot_pooling_regions", "plot_metric", "plot_dimension_error", "plot_bits"):
        listen(name)
    return given


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two noisy views of each of sixty textures, with test pairs."""
    folder = tmp_path_factory.mktemp("patches")
    rng = np.random.default_rng(4)
    textures = np.array([cv2.GaussianBlur(one, (0, 0), 4) for one in rng.normal(size=(POINTS, 64, 64))])
    points = np.repeat(np.arange(POINTS), VIEWS)
    views = 128 + 250 * textures[points] + rng.normal(scale=40, size=(len(points), 64, 64))
    write_bitmaps(folder, views.clip(0, 255).astype(np.uint8))
    write_info(folder, points, np.tile(np.arange(VIEWS), POINTS))
    one = np.arange(POINTS) * VIEWS
    write_pairs(folder, 2, np.tile(one, 2), np.concatenate([one + 1, np.roll(one, 7) + 1]), points)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Descriptor files: pooled.npz, its projection proj.npz, that as a code, and sift-proj.npz, which has no mean."""
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(5)
    angles = np.arange(8) * (np.pi / 4)
    regions = np.column_stack([9 * np.cos(angles), 9 * np.sin(angles), np.full(8, 3)]).astype(np.float32)
    weights = np.linspace(0.5, 1, 8).astype(np.float32)
    pooling = Pooling(regions, weights, np.arange(8, dtype=np.int32), ChannelOptions())
    projection = rng.normal(size=(16, pooling.dim)).astype(np.float32)
    save_model(folder / "pooled.npz", LearntModel("pooled", pooling))
    proj = LearntModel("pooled", pooling, projection)
    views = rng.normal(128, 30, (200, 31, 31)).astype(np.float32)
    proj = replace(
        proj, mean=LearntDescriptor(proj).describe(views).mean(axis=0), covariance=np.eye(16, dtype=np.float32)
    )
    save_model(folder / "proj.npz", proj)
    save_model(folder / "coded.npz", proj.with_code(BinaryCode(proj.mean, np.eye(16, dtype=np.float32))))
    sift = rng.normal(size=(10, 128)).astype(np.float32)
    save_model(folder / "sift-proj.npz", LearntModel("sift", projection=sift))
    return folder


@pytest.mark.slow
def test_roc_draws_what_is_measured(
    folder: Path, models: Path, draw: Draw, asked: dict[str, tuple[Any, ...]], tmp_path: Path
) -> None:
    out = tmp_path / "roc.png"
    names = ("sift", str(models / "proj.npz"))
    run = draw("roc", folder, "--descriptor", names[0], "--descriptor", names[1], "--out", out)
    assert (run.code, run.out) == (0, f"{out}\n")
    assert out.read_bytes().startswith(b"\x89PNG")
    curves = asked["plot_roc"][0]
    assert list(curves) == ["sift, 128-D", "proj, 16-D"]
    for name, (distances, match) in zip(names, curves.values(), strict=True):
        report = evaluate_patches(folder, find_descriptor(name))
        np.testing.assert_array_equal(distances, report.distances)
        np.testing.assert_array_equal(match, report.match)


@pytest.mark.slow
def test_regions_and_metric_draw_what_is_in_the_file(
    models: Path, draw: Draw, asked: dict[str, tuple[Any, ...]], tmp_path: Path
) -> None:
    descriptor = find_descriptor(str(models / "proj.npz"))
    assert isinstance(descriptor, LearntDescriptor)
    model = descriptor.model
    assert model.pooling is not None and model.projection is not None

    assert draw("regions", models / "proj.npz", "--out", tmp_path / "regions.svg").code == 0
    regions, weights, radius, _ = asked["plot_pooling_regions"]
    np.testing.assert_array_equal(regions, model.pooling.regions)
    np.testing.assert_array_equal(weights, model.pooling.weights)
    assert radius == 15.5

    assert draw("metric", models / "proj.npz", "--out", tmp_path / "metric.pdf").code == 0
    metric = asked["plot_metric"][0]
    # Squared distances after the projection are those of the matrix.
    difference = np.random.default_rng(0).normal(size=model.pooling.dim)
    assert difference @ metric @ difference == pytest.approx(((model.projection @ difference) ** 2).sum(), rel=1e-4)
    assert (tmp_path / "regions.svg").stat().st_size and (tmp_path / "metric.pdf").stat().st_size


def test_a_footprint_is_of_one_descriptor_or_of_all(
    folder: Path, draw: Draw, asked: dict[str, tuple[Any, ...]], tmp_path: Path
) -> None:
    plain = ("roc", folder, "--descriptor", "sift", "--descriptor", "ssd", "--out", tmp_path / "roc.png", "--quiet")
    measured = {
        (name, share): evaluate_patches(folder, find_descriptor(name), footprint=share).distances
        for name in ("sift", "ssd")
        for share in (0.5, 1.0)
    }
    for options, shares in (("sift=0.5", (0.5, 1.0)), ("0.5", (0.5, 0.5))):
        assert draw(*plain, "--footprint", options).code == 0
        drawn = asked["plot_roc"][0].values()
        for (distances, _), name, share in zip(drawn, ("sift", "ssd"), shares, strict=True):
            np.testing.assert_array_equal(distances, measured[name, share])
    assert "names 'surf', which is no --descriptor" in draw(*plain, "--footprint", "surf=0.5").err
    assert "such as 0.65, and not 'half'" in draw(*plain, "--footprint", "sift=half").err


def test_models_draws_a_panel_for_each_stage(draw: Draw, asked: dict[str, tuple[Any, ...]], tmp_path: Path) -> None:
    records = [
        {"stage": "pooling", "dim": 200, "fpr95": 0.1, "mu": 3},
        {"stage": "projection", "dim": 40, "fpr95": 0.08},
        {"stage": "pooling", "dim": 640, "fpr95": 0.09},
    ]
    (tmp_path / "records.json").write_text(json.dumps(records))
    assert draw("models", tmp_path / "records.json", "--out", tmp_path / "models.png").code == 0
    assert asked["plot_dimension_error"][0] == {"pooling": [(200, 0.1), (640, 0.09)], "projection": [(40, 0.08)]}


def test_models_of_a_table_are_drawn_by_their_errors_on_a_test_set(
    draw: Draw, asked: dict[str, tuple[Any, ...]], tmp_path: Path
) -> None:
    table, out = tmp_path / "tested.csv", tmp_path / "models.png"
    lines = ("stage,dim,rings,mu,gamma,validation,there,chosen", "pooling,64,2,0.5,0.1,0.2,0.3,1")
    table.write_text("\n".join(lines))
    for options, error in (((), 0.3), (("--column", "validation"), 0.2)):
        assert draw("models", table, "--out", out, *options).code == 0
        assert asked["plot_dimension_error"][0] == {"pooling": [(64, error)]}
    assert "has no errors on 'rings'" in draw("models", table, "--out", out, "--column", "rings").err
    table.write_text("stage,dim\npooling,3\n")
    assert "is no table of models" in draw("models", table, "--out", out).err


def test_bits_draws_codes_beside_their_parent(
    folder: Path, models: Path, draw: Draw, asked: dict[str, tuple[Any, ...]], tmp_path: Path
) -> None:
    path = models / "proj.npz"
    command = (
        "bits",
        folder,
        "--descriptor",
        path,
        "--length",
        512,
        "--length",
        8,
        "--length",
        16,
        "--out",
        tmp_path / "bits.png",
    )
    assert draw(*command).code == 0
    bits, errors, parent = asked["plot_bits"][0]["proj"]
    assert list(bits) == [16, 512]  # a frame has no fewer vectors than dimensions
    assert parent == evaluate_patches(folder, find_descriptor(str(path))).fpr95
    # Sixteen signs are worse than the sixteen numbers; the frame's 512 come near them.
    assert errors[0] > errors[1]
    assert abs(errors[1] - parent) < 0.1
    first = asked["plot_bits"][0]
    assert draw(*command).code == 0
    assert asked["plot_bits"][0] == first


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("regions", "{models}/sift-proj.npz"), "no learnt pooling regions"),
        (("metric", "{models}/pooled.npz"), "no learnt projection"),
        (("regions", "{models}/missing.npz"), "missing.npz"),
        (("models", "{models}/missing.json"), "missing.json"),
        (("models", "{tmp}/empty.json"), "lists no model"),
        (("models", "{tmp}/other.json"), "is no list of models"),
        (("models", "{tmp}/number.json"), "is no list of models"),
        (("roc", "{models}", "--descriptor", "sift"), "info.txt"),
        (("roc", "{folder}", "--descriptor", "orb"), "orb"),
        (("weights", "{models}/proj.npz"), "no weak learners"),
        (("projections", "{models}/proj.npz"), "does not project samples on a grid"),
        (("bits", "{folder}", "--descriptor", "{models}/missing.npz"), "missing.npz"),
        (("bits", "{folder}", "--descriptor", "{models}/coded.npz"), "compressed already"),
        (("bits", "{folder}", "--descriptor", "{models}/sift-proj.npz"), "no mean"),
        (("bits", "{folder}", "--descriptor", "{models}/proj.npz", "--length", "8"), "16 dimensions"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(
    arguments: tuple[str, ...], says: str, folder: Path, models: Path, draw: Draw, tmp_path: Path
) -> None:
    for name, text in (("empty", "[]"), ("other", '[{"stage": "pooling", "dim": 3}]'), ("number", "3")):
        (tmp_path / f"{name}.json").write_text(text)
    out = tmp_path / "plot.png"
    filled = [part.format(models=models, tmp=tmp_path, folder=folder) for part in arguments]
    assert says in draw(*filled, "--out", out).refused()
    assert not out.exists()
    assert "plot.bmp" in draw(*filled, "--out", tmp_path / "plot.bmp").refused()
