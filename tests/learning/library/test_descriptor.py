"""Descriptors learnt by one function, from arrays, folders and mined photos; the command learns the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cairn as public
from index.errors import CairnError
from learning.library.descriptor import learn_descriptor
from learning.library.mining import Mined, mine
from learning.library.published import published
from learning.mining.mining import MiningOptions
from learning.patches.phototour import PatchSet
from retrieval.descriptors.learnt import load_model
from retrieval.descriptors.nested import EXTENT
from tests.conftest import Ran
from tests.support.learning.boosting_cases import write_views
from tests.support.learning.unlabelled_cases import write_views as write_photos

Cairn = Callable[..., Ran]
NOISE = np.random.default_rng(0).integers(0, 256, (40, 16, 16)).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_views(tmp_path_factory.mktemp("labelled") / "set")


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Mined:
    photos = write_photos(tmp_path_factory.mktemp("mined"), "astronaut", "coffee")
    return mine(sorted(photos.glob("*.png")), inliers=20, workers=1)


def test_a_folder_gives_what_the_command_writes(cairn: Cairn, folder: Path, tmp_path: Path) -> None:
    steps: set[str] = set()
    reported = cairn(
        "learn", "descriptor", folder, "--out", tmp_path / "a.npz", "--dim", 30, "--workers", 1, "--json"
    ).json
    learnt = learn_descriptor(
        str(folder), tmp_path / "b.npz", dim=30, workers=1, progress=lambda step, *_: steps.add(step)
    )
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    differ = ("descriptor", "models", "seconds")
    assert {**learnt.to_dict(), **dict.fromkeys(differ)} == {**reported, **dict.fromkeys(differ)}
    assert steps >= {"describe", "whitening"}
    assert learnt.path == tmp_path / "b.npz" and learnt.validation == reported["validation"]
    assert (learnt.pooled_dim, learnt.dim, learnt.rings, learnt.verdict) == (128, reported["dim"], 0, None)
    assert learnt.projection.dim == learnt.dim and learnt.pooling is None and len(learnt.tried) == reported["tried"]


def test_arrays_are_learnt_from_as_a_folder_is(folder: Path, tmp_path: Path) -> None:
    patches = PatchSet.open(folder)
    grey = patches.read(np.arange(len(patches)))
    before = set(Path.cwd().iterdir())
    learnt = learn_descriptor((grey, patches.points), dim=30, workers=1)
    assert set(Path.cwd().iterdir()) == before and learnt.to_dict()["models"] is None
    rootsift, pairs = public.Descriptor.load("rootsift"), (grey, patches.points)
    assert public.evaluate_patches(learnt, pairs).auc > public.evaluate_patches(rootsift, pairs).auc
    again = learn_descriptor((grey, patches.points), dim=30, workers=1)
    assert again.fingerprint == learnt.fingerprint
    assert load_model(learnt.save(tmp_path / "d.npz")).fingerprint == learnt.fingerprint
    kept = public.Descriptor.load(tmp_path / "d.npz")
    np.testing.assert_array_equal(kept.describe(grey[:9]), learnt.describe(grey[:9]))
    assert public.NewDescriptor.load("sift").name == "sift"
    with pytest.raises(CairnError, match="must end with"):
        learnt.save(tmp_path / "d.txt")


def test_photos_without_labels(mined: Mined, tmp_path: Path) -> None:
    assert mined.pairs == 6 and mined.to_dict()["image_pairs_kept"] == 6 and mined.to_dict()["photos"] == 6
    matches = mined.matches
    assert (matches.features, len(matches.positive_patches)) == (mined.features, mined.positives)
    learnt = learn_descriptor(mined, samples=300, share=[0.8], workers=1, work=tmp_path / "work")
    assert learnt.outcome in ("better", "worse", "same", "mixed") and learnt.verdict and learnt.details
    assert 0.5 < learnt.validation["recall"] <= 1
    assert learnt.extent == 1.45 and (tmp_path / "work" / "records.json").is_file()
    from_file = learn_descriptor(mined.path, samples=300, share=[0.8], workers=1, work=tmp_path / "work")
    assert from_file.fingerprint == learnt.fingerprint


def test_matches_in_a_temporary_folder_go_with_their_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = write_photos(tmp_path / "photos", "coffee")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = mine(photos, inliers=20, workers=1)
    path = found.path
    assert path.is_file() and path.parent.parent == tmp_path
    del found
    assert not path.parent.exists()
    with pytest.raises(CairnError, match="that agree"):
        mine(photos, inliers=100_000, workers=1)
    assert list(tmp_path.iterdir()) == [photos]


@pytest.mark.slow
def test_nested_rootsift_is_learnt_of_larger_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = write_photos(tmp_path / "photos", "coffee")
    with public.create(tmp_path / "c.cairn", words=20) as collection:
        collection.add(photos, workers=1)
        extents = []

        def caught(source: Any, out: Path, options: MiningOptions, **_: Any) -> None:
            extents.append(options.extent)
            raise CairnError("enough")

        monkeypatch.setattr("learning.library.from_photos.mine_matches", caught)
        for base in (None, "nested"):
            with pytest.raises(CairnError, match="enough"):
                learn_descriptor(collection, base=base, work=tmp_path / "work", workers=1)
    assert extents == [MiningOptions().extent, EXTENT]


def test_a_papers_choices_are_under_what_is_given() -> None:
    @published(lambda values: {"inliers": 51 + values["pairs"], "model": "affine"})
    def asked(pairs: int = 1, *, inliers: int = 50, model: str = "projective", as_published: bool = False) -> Any:
        return inliers, model

    assert asked() == (50, "projective")
    assert asked(2, as_published=True) == (53, "affine")
    assert asked(inliers=50, as_published=True) == (50, "affine")


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ("nowhere", {}, "no folder of patches"),
        ([], {}, "source must be one path at least"),
        (3, {}, "source must be a path"),
        (["a.npz", "b"], {}, "together with something else"),
        ((NOISE, np.arange(3)), {}, "point_ids"),
        ((NOISE, np.arange(40) // 2), {"out": "d.txt"}, "must end with .npz"),
        ((NOISE, np.arange(40) // 2), {"stage": "all"}, "no stage 'all'"),
        ((NOISE, np.arange(40) // 2), {"judge": False}, "photos without labels"),
        ((NOISE, np.arange(40) // 2), {"progress": "yes"}, "progress is None"),
        ((NOISE, np.arange(40) // 2), {"mu": np.array([0.0, 1.0])}, "above 0"),
        ((NOISE, np.arange(40) // 2), {"gamma": "fast"}, "gamma is a number, and not "),
        ((NOISE, np.arange(40) // 2), {"seed": -1}, "seed is 0 at least"),
        ((NOISE, np.arange(40) // 2), {"stage": "whitening", "as_published": True}, "no whitening"),
        ("a.npz", {"augment": 1}, "labelled patches"),
        ("a.npz", {"photos": "b"}, "goes with report"),
        ("a.npz", {}, "a.npz"),
    ],
)
def test_what_cannot_be_learnt_from_is_said(source: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        learn_descriptor(source, **options)


@pytest.mark.parametrize(
    ("photos", "options", "sentence"),
    [
        ("nowhere", {}, "nowhere"),
        (3, {}, "photos must be a path"),
        ([], {}, "one path at least"),
        (".", {"out": "m.txt"}, "must end with .npz"),
        (".", {"out": "nowhere/m.npz"}, "is not a folder"),
        (".", {"views": 3}, "without it no view is rendered"),
        (".", {"geometry": "views", "pairs": 3}, "has none"),
    ],
)
def test_what_cannot_be_mined_is_said(
    photos: Any, options: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CairnError, match=sentence):
        mine(photos, **options)
