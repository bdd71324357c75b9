"""Descriptor files: what is written is read, what is damaged is refused, and applying one needs no learning code."""

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from index.errors import CairnError
from index.vocabulary import Vocabulary
from learning.measures.roc import fpr95
from retrieval.collection.collection import Collection
from retrieval.collection.layout import DESCRIPTOR
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, load_model, read_model_file, save_model
from retrieval.descriptors.pooling import normalised_channels, pool, region_kernels
from retrieval.descriptors.registry import find_descriptor
from retrieval.descriptors.sift import Sift
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.photos.options import ImageOptions
from retrieval.regions.patches import resample_patches
from scripts.peers import Peer
from tests.support.learning import learnt_models
from tests.support.learning.learnt_models import cases, textures
from tests.support.paths import ROOT

CASES = cases()
every_model = pytest.mark.parametrize("model", [case.model for case in CASES.values()], ids=CASES)


def arrays_of(model):
    arrays = {"projection": model.projection, "mean": model.mean, "covariance": model.covariance}
    arrays["centre"] = model.centre
    if model.pooling is not None:
        arrays |= {"regions": model.pooling.regions, "weights": model.pooling.weights, "rings": model.pooling.rings}
    if model.code is not None:
        arrays |= {f"code {name}": array for name, array in model.code.arrays().items()}
    return {name: array for name, array in arrays.items() if array is not None}


class TestFile:
    @every_model
    def test_what_is_written_is_read(self, model, tmp_path):
        path = tmp_path / "descriptor.npz"
        save_model(path, model)
        read = load_model(path)
        assert (read.base, read.name, read.fingerprint) == (model.base, model.name, model.fingerprint)
        assert read.provenance == model.provenance
        expected, found = arrays_of(model), arrays_of(read)
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
        if model.pooling is not None:
            assert read.pooling.channels == model.pooling.channels
        patches = textures(30, 31)
        rows = LearntDescriptor(model).describe(patches)
        by_name = find_descriptor(str(path))
        np.testing.assert_array_equal(by_name.describe(patches), rows)
        np.testing.assert_array_equal(find_descriptor("descriptor.npz", tmp_path).describe(patches), rows)
        assert by_name.extent == model.extent
        assert (by_name.dim, by_name.bytes, by_name.name) == (rows.shape[1], LearntDescriptor(model).bytes, model.name)

    @every_model
    def test_the_same_model_is_the_same_file(self, model, tmp_path, monkeypatch):
        paths = tmp_path / "one.npz", tmp_path / "two.npz"
        save_model(paths[0], model)
        later = time.time() + 1e6
        monkeypatch.setattr(time, "time", lambda: later)
        save_model(paths[1], load_model(paths[0]))
        assert paths[0].read_bytes() == paths[1].read_bytes() == read_model_file(paths[1])
        assert sorted(path.name for path in tmp_path.iterdir()) == ["one.npz", "two.npz"]

    def test_only_what_earlier_versions_cannot_read_is_of_a_format_that_they_refuse(self, tmp_path):
        formats = {}
        for name, model in (("old", learnt_models.projected("rootsift")), ("new", learnt_models.whitened())):
            save_model(tmp_path / f"{name}.npz", model)
            with np.load(tmp_path / f"{name}.npz") as file:
                formats[name] = json.loads(file["meta.json"])["format"]
        assert formats == {"old": 1, "new": 2}

    def test_numpy_reads_it_without_pickle(self, tmp_path):
        save_model(tmp_path / "d.npz", learnt_models.binary())
        with np.load(tmp_path / "d.npz", allow_pickle=False) as file:
            assert {"regions", "weights", "rings", "projection", "mean", "covariance"} < set(file.files)
            assert json.loads(file["meta.json"])["base"] == "pooled"

    def test_a_folder_that_is_not_there_is_told(self, tmp_path):
        with pytest.raises(CairnError, match="nowhere"):
            save_model(tmp_path / "nowhere" / "d.npz", learnt_models.projected())


class TestFingerprint:
    def test_every_parameter_counts(self):
        model = learnt_models.projected()
        layout, turned = model.pooling, model.projection.copy()
        turned[0, 0] += 1e-6
        others = [
            replace(model, projection=turned),
            replace(model, projection=model.projection[:-1]),
            replace(model, projection=None),
            LearntModel("rootsift"),
            LearntModel("sift"),
            replace(model, pooling=replace(layout, regions=layout.regions + np.float32(1e-4))),
            replace(model, pooling=replace(layout, weights=layout.weights * np.float32(1.001))),
            learnt_models.binary(),
            learnt_models.binary(bits=64),
            learnt_models.product(),
            learnt_models.product(rotated=False),
            replace(model, centre=model.mean),
            replace(model, extent=1.5),
        ]
        changes = {"smoothing": 0.5, "quantile": 0.65, "floor": 1.5, "power": 0.25}
        for name, value in changes.items():
            assert getattr(layout.channels, name) != value
            changed = replace(layout, channels=replace(layout.channels, **{name: value}))
            others.append(replace(model, pooling=changed))
        assert len({model.fingerprint} | {other.fingerprint for other in others}) == len(others) + 1

    def test_where_it_came_from_does_not(self):
        model = learnt_models.projected()
        assert replace(model, provenance={"trained_on": "elsewhere"}).fingerprint == model.fingerprint
        assert replace(model, mean=None, covariance=None).fingerprint == model.fingerprint
        assert learnt_models.projected().fingerprint == model.fingerprint


class TestRows:
    def test_they_are_the_pooled_ones_weighted_and_projected(self):
        """√w per region (equation 2), then W (equation 8)."""
        model, patches = learnt_models.projected(), textures(300, 31)
        layout = model.pooling
        channels = normalised_channels(patches, layout.channels)
        pooled = pool(channels, region_kernels(layout.regions, 31), layout.channels.power).reshape(300, -1, 8)
        weighted = (pooled * np.sqrt(layout.weights)[:, None]).reshape(300, -1)
        descriptor = LearntDescriptor(model)
        np.testing.assert_allclose(descriptor.base_rows(patches), weighted, atol=1e-6)
        np.testing.assert_allclose(descriptor.describe(patches), weighted @ model.projection.T, atol=1e-6)
        assert descriptor.dim == 40 and descriptor.bytes == 160

    @pytest.mark.parametrize("base", ["rootsift", "sift"])
    def test_a_projection_of_sift_is_one(self, base):
        model, patches = learnt_models.projected(base), textures(40, 31)
        expected = Sift(root=base == "rootsift").describe(patches) @ model.projection.T
        np.testing.assert_allclose(LearntDescriptor(model).describe(patches), expected, atol=1e-6)

    @pytest.mark.parametrize("model", [learnt_models.binary(), learnt_models.product()], ids=["binary", "product"])
    def test_coded_ones_are_those_of_the_code(self, model):
        patches, descriptor = textures(40, 31), LearntDescriptor(model)
        plain = LearntDescriptor(replace(model, code=None)).describe(patches)
        np.testing.assert_array_equal(descriptor.describe_uncoded(patches), plain)
        np.testing.assert_array_equal(descriptor.describe(patches), model.code.apply(plain))
        packed = descriptor.encode(patches)
        assert packed.shape == (40, descriptor.bytes) and packed.dtype == np.uint8
        np.testing.assert_array_equal(model.code.decode(packed), descriptor.describe(patches))

    def test_centred_ones_are_of_unit_length_about_the_centre(self):
        model = learnt_models.whitened()
        patches = textures(60, 31)
        rows = LearntDescriptor(model).describe(patches)
        around = Sift(root=True).describe(patches).astype(np.float64) @ model.projection.T - model.centre
        np.testing.assert_allclose(rows, around / np.linalg.norm(around, axis=1, keepdims=True), atol=1e-5)

    @every_model
    def test_half_a_turn_is_that_of_the_patch_or_not_told(self, model):
        described, patches = LearntDescriptor(model), textures(20, 31, seed=5)
        upright, turned = described.describe_both(patches)
        np.testing.assert_array_equal(upright, described.describe(patches))
        assert (turned is None) == (model.base not in ("sift", "rootsift", "nested"))
        if turned is not None:
            expected = described.describe(np.ascontiguousarray(patches[:, ::-1, ::-1]))
            np.testing.assert_allclose(turned, expected, atol=1e-5)

    def test_what_has_no_code_packs_nothing(self):
        with pytest.raises(ValueError, match="no code"):
            LearntDescriptor(learnt_models.projected()).encode(textures(1, 31))


# --- Files that are damaged, or are something else.


def packed(entries, compression=zipfile.ZIP_DEFLATED):
    """A zip file of named bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, contents in entries.items():
            archive.writestr(name, contents)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def header(shape, descr="<f4"):
    """A .npy file that promises an array of this shape, and holds none of it."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Entries of sound files by the name of their model."""
    folder = tmp_path_factory.mktemp("good")
    found = {}
    for name, case in CASES.items():
        save_model(folder / "d.npz", case.model)
        with zipfile.ZipFile(folder / "d.npz") as archive:
            found[name] = {entry: archive.read(entry) for entry in archive.namelist()}
    return found


def array_in(entries, name):
    return np.lib.format.read_array(io.BytesIO(entries[f"{name}.npy"]))


def with_array(name, change):
    """Replaces an array by what a function makes of it."""
    return lambda entries: {**entries, f"{name}.npy": npy(change(array_in(entries, name)))}


def with_meta(**changes):
    def changed(entries):
        return {**entries, "meta.json": json.dumps(json.loads(entries["meta.json"]) | changes)}

    return changed


def with_channels(**changes):
    def changed(entries):
        meta = json.loads(entries["meta.json"])
        return {**entries, "meta.json": json.dumps(meta | {"channels": meta["channels"] | changes})}

    return changed


def without(name):
    return lambda entries: {entry: contents for entry, contents in entries.items() if entry != name}


def put(row, value):
    def changed(array):
        array = array.copy()
        array[row] = value
        return array

    return changed


ARRAYS = ("regions", "weights", "rings", "projection", "code_frame", "code_mean")
CHANGES = {
    "no description": without("meta.json"),
    "description of no JSON": lambda entries: {**entries, "meta.json": b"{"},
    "description of no UTF-8": lambda entries: {**entries, "meta.json": b"\xff\xfe\x00{}"},
    "description of a list": lambda entries: {**entries, "meta.json": b"[]"},
    "deep description": lambda entries: {**entries, "meta.json": b"[" * 200_000},
    "later format": with_meta(format=999),
    "format of text": with_meta(format="1"),
    "unknown base": with_meta(base="surf"),
    "base of a list": with_meta(base=["pooled"]),
    "base of rootsift": with_meta(base="rootsift"),
    "no channels": with_meta(channels=None),
    "extent of nothing": with_meta(extent=0),
    "negative extent": with_meta(extent=-1.5),
    "endless extent": with_meta(extent=1e6),
    "extent of NaN": with_meta(extent=float("nan")),
    "extent of truth": with_meta(extent=True),
    "extent of text": with_meta(extent="1.5"),
    "code of no kind": with_meta(code={"kind": "magic", "bits": 256}),
    "code of other bits": with_meta(code={"kind": "binary", "bits": 8}),
    "code of another kind": with_meta(code={"kind": "product", "bits": 64}),
    "code of text": with_meta(code="binary"),
    "unknown channel option": with_channels(colour=3),
    "channels of NaN": with_channels(smoothing=float("nan")),
    "channels of infinity": with_channels(floor=float("inf")),
    "channels of text": with_channels(smoothing="0.7"),
    "channels of truth": with_channels(orientations=True),
    "negative smoothing": with_channels(smoothing=-1),
    "endless smoothing": with_channels(smoothing=9e5),
    "quantile of 0": with_channels(quantile=0),
    "quantile above 1": with_channels(quantile=1.5),
    "patches of a fraction": with_channels(patch_size=31.5),
    "patches of a real number": with_channels(patch_size=31.0),
    "huge patches": with_channels(patch_size=100_000),
    "no orientations": with_channels(orientations=0),
    "other orientations": with_channels(orientations=9),
    "orientations of a real number": with_channels(orientations=8.0),
    **{f"no {name}": without(f"{name}.npy") for name in ARRAYS},
    **{
        f"{name} of {kind}": with_array(name, change)
        for name in ARRAYS
        for kind, change in {
            "objects": lambda array: array.astype(object),
            "doubles": lambda array: array.astype(np.float64),
            "halves": lambda array: array.astype(np.float16),
            "complex numbers": lambda array: array.astype(np.complex64),
            "text": lambda array: array.astype(str),
            "fewer rows": lambda array: array[:-1],
            "no rows": lambda array: array[:0],
            "one more axis": lambda array: array[None],
            "fewer axes": lambda array: array[0],
            "records": lambda array: np.zeros(array.shape, [("a", "<f4"), ("b", "<i4")]),
        }.items()
    },
    **{
        f"{name} with {kind}": with_array(name, put(0, value))
        for name in ARRAYS
        if name != "rings"
        for kind, value in {"NaN": np.nan, "infinity": np.inf}.items()
    },
    "a weight of 0": with_array("weights", put(3, 0)),
    "a negative weight": with_array("weights", put(3, -1)),
    "a region without extent": with_array("regions", put((3, 2), 0)),
    "projection of other columns": with_array("projection", lambda array: array[:, 1:]),
    "mean of another length": with_array("mean", lambda array: array[1:]),
    "covariance of another size": with_array("covariance", lambda array: array[1:]),
    "mean of text": with_array("mean", lambda array: array.astype(str)),
    "covariance of objects": with_array("covariance", lambda array: array.astype(object)),
    "an array cut short": lambda entries: {**entries, "weights.npy": entries["weights.npy"][:-5]},
    "an array without header": lambda entries: {**entries, "weights.npy": b"weights"},
    "an array that promises too much": lambda entries: {**entries, "projection.npy": header((1 << 40, 136))},
    "an array larger than numbers go": lambda entries: {**entries, "projection.npy": header((1 << 62, 1 << 62))},
    "an array of no size": lambda entries: {**entries, "projection.npy": header((-1, 136))},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_together_is_refused(change, good, tmp_path):
    path = tmp_path / "damaged.npz"
    path.write_bytes(packed(change(good["pooled-proj-binary"])))
    with pytest.raises(CairnError, match=r"damaged\.npz|code is damaged"):
        load_model(path)


@pytest.mark.parametrize(
    "change",
    [
        with_array("centre", lambda array: array[1:]),
        with_array("centre", lambda array: array[None]),
        with_array("centre", lambda array: array.astype(np.float64)),
        with_array("centre", put(0, np.nan)),
        without("projection.npy"),
    ],
    ids=["short", "of two axes", "of doubles", "with NaN", "of no projection"],
)
def test_a_centre_that_does_not_fit_is_refused(change, good, tmp_path):
    (tmp_path / "damaged.npz").write_bytes(packed(change(good["rootsift-white"])))
    with pytest.raises(CairnError, match=r"damaged\.npz"):
        load_model(tmp_path / "damaged.npz")


def test_arrays_of_objects_are_never_unpickled(good, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    trap = np.empty((17,), object)
    trap[:] = [Trap() for _ in range(17)]
    path = tmp_path / "trap.npz"
    for name in ("weights", "mean", "surplus"):
        path.write_bytes(packed({**good["pooled-proj"], f"{name}.npy": npy(trap)}))
        with pytest.raises(CairnError, match=r"trap\.npz"):
            load_model(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.slow
def test_a_file_that_unpacks_to_far_more_is_refused_unread(good, tmp_path):
    path = tmp_path / "bomb.npz"
    path.write_bytes(packed({**good["pooled-proj"], "surplus.npy": bytes((1 << 28) + 1)}))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(CairnError, match=r"bomb\.npz"):
        load_model(path)
    with path.open("wb") as file:  # and one that is as large itself, of nothing
        file.truncate((1 << 28) + 1)
    with pytest.raises(CairnError, match=r"bomb\.npz"):
        load_model(path)


OTHERS = {
    "nothing": b"",
    "text": b"not a descriptor\n" * 50,
    "an array": npy(np.zeros((3, 3))),
    "a pickle": b"\x80\x04K\x01.",
    "an empty archive": packed({}),
    "another archive": packed({"word/document.xml": b"<w/>", "mimetype": b"text"}),
    "arrays alone": packed({"regions.npy": npy(np.zeros((3, 3), np.float32))}),
}


@pytest.mark.parametrize("contents", OTHERS.values(), ids=OTHERS)
def test_what_is_no_descriptor_is_refused(contents, tmp_path):
    path = tmp_path / "other.npz"
    path.write_bytes(contents)
    for read in (load_model, read_model_file, lambda where: find_descriptor(str(where))):
        with pytest.raises(CairnError, match=r"other\.npz"):
            read(path)


def test_what_is_not_there_or_cannot_be_read_is_told(tmp_path):
    with pytest.raises(CairnError, match=r"no descriptor file .*missing\.npz"):
        load_model(tmp_path / "missing.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(CairnError, match=r"folder\.npz"):
        load_model(tmp_path / "folder.npz")


@pytest.mark.parametrize("name", CASES)
def test_a_file_cut_short_anywhere_is_refused(name, good, tmp_path):
    whole = packed(good[name])
    path = tmp_path / "short.npz"
    for length in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(CairnError):
            load_model(path)


@pytest.mark.slow
@given(data=st.data())
def test_bytes_that_changed_are_refused_or_make_no_difference(data, tmp_path_factory, good):
    """Whatever happens to a file, it gives a descriptor or a CairnError; nothing else ever comes out."""
    name = data.draw(st.sampled_from(sorted(CASES)))
    compression = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    contents = bytearray(packed(good[name], compression))
    # Most of a file is numbers, which its checksums guard; what is reported of them lies at its ends.
    back = st.integers(1, min(900, len(contents))).map(lambda number: -number)
    places = st.integers(0, len(contents) - 1) | st.integers(0, 300) | back
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        contents[place] = value
    path = tmp_path_factory.getbasetemp() / "mutated.npz"
    path.write_bytes(bytes(contents))
    try:
        model = load_model(path)
    except CairnError:
        return
    rows = LearntDescriptor(model).describe(textures(2, model.pooling.channels.patch_size if model.pooling else 31))
    assert np.isfinite(rows).all()


@pytest.mark.slow
@given(data=st.data())
def test_contents_that_changed_are_refused_or_can_be_applied(data, tmp_path_factory, good):
    """The same behind sound checksums: whatever a file says, it is refused as a whole or describes patches."""
    entries = dict(good[data.draw(st.sampled_from(sorted(CASES)))])
    entry = data.draw(st.sampled_from(sorted(entries)))
    contents = bytearray(entries[entry])
    places = st.integers(0, len(contents) - 1) | st.integers(0, min(130, len(contents) - 1))
    values = st.integers(0, 255) | st.sampled_from(list(b"0123456789<>fi,()"))
    for place, value in data.draw(st.lists(st.tuples(places, values), min_size=1, max_size=3)):
        contents[place] = value
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    path.write_bytes(packed({**entries, entry: bytes(contents)}, zipfile.ZIP_STORED))
    try:
        model = load_model(path)
    except CairnError:
        return
    with np.errstate(all="ignore"):
        descriptor = LearntDescriptor(model)
        rows = descriptor.describe(textures(2, descriptor.patch_size))
    assert rows.shape == (2, descriptor.dim) and rows.dtype == np.float32


# --- In use.


def test_applying_one_imports_nothing_of_learning(tmp_path):
    for name, case in CASES.items():
        save_model(tmp_path / f"{name}.npz", case.model)
    program = """
import sys
from pathlib import Path
import numpy as np
from retrieval.descriptors.registry import find_descriptor
import retrieval.collection.collection, retrieval.indexing.adding, retrieval.search.searcher
patches = np.random.default_rng(0).uniform(0, 255, (3, 31, 31)).astype(np.float32)
for path in sorted(Path(sys.argv[1]).glob("*.npz")):
    descriptor = find_descriptor(str(path))
    print(descriptor.name, descriptor.describe(patches).shape[0])
extra = [name for name in sys.modules if name.split(".")[0] in ("learning", "eval", "cvxpy", "matplotlib")]
assert not extra, extra
"""
    output = subprocess.run(
        [sys.executable, "-c", program, tmp_path], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert sorted(output.splitlines()) == sorted(f"{name} 3" for name in CASES)


SMALL = CollectionOptions(words=120, iterations=3, image=ImageOptions(max_side=200), signature="none")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for number, texture in enumerate(textures(4, 200, seed=8, sigma=3)):
        cv2.imwrite(str(folder / f"{number}.png"), texture)
    return folder


class TestCollection:
    @pytest.fixture
    def made(self, photos, tmp_path):
        """A collection made with a descriptor file, and the model."""
        model = learnt_models.projected()
        save_model(tmp_path / "mine.npz", model)
        with Collection.create(tmp_path / "c.cairn", replace(SMALL, descriptor=str(tmp_path / "mine.npz"))) as made:
            assert index_photos(made, sorted(photos.iterdir())[:2]).added == 2
        return tmp_path / "c.cairn", model

    def test_it_goes_on_when_the_file_is_gone(self, made, photos, tmp_path):
        folder, model = made
        (tmp_path / "mine.npz").unlink()
        assert load_model(folder / DESCRIPTOR).fingerprint == model.fingerprint
        # Wherever it is moved to, and whatever the working folder is.
        moved = tmp_path / "moved.cairn"
        folder.rename(moved)
        with Collection.open(moved) as collection:
            assert collection.options.descriptor == DESCRIPTOR
            assert index_photos(collection, [photos]).added == 2
            assert len(collection.segments) == 2 and collection.vocabulary.words > 0
            np.testing.assert_array_equal(
                collection.extractor.descriptor.describe(textures(5, 31)),
                LearntDescriptor(model).describe(textures(5, 31)),
            )

    def test_another_file_is_refused_and_the_same_or_one_that_has_gone_is_not(self, made, tmp_path):
        folder, model = made
        save_model(tmp_path / "other.npz", learnt_models.projected(seed=9))
        with pytest.raises(CairnError, match="made with another descriptor"):
            Collection.create(folder, replace(SMALL, descriptor=str(tmp_path / "other.npz")))
        save_model(tmp_path / "same.npz", replace(model, provenance={"told": "otherwise"}))
        for name in ("same.npz", "gone.npz"):
            with Collection.create(folder, replace(SMALL, descriptor=str(tmp_path / name))) as collection:
                assert collection.extractor.descriptor.fingerprint == model.fingerprint
        assert load_model(folder / DESCRIPTOR).fingerprint == model.fingerprint

    def test_a_vocabulary_of_another_descriptor_is_refused(self, made, photos, tmp_path):
        folder, _ = made
        save_model(tmp_path / "other.npz", learnt_models.projected(seed=9))  # of the same length
        with Collection.open(folder) as collection:
            vocabulary = Vocabulary.load(folder / "vocabulary")
            collection.check_descriptor(vocabulary)
        other = replace(SMALL, descriptor=str(tmp_path / "other.npz"))
        with Collection.create(tmp_path / "other.cairn", other) as collection:
            with pytest.raises(CairnError, match="another descriptor"):
                collection.check_descriptor(vocabulary)
            with pytest.raises(CairnError, match="another descriptor"):
                index_photos(collection, [photos], AddOptions(vocabulary=folder / "vocabulary"))

    def test_a_damaged_copy_is_told_and_a_swapped_one_refused(self, made, tmp_path):
        folder, _ = made
        save_model(folder / DESCRIPTOR, learnt_models.projected(seed=9))
        with Collection.open(folder) as collection, pytest.raises(CairnError, match="another descriptor"):
            _ = collection.vocabulary
        (folder / DESCRIPTOR).write_bytes(b"PK")
        with Collection.open(folder) as collection, pytest.raises(CairnError, match=r"descriptor\.npz is damaged"):
            _ = collection.extractor

    def test_a_damaged_file_makes_no_collection(self, tmp_path):
        (tmp_path / "bad.npz").write_bytes(b"PK")
        with pytest.raises(CairnError, match=r"bad\.npz"):
            Collection.create(tmp_path / "c.cairn", replace(SMALL, descriptor=str(tmp_path / "bad.npz")))
        assert not (tmp_path / "c.cairn").exists()


# --- Beside the paper authors' released model.


@pytest.fixture(scope="module")
def pairs():
    """Patches (400, 64, 64) of photographs of skimage, and the same places seen a little otherwise, with noise."""
    from skimage import data

    rng = np.random.default_rng(0)
    first, second = [], []
    for image in (data.brick(), data.gravel(), data.grass(), data.camera()):
        for _ in range(100):
            x, y = rng.uniform(60, np.array(image.shape[::-1]) - 60)
            angle, scale = rng.normal(0, np.radians(6)), np.exp(rng.normal(0, 0.06))
            shift = rng.normal(0, 1.2, 2)
            for cut, turn, zoom, at in ((first, 0, 1, (0, 0)), (second, angle, scale, shift)):
                frame = zoom * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
                middle = np.array([x, y]) + at - frame @ [31.5, 31.5]
                patch = cv2.warpAffine(
                    image, np.column_stack([frame, middle]), (64, 64), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
                )
                cut.append((patch + rng.normal(0, 4, patch.shape)).clip(0, 255).astype(np.uint8))
    return np.stack(first), np.stack(second)


@pytest.fixture(scope="module")
def describers():
    pooled = LearntDescriptor(LearntModel("pooled", learnt_models.pooling(smoothing=0.7)))
    vgg = Peer("vgg-80")
    return {"pooled": lambda patches: pooled.describe(resample_patches(patches, 31)), "vgg": vgg.describe}


class TestBesideVgg:
    """Its regions were learnt and ours are laid out by hand: they are alike in kind, not in every distance."""

    @pytest.mark.slow
    def test_both_tell_matches_from_others_and_rank_pairs_alike(self, pairs, describers):
        first, second = pairs
        others = np.roll(np.arange(400), 1)
        match = np.arange(800) < 400
        distances = {}
        for name, describe in describers.items():
            one, two = describe(first), describe(second)
            found = np.concatenate([one - two, one - two[others]])
            distances[name] = np.linalg.norm(found, axis=1)
            assert fpr95(distances[name], match) < 0.15, name
        assert spearmanr(distances["pooled"], distances["vgg"]).statistic > 0.8
        # Among matches alone, and among others alone, which pairs are hard is much the same too.
        for part in (match, ~match):
            assert spearmanr(distances["pooled"][part], distances["vgg"][part]).statistic > 0.5

    @pytest.mark.parametrize(("gain", "offset"), [(0.6, 10), (0.5, 100)])
    def test_neither_is_changed_by_an_affine_change_of_grey_values(self, pairs, describers, gain, offset):
        first = pairs[0][:100]
        changed = np.rint(gain * first + offset).astype(np.uint8)
        for name, describe in describers.items():
            rows = describe(first)
            typical = np.linalg.norm(rows - np.roll(rows, 1, axis=0), axis=1).mean()
            # Rounding to whole grey values is all that is left.
            assert np.linalg.norm(describe(changed) - rows, axis=1).mean() < 0.1 * typical, name
