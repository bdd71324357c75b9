"""Descriptors of labelled patches by boosting, of blocks and by an embedding, in Python, as called by the commands."""

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from learning.library.blocks import learn_blocks
from learning.library.boosted import learn_boosted
from learning.library.compressing import compress as compress_descriptor
from learning.library.embedding import learn_embedding
from learning.library.new_descriptor import NewDescriptor
from learning.patches.phototour import PatchSet
from retrieval.descriptors.learnt import load_model
from retrieval.descriptors.registry import find_descriptor
from retrieval.regions.patches import resample_patches
from tests.conftest import Ran
from tests.support.learning.boosting_cases import write_views

FEW = {"kind": "bgm", "learners": 8, "candidates": 60, "draws": 1, "workers": 1}
PLAIN = {"blocks": "pixels-grid-8", "embedding": "pca", "dim": 6, "powell": False, "workers": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_views(tmp_path_factory.mktemp("labelled") / "set")


@pytest.mark.parametrize(
    ("learn", "options", "arguments"),
    [
        (learn_boosted, FEW, "boosted --kind bgm --learners 8 --candidates 60 --draws 1 --workers 1"),
        (learn_blocks, PLAIN, "blocks --blocks pixels-grid-8 --embedding pca --dim 6 --no-powell --workers 1"),
        (learn_embedding, {"dim": 9}, "embedding --dim 9"),
    ],
)
def test_python_learns_what_the_command_does(
    cairn: Callable[..., Ran],
    folder: Path,
    tmp_path: Path,
    learn: Callable[..., NewDescriptor],
    options: dict[str, object],
    arguments: str,
) -> None:
    out = tmp_path / "learnt.npz"
    reported = cairn("learn", *arguments.split(), folder, "--out", out, "--json").json
    learnt = learn(folder, **options)
    assert learnt.fingerprint == reported["fingerprint"] == load_model(out).fingerprint and learnt.path is None
    assert learnt.to_dict().keys() == reported.keys() and learnt.validation == reported["validation"]
    assert inspect.signature(learn).parameters.keys() > options.keys()


def test_arrays_are_labelled_patches_too(folder: Path) -> None:
    patches = PatchSet.open(folder)
    given = patches.read(np.arange(len(patches))), patches.points
    assert learn_embedding(given, dim=5, pairs=60).describe(given[0][:3]).shape == (3, 5)


def test_an_embedding_of_the_middle_is_that_of_patches_cut_down_to_it(folder: Path) -> None:
    patches = PatchSet.open(folder)
    grey = patches.read(np.arange(len(patches)))
    # A share of 31 / 63 of the side is the samples from 16 to 47, which need no more than to be smoothed alike.
    middle = resample_patches(grey, 31, 31 / 63)
    learnt, whole = learn_embedding(folder, dim=5, footprint=31 / 63), learn_embedding(folder, dim=5)
    assert learnt.fingerprint != whole.fingerprint
    rows = find_descriptor("sift").describe(middle)
    spread = np.cov(rows.T)
    found = learnt.describe(middle)
    # The principal axes of the middles: no other five axes have more of their variance than 1% above.
    best = np.sort(np.linalg.eigvalsh(spread))[-5:].sum()
    assert 0.9 * best < np.var(found, axis=0, ddof=1).sum() <= 1.01 * best


@pytest.mark.parametrize(
    ("learn", "options", "sentence"),
    [
        (learn_boosted, {"kind": "ssc", "floor": 1.0}, "orientations and floor are of gradients: the kind ssc"),
        (learn_boosted, {"start": "a.npz", "floor": 1.0}, "are those of the start file: take them away"),
        (learn_boosted, {"patch_size": 14}, "patch_size is 15 at least, and not 14"),
        (learn_blocks, {"powell": False, "evaluations": 3}, "evaluations and powell_pairs are of no use with powell"),
        (learn_embedding, {"alpha": [0.1]}, "alpha is for embeddings that divide"),
        (learn_embedding, {"alpha": "much"}, "alpha is a number, and not 'much'"),
        (learn_embedding, {"pair_file": "m50_1_1_0.txt"}, "has no pair file m50_1_1_0.txt"),
    ],
)
def test_what_does_not_go_together_names_arguments(
    folder: Path, learn: Callable[..., NewDescriptor], options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(CairnError, match=sentence):
        learn(folder, **options)


def test_a_descriptor_is_compressed_as_by_the_command(cairn: Callable[..., Ran], folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "whole.npz"
    learn_embedding(folder, file, dim=9)
    reported = cairn("compress", file, "--out", tmp_path / "code.npz", "--bits", 16, "--json").json
    code = compress_descriptor(file, tmp_path / "again.npz", bits=16)
    assert code.fingerprint == reported["fingerprint"] == load_model(tmp_path / "again.npz").fingerprint
    assert code.to_dict().keys() == reported.keys() and (code.bytes, reported["bits"]) == (2, 16)
    for options, sentence in (({}, "Choose either bits, for"), ({"bits": 16, "out": file}, "is the descriptor itself")):
        with pytest.raises(CairnError, match=sentence):
            compress_descriptor(file, **options)  # type: ignore[arg-type]
