"""--as-published: settings are those of the papers, explicit options win, and all are reported."""

import csv
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.errors import CairnError
from learning.commands.descriptor import descriptor
from learning.commands.labelled import blocks, boosted
from learning.commands.mine import mine
from learning.library import published as module
from learning.library.published import of_descriptors, of_mining, published_mining
from learning.mining.mining import MiningOptions
from learning.patches.phototour import PatchSet, write_pairs
from retrieval.descriptors.boosted import Boosted
from retrieval.descriptors.learnt import LearntDescriptor, load_model
from tests.conftest import Ran
from tests.support.learning.boosting_cases import write_views

Cairn = Callable[..., Ran]
MATCHES = [Path("matches.npz")]


def values(**given: Any) -> dict[str, Any]:
    usual = {"stage": None, "base": None, "pooling": None, "powell": True, "kind": "lbgm", "start": None}
    return {**usual, "detector": None, "geometry": "homography", "sources": [Path("set")], **given}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set whose validation pairs are also test pairs."""
    folder = write_views(tmp_path_factory.mktemp("published") / "set")
    patches = PatchSet.open(folder)
    pairs = patches.pairs("validation")
    write_pairs(folder, 2, pairs.first, pairs.second, patches.points)
    return folder


GRIDS = ("mu", "gamma", "projection_mu", "projection_gamma")


class TestChoices:
    def test_labelled_patches(self) -> None:
        found = of_descriptors(values())
        wanted = {"stage": "both", "patch_size": 64, "augment": 0, "power": 1.0, "quantile": 0.8, "keep": 0.0}
        assert found.items() >= {**wanted, "balanced": False, "symmetric": True, "pool_step": 0.5}.items()
        assert found.keys() == {*wanted, "balanced", "symmetric", "pool_step", *GRIDS}
        # From models that drop nearly all to models that keep nearly all.
        assert all(found[name] == sorted({*found[name]}, reverse=True) for name in ("mu", "projection_mu"))
        assert max(found["mu"]) == 0.9 and min(found["mu"]) == 0.05
        of_sift = of_descriptors(values(base="rootsift"))
        assert of_sift["stage"] == "projection" and of_sift.keys().isdisjoint({"patch_size", "power", "mu"})
        with pytest.raises(CairnError, match="no whitening"):
            of_descriptors(values(stage="whitening"))

    def test_matches_without_labels(self) -> None:
        found = of_descriptors(values(sources=MATCHES))
        assert found.keys() >= {"samples", "rounds", "alternations", "power"}
        assert found.keys().isdisjoint({"patch_size", "augment", "geometry"})
        mined = of_mining(values())
        assert (mined["inliers"], mined["model"], mined["propose"], mined["extent"]) == (51, "affine", "random", 1)
        assert mined["measurement_scale"] == 12.5
        assert of_mining(values(detector="hessian-affine"))["measurement_scale"] is None
        options = published_mining(MiningOptions())
        assert (options.descriptor, options.extent, options.map.model) == ("sift", 1.0, "affine")
        # "Larger than a threshold (set to 50)"; and no region is left out where photos are matched.
        assert (options.map.inliers, options.map.strongest) == (51, 0)
        assert "propose" not in of_mining(values(geometry="views"))
        assert published_mining(MiningOptions(geometry="views")).propose is None

    def test_every_choice_is_an_option(self) -> None:
        for command, choices in (
            (descriptor, of_descriptors(values())),
            (descriptor, of_descriptors(values(sources=MATCHES))),
            (mine, of_mining(values())),
            (blocks, module.of_blocks(values())),
            (boosted, module.of_boosting(values())),
        ):
            assert inspect.signature(command).parameters.keys() >= choices.keys()


HASTY = ("--pool-step", 12, "--max-pooled-dim", 700, "--mu", 0.8, "--gamma", 0.3, "--hours", 1e-9)
PROJECTED = ("--projection-mu", 0.002, "--projection-gamma", 0.1, "--dim", 200)


def test_a_descriptor_of_labelled_patches(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    out, work = tmp_path / "d.npz", tmp_path / "work"
    command = ("learn", "descriptor", folder, "--out", out, "--work", work, "--as-published", "--workers", 1, "--json")
    given = (*HASTY, *PROJECTED, "--pairs", 60, "--quantile", 0.6, "--test", folder)
    output = cairn(*command, *given).json
    model = load_model(out)
    assert model.provenance["as_published"] == "Simonyan14"
    assert model.pooling is not None
    channels = model.pooling.channels
    assert (channels.patch_size, channels.power, channels.quantile) == (64, 1.0, 0.6)  # the last one is explicit
    assert channels.smoothing == pytest.approx(2 * 64 / 31)
    options = model.provenance["options"]
    selection, pool = options["selection"], options["pool"]
    assert (selection["mus"], selection["gammas"], selection["keep"], selection["balanced"]) == ([0.8], [0.3], 0, False)
    assert (pool["patch_size"], options["augmentation"]["copies"]) == (64, 0)
    # Every model tried is measured on the test pairs, as by the public interface.
    stages = [one["stage"] for one in output["tested"]]
    assert stages[0] == "pooling" and set(stages[1:]) == {"projection"} and len(stages) == output["tried"]
    measured = cairn("evaluate", "patches", folder, "--descriptor", out, "--json").json["fpr95"]
    assert output["test"]["projection"]["set"] == pytest.approx(measured, abs=0.02)
    with Path(output["table"]).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["chosen"] for row in rows].count("1") == 2 and rows[0]["set"] == str(output["test"]["pooling"]["set"])
    again = cairn(*command, *given).json  # nothing is learnt or measured again
    assert again["tested"] == output["tested"] and again["fingerprint"] == output["fingerprint"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--as-published", "--stage", "whitening"], "no whitening"),
        (["--as-published", "--stage", "pooling", "--projection-mu", 0.1], "of projections"),
        (["--stage", "projection", "--base", "sift", "--mu", 0.1], "of pooling regions"),
        (["--base", "sift", "--stage", "projection", "--patch-size", 64], "takes none"),
        (["--mu", 0], "must be above 0"),
        (["--samples", 10], "are for photos without labels"),
        (["--stage", "whitening", "--test", "SET", "--test", "SET"], "have the same name"),
        (["--stage", "whitening", "--test", "nowhere"], "no folder of patches"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_what_contradicts_itself_is_refused(
    cairn: Cairn, folder: Path, tmp_path: Path, arguments: list[object], words: str
) -> None:
    given = [folder if one == "SET" else one for one in arguments]
    command = (
        "learn",
        "descriptor",
        folder,
        "--out",
        tmp_path / "d.npz",
        "--pairs",
        20,
        "--augment",
        0,
        "--workers",
        1,
    )
    assert words in " ".join(cairn(*command, *given).refused().split())
    assert not (tmp_path / "d.learning").exists()  # nothing was learnt before


@pytest.mark.slow
def test_boosted_descriptors_are_compared_by_signed_inner_products(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "b.npz"
    few = ("--learners", 12, "--dim", 12, "--candidates", 80, "--draws", 1, "--orientations", 8, "--workers", 1)
    output = cairn(
        "learn", "boosted", folder, "--out", out, "--as-published", *few, "--epochs", 30, "--step", 0.4, "--json"
    ).json
    model = load_model(out)
    assert isinstance(model.base_model, Boosted)
    options = model.provenance["options"]
    assert (options["metric"]["form"], options["metric"]["comparison"], options["metric"]["offset"]) == (
        "inner", "inner", False,
    )  # fmt: skip
    assert (options["responses"]["orientations"], options["responses"]["patch_size"]) == (8, 64)
    signs = model.base_model.signs
    assert signs is not None and output["name"] == "lbgm-inner" and set(signs) <= {-1.0, 1.0}
    # With all dimensions f of equation 7 is that of equation 4, whose error learning reported.
    assert output["validation"]["fpr95"] == pytest.approx(output["validation"]["similarity_fpr95"], abs=0.02)
    measured = cairn("evaluate", "patches", folder, "--descriptor", out, "--json").json
    assert measured["comparison"] == "inner" and measured["fpr95"] == pytest.approx(output["validation"]["fpr95"])
    pairs = PatchSet.open(folder).pairs("test")
    rows = LearntDescriptor(model).describe(PatchSet.open(folder).read(np.arange(len(PatchSet.open(folder)))))
    similar = (rows[pairs.first] * signs * rows[pairs.second]).sum(axis=1)
    assert similar[pairs.match].mean() > similar[~pairs.match].mean()
    for command in (("compress", out, "--out", tmp_path / "c.npz", "--bits", 64), ("index", tmp_path / "c", folder)):
        more = ("--descriptor", out) if command[0] == "index" else ()
        assert "signed inner product" in cairn(*command, *more).refused()
    assert "signed inner product" in cairn("evaluate", "bits", folder, "--descriptor", out).refused()
    # Explicit options win, also over the paper's settings that depend on the overridden choice.
    given = cairn("learn", "boosted", folder, "--out", out, "--as-published", *few, "--form", "distance", "--json").json
    assert given["name"] == "lbgm" and load_model(out).provenance["options"]["metric"]["form"] == "distance"
    words = ("learn", "boosted", folder, "--out", out, *few, "--comparison", "inner")
    assert "with the form inner" in " ".join(cairn(*words).refused().split())


def test_blocks_and_sift_by_an_embedding(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "e.npz"
    arguments = ("--blocks", "pixels-grid-8", "--embedding", "glde", "--dim", 6, "--no-powell", "--json")
    output = cairn("learn", "blocks", folder, "--out", out, *arguments, "--as-published").json
    model = load_model(out)
    assert output["dim"] == 6 and model.provenance["as_published"] == "Brown11"
    assert model.provenance["options"]["centre"] is False and model.base_model.mean is None  # type: ignore[union-attr]
    for name in ("pca", "glde"):
        output = cairn("learn", "embedding", folder, "--out", out, "--embedding", name, "--dim", 9, "--json").json
        model = load_model(out)
        assert (model.base, output["dim"], output["embedding"]) == ("sift", 9, name)
        assert model.projection is not None
        if name == "pca":
            np.testing.assert_allclose(model.projection @ model.projection.T, np.eye(9), atol=1e-5)
        measured = cairn("evaluate", "patches", folder, "--descriptor", out, "--pairs", "validation", "--json").json
        assert measured["fpr95"] == pytest.approx(output["validation"]["fpr95"], abs=0.01)
    assert "takes none" in cairn("learn", "embedding", folder, "--out", out, "--alpha", 0.1).refused()
    assert "no base 'surf'" in cairn("learn", "embedding", folder, "--out", out, "--base", "surf").refused()
