"""Boosted descriptors: rows compared with their definition, and files that are damaged."""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from index.errors import CairnError
from retrieval.descriptors.boosted import Boosted, WeakLearners
from retrieval.descriptors.boxes import ResponseOptions, integral_images, responses
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, load_model, save_model
from tests.retrieval.descriptors.test_learnt import npy, packed, put, with_array, with_meta, without
from tests.support.learning.learnt_models import WEAK, boosted, textures, weak_learners

PATCHES = textures(40, 31, seed=7)


class TestRows:
    def test_an_answer_is_1_where_the_response_is_at_most_the_threshold(self):
        """Equation 9, equality included."""
        learners = weak_learners()
        found = responses(integral_images(PATCHES, learners.options), learners.boxes, learners.channels)
        exact = replace(learners, thresholds=found[3])  # each threshold is what the fourth patch responds
        answers = exact.answers(PATCHES)
        np.testing.assert_array_equal(answers, np.where(found <= found[3], 1, -1))
        assert answers.dtype == np.int8 and (answers[3] == 1).all()

    def test_rows_of_bgm_are_unit_and_their_entries_the_weights_roots(self):
        model = boosted("bgm")
        rows, weights = LearntDescriptor(model).describe(PATCHES), model.base_model.learners.weights
        np.testing.assert_allclose(np.square(rows), np.tile(weights / weights.sum(), (40, 1)), rtol=1e-5)
        np.testing.assert_array_equal(np.sign(rows), model.base_model.learners.answers(PATCHES))

    def test_rows_of_an_embedding_are_the_embedded_answers(self):
        base = boosted("lbgm").base_model
        answers = base.learners.answers(PATCHES).astype(np.float64)
        np.testing.assert_allclose(base.describe(PATCHES), answers @ base.embedding.T, atol=1e-6)

    @pytest.mark.parametrize("kind", ["bgm", "ssc", "lbgm"])
    def test_a_row_is_its_answers_under_the_linear_map(self, kind):
        base = boosted(kind).base_model
        np.testing.assert_allclose(
            base.describe(PATCHES), base.learners.answers(PATCHES) @ base.linear_map().T, atol=1e-6
        )

    @pytest.mark.parametrize(("kind", "size"), [("bgm", WEAK // 8), ("ssc", WEAK // 8), ("lbgm", 160)])
    def test_an_answer_takes_a_bit_and_an_embedded_entry_four_bytes(self, kind, size):
        assert LearntDescriptor(boosted(kind)).bytes == size

    def test_the_first_learners_are_the_first_of_the_row(self):
        learners = weak_learners()
        np.testing.assert_array_equal(learners.first(50).answers(PATCHES), learners.answers(PATCHES)[:, :50])

    def test_patches_of_another_size_are_described(self):
        options = ResponseOptions(patch_size=24, orientations=6)
        descriptor = LearntDescriptor(LearntModel("boosted", base_model=Boosted("bgm", weak_learners(1, 30, options))))
        assert descriptor.patch_size == 24 and descriptor.describe(textures(5, 24)).shape == (5, 30)


def test_every_parameter_counts_in_the_fingerprint():
    model = boosted("lbgm")
    base = model.base_model
    learners = base.learners
    turned = base.embedding.copy()
    turned[0, 0] += 1e-6
    others = [
        Boosted("lbgm-diag", learners, base.embedding),
        Boosted("lbgm", learners, turned),
        Boosted("bgm", learners),
        *(
            Boosted("lbgm", replace(learners, **{name: change(getattr(learners, name))}), base.embedding)
            for name, change in {
                "boxes": lambda array: array[::-1].copy(),
                "channels": lambda array: (array + 1) % 24,
                "thresholds": lambda array: array + np.float32(1e-4),
                "weights": lambda array: array * np.linspace(1, 2, WEAK, dtype=np.float32),
                "options": lambda options: replace(options, floor=0.7),
            }.items()
        ),
    ]
    prints = {LearntModel("boosted", base_model=other).fingerprint for other in (base, *others)}
    assert len(prints) == len(others) + 1
    assert replace(model, provenance={"seed": "another"}).fingerprint == model.fingerprint


# --- Files that are damaged.


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Entries of a sound file."""
    path = tmp_path_factory.mktemp("good") / "d.npz"
    save_model(path, boosted("lbgm"))
    with zipfile.ZipFile(path) as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


def with_base(**changes):
    def changed(entries):
        meta = json.loads(entries["meta.json"])
        return {**entries, "meta.json": json.dumps(meta | {"base_model": meta["base_model"] | changes})}

    return changed


def with_responses(**changes):
    def changed(entries):
        meta = json.loads(entries["meta.json"])
        return with_base(responses=meta["base_model"]["responses"] | changes)(entries)

    return changed


ARRAYS = ("boxes", "channels", "thresholds", "alphas", "embedding")
CHANGES = {
    "no base model": with_meta(base_model=None),
    "base model of a list": with_meta(base_model=[1]),
    "another base": with_meta(base="blocks"),
    "unknown kind": with_base(kind="surf"),
    "kind of a list": with_base(kind=["lbgm"]),
    "kind without embedding": with_base(kind="bgm"),
    "later version": with_base(version=99),
    "no responses": with_base(responses=None),
    "unknown response option": with_responses(colour=3),
    "unknown family": with_responses(family="colour"),
    "family of another channel": with_responses(family="intensity"),
    "smoothing of NaN": with_responses(smoothing=float("nan")),
    "smoothing of text": with_responses(smoothing="2"),
    "endless smoothing": with_responses(smoothing=1e9),
    "floor of 0": with_responses(floor=0),
    "floor of infinity": with_responses(floor=float("inf")),
    "patches of a real number": with_responses(patch_size=31.0),
    "patches of truth": with_responses(patch_size=True),
    "smaller patches": with_responses(patch_size=16),
    "huge patches": with_responses(patch_size=100_000),
    "odd orientations": with_responses(orientations=23),
    "fewer orientations": with_responses(orientations=2),
    "far too many orientations": with_responses(orientations=10**6),
    **{f"no {name}": without(f"{name}.npy") for name in ARRAYS},
    **{
        f"{name} of {kind}": with_array(name, change)
        for name in ARRAYS
        for kind, change in {
            "objects": lambda array: array.astype(object),
            "doubles": lambda array: array.astype(np.float64),
            "text": lambda array: array.astype(str),
            "one more axis": lambda array: array[None],
            "fewer axes": lambda array: array[0],
            "no rows": lambda array: array[:0],
        }.items()
    },
    **{f"{name} of fewer rows": with_array(name, lambda array: array[:-1]) for name in ARRAYS if name != "embedding"},
    "threshold of NaN": with_array("thresholds", put(0, np.nan)),
    "embedding of infinity": with_array("embedding", put((0, 0), np.inf)),
    "embedding of other columns": with_array("embedding", lambda array: array[:, 1:]),
    "embedding of more rows than columns": with_array("embedding", lambda array: np.tile(array, (9, 1))),
    "weight of 0": with_array("alphas", put(3, 0)),
    "negative weight": with_array("alphas", put(3, -1)),
    "negative orientation": with_array("channels", put(3, -1)),
    "orientation beyond the last": with_array("channels", put(3, 24)),
    "box beyond the patch": with_array("boxes", put((3, 2), 32)),
    "box before the patch": with_array("boxes", put((3, 0), -1)),
    "empty box": with_array("boxes", put(3, (5, 5, 5, 9))),
    "turned box": with_array("boxes", put(3, (9, 5, 5, 9))),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_together_is_refused(change, good, tmp_path):
    path = tmp_path / "damaged.npz"
    path.write_bytes(packed(change(good)))
    with pytest.raises(CairnError, match=r"damaged\.npz"):
        load_model(path)


def test_more_learners_than_any_descriptor_has_are_refused(good, tmp_path):
    entries = dict(good)
    for name in ARRAYS:
        many = np.load(io.BytesIO(good[f"{name}.npy"]))
        entries[f"{name}.npy"] = npy(np.repeat(many, 50, axis=many.ndim - 1 if name == "embedding" else 0))
    (tmp_path / "many.npz").write_bytes(packed(entries))
    with pytest.raises(CairnError, match=r"many\.npz"):
        load_model(tmp_path / "many.npz")


def test_learners_are_what_the_file_says(good, tmp_path):
    path = tmp_path / "d.npz"
    path.write_bytes(packed(good))
    read, made = load_model(path).base_model, boosted("lbgm").base_model
    assert isinstance(read.learners, WeakLearners) and read.learners.options == made.learners.options
    for name in ("boxes", "channels", "thresholds", "weights"):
        np.testing.assert_array_equal(getattr(read.learners, name), getattr(made.learners, name))
    np.testing.assert_array_equal(read.embedding, made.embedding)


def test_signs_are_kept_and_are_of_a_format_of_their_own(tmp_path):
    plain = boosted("lbgm").base_model
    signs = np.where(np.arange(plain.dim) % 3 == 0, -1, 1).astype(np.float32)
    model = LearntModel("boosted", base_model=replace(plain, signs=signs))
    save_model(tmp_path / "s.npz", model)
    loaded = load_model(tmp_path / "s.npz")
    np.testing.assert_array_equal(LearntDescriptor(loaded).signs, signs)
    assert loaded.fingerprint == model.fingerprint != boosted("lbgm").fingerprint
    assert LearntDescriptor(loaded).name == "lbgm-inner"
    with zipfile.ZipFile(tmp_path / "s.npz") as archive:
        assert json.loads(archive.read("meta.json"))["format"] == 3
    for wrong in (signs[1:], 0.5 * signs, signs.astype(np.float64), signs[None]):
        save_model(tmp_path / "s.npz", LearntModel("boosted", base_model=replace(plain, signs=wrong)))
        with pytest.raises(CairnError):
            load_model(tmp_path / "s.npz")
