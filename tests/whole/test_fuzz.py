"""Damaged and hostile files: a light share of what `scripts/fuzz.py` does, and each thing that it has found."""

import hashlib
import importlib.util
import io
import json
import struct
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index.archive import open_archive
from index.arrays import fingerprint, load_array, load_json, save_array
from index.errors import CairnError
from index.faiss_search import FaissOptions, FaissSearch
from index.flann_search import FlannOptions, FlannSearch
from index.inverted import InvertedIndex
from index.neighbours import EARLIER_INDEX_FILE, INDEX_FILE
from index.scanning.ivf_search import IvfOptions, IvfSearch
from index.segments.description import verify_segment
from index.segments.segment import Segment
from index.similarity import SimilarityMatrix
from index.text import shown
from index.vocabulary import Vocabulary
from learning.building.point_file import read_points
from learning.convex.records import ModelRecords, Record
from learning.mining.matches import MinedMatches
from learning.patches.phototour import PatchSet
from retrieval.collection.options import read_options
from retrieval.descriptors.codes import ProductCode
from retrieval.descriptors.learnt import load_model
from retrieval.photos.apart import decoding_here
from retrieval.photos.decoding import read_photo
from tests.support.fuzz_targets import TARGETS, read_group_file, sign_segment, sign_vocabulary, write
from tests.support.fuzzing import Input, Sample, bomb, inputs, write_zip
from tests.support.hostile import encode, photo
from tests.support.paths import ROOT

# Files of the catalogue are read by SQLite and judged there.
LIGHT = sorted(set(TARGETS) - {"catalogue"})
# Of each reader: 10 in the default run, 20 in that of all tests.
INPUTS = min(20, settings.default.max_examples * 2 // 3)
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


@cache
def samples_of(target: str) -> list[Sample]:
    """Sound samples: to make them takes longer than to read them."""
    return TARGETS[target].samples()


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    """The script, as a module."""
    path = ROOT / "scripts" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz_script", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def sound(target: str, folder: Path, which: int = 0) -> Path:
    """A folder with a sound sample."""
    folder.mkdir(exist_ok=True)
    write(samples_of(target)[which], folder)
    return folder


def change_json(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def repack(path: Path, entries: dict[str, bytes | None], packing: int = DEFLATED) -> None:
    """Change entries of an archive, or take them away."""
    with zipfile.ZipFile(path) as archive:
        kept = {info.filename: (archive.read(info), info.compress_type) for info in archive.infolist()}
    for name, contents in entries.items():
        if contents is None:
            del kept[name]
        else:
            kept[name] = (contents, packing)
    path.write_bytes(write_zip([(name, contents, how) for name, (contents, how) in kept.items()]))


def npy(array: np.ndarray, **claims: Any) -> bytes:
    """An array's file, whose header claims something else."""
    file = io.BytesIO()
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | claims
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


# -------------------------------------------------------------------------------------------------------- the fuzzing


@pytest.mark.parametrize("target", LIGHT)
def test_a_reader_refuses_what_it_cannot_use(fuzz: ModuleType, target: str, tmp_path: Path) -> None:
    samples = samples_of(target)
    if not samples:
        pytest.skip("what writes the samples is not installed")

    @settings(max_examples=INPUTS, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(inputs(samples), st.booleans())
    def refuses(sample: Input, sign: bool) -> None:
        fuzz.write_input(target, sample, sign, tmp_path / "input")
        finding = fuzz.finding_of(target, tmp_path / "input")
        assert finding is None, f"{finding}: scripts/fuzz.py --target {target} --read {tmp_path / 'input'}"

    refuses()
    for sample in samples:
        fuzz.write_input(target, sample, False, tmp_path / "sound")
        TARGETS[target].read(tmp_path / "sound")


@pytest.mark.slow
@pytest.mark.parametrize("target", LIGHT)
def test_a_reader_stays_within_its_limits(fuzz: ModuleType, target: str, tmp_path: Path) -> None:
    if samples_of(target):
        assert list(fuzz.fuzz(target, 8, 200, tmp_path)) == []


def test_inputs_differ_from_their_samples_and_are_many() -> None:
    samples = samples_of("segment")
    drawn = set()

    @settings(max_examples=50, derandomize=True, deadline=None, database=None)
    @given(inputs(samples))
    def draw(sample: Input) -> None:
        drawn.add(hashlib.sha256(repr(sorted(sample.items())).encode()).hexdigest())

    draw()
    assert len(drawn) > 25


@pytest.mark.parametrize(
    ("work", "finding"),
    [
        ("os.kill(os.getpid(), 11)", "crash: SIGSEGV"),
        ("os._exit(3)", "crash: exit code 3: "),
        ("fuzz.limit_time(0.5, 60)\nwhile True: pass", "hang: 10 s of processor time"),
        ("fuzz.limit_time(60, 0.5)\ntime.sleep(60)", "hang: 120 s"),
        ("assert 1 == 2, 'ValueError at index/arrays.py:load_array'", "ValueError at index/arrays.py:load_array"),
    ],
)
def test_the_end_of_a_process_is_a_finding_and_the_next_goes_on(
    fuzz: ModuleType, work: str, finding: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def command(name: str, seed: int, runs: int, folder: Path) -> list[str]:
        begin = f"import os, sys, time; sys.path.insert(0, 'scripts'); import fuzz; os.mkdir({str(folder)!r})\n"
        return [sys.executable, "-c", begin + (work if seed == 0 else "pass")]

    monkeypatch.setattr(fuzz, "child_command", command)
    monkeypatch.setattr(fuzz, "BATCH", 1)
    found = list(fuzz.fuzz("arrays", 0, 2, tmp_path))
    assert found == [(finding, tmp_path / "findings" / "arrays-0")] and found[0][1].is_dir()


@pytest.mark.slow
def test_a_finding_is_shrunk_and_can_be_read_again(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def read(folder: Path) -> None:
        assert len((folder / "a").read_bytes()) == 4

    made_up = TARGETS["arrays"].__class__(lambda: [{"a": b"good"}], read)
    monkeypatch.setitem(TARGETS, "made up", made_up)
    monkeypatch.setattr(fuzz, "limit_memory", lambda: None)
    with pytest.raises(AssertionError, match=r"AssertionError at tests/whole/test_fuzz\.py:read"):
        fuzz.read_inputs("made up", 0, 50, tmp_path / "input")
    with pytest.raises(AssertionError):
        read(tmp_path / "input")


def test_what_counts_as_a_finding(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def finding(error: Exception, cause: Exception | None = None) -> str | None:
        def read(folder: Path) -> None:
            raise error from cause

        monkeypatch.setitem(TARGETS, "made up", TARGETS["arrays"].__class__(list, read))
        found: str | None = fuzz.finding_of("made up", tmp_path)
        return found

    assert finding(CairnError(f"{tmp_path}/x is damaged.")) is None
    assert str(finding(ValueError("x"))).startswith("ValueError at tests/whole/test_fuzz.py:read")
    assert str(finding(AssertionError())).startswith("AssertionError")
    assert str(finding(CairnError("damaged"), MemoryError())).startswith("memory")
    assert str(finding(CairnError("x" * 5000))).startswith("message")
    assert str(finding(CairnError("a\x1b[31m"))).startswith("message")


# ------------------------------------------------------------------------------------------------- arrays and archives


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "contents",
    [
        npy(np.zeros(3, np.float32), shape=(1 << 40,)),
        npy(np.zeros(3, np.float32), shape=(-1, -3)),
        npy(np.zeros(3, np.float32), shape=(0, 1 << 62)),
        npy(np.zeros(3, np.float32), shape=(2,)),
        npy(np.zeros(3, np.float32), descr="|V2147483647"),
        npy(np.zeros(2, np.int64), descr="|O"),
        npy(np.zeros(2, np.int64))[:-1],
        b"\x93NUMPY\1\0" + struct.pack("<H", 9000) + b"-" * 8999 + b"1",
        b"\x93NUMPY\1\0" + struct.pack("<H", 9000) + b"(" * 9000,
        b"\x93NUMPY\3\0" + struct.pack("<I", 4) + b"{}  ",
    ],
)
def test_what_an_array_claims_is_compared_with_what_is_there(tmp_path: Path, contents: bytes, mmap: bool) -> None:
    (tmp_path / "a.npy").write_bytes(contents)
    with pytest.raises(CairnError, match=r"a\.npy (is damaged|holds pickled objects)") as refused:
        load_array(tmp_path / "a.npy", mmap)
    assert not isinstance(refused.value.__cause__, MemoryError)


def test_a_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/dev/zero")
    for read in (load_array, load_json, load_model, SimilarityMatrix.load, MinedMatches.open, read_points):
        with pytest.raises(CairnError, match="not a regular file"):
            read(tmp_path / "a")


ARCHIVES = {
    "descriptor": ("descriptor.npz", "projection.npy", load_model),
    "similarity": ("similarity.npz", "values.npy", SimilarityMatrix.load),
    "mined": ("matches.npz", "inliers.npy", MinedMatches.open),
    "points": ("points.npz", "x.npy", read_points),
}


@pytest.mark.parametrize("target", ARCHIVES)
@pytest.mark.parametrize("packing", [DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_no_more_is_unpacked_than_an_entry_claims(
    tmp_path: Path, target: str, packing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, entry, read = ARCHIVES[target]
    path = sound(target, tmp_path) / name
    read(path)
    with zipfile.ZipFile(path) as archive:
        entries = [(info.filename, archive.read(info), info.compress_type) for info in archive.infolist()]
    at = [each for each, *_ in entries].index(entry)
    if packing == DEFLATED:
        path.write_bytes(bomb(entries, at, 1 << 24))
    else:
        entries[at] = (*entries[at][:2], packing)
        path.write_bytes(write_zip(entries))
    unpacked = []

    def counted(self: zipfile.ZipExtFile, data: bytes) -> None:
        unpacked.append(len(data))
        update(self, data)

    update = zipfile.ZipExtFile._update_crc  # type: ignore[attr-defined]
    monkeypatch.setattr(zipfile.ZipExtFile, "_update_crc", counted)
    try:
        read(path)  # what was claimed is there, and its checksum is right
        assert packing == DEFLATED and target != "mined"
    except CairnError as error:
        assert "damaged" in str(error)
    assert sum(unpacked) <= sum(len(contents) for _, contents, _ in entries)


@pytest.mark.parametrize("target", ARCHIVES)
def test_archives_that_contradict_themselves_are_refused(tmp_path: Path, target: str) -> None:
    name, entry, read = ARCHIVES[target]
    huge = npy(np.zeros(3, np.float32), shape=(1 << 30,))
    twice = npy(np.zeros((1, 1), np.float32))
    for contents in (huge, b"", twice[:50]):
        path = sound(target, tmp_path) / name
        repack(path, {entry: contents}, STORED)
        with pytest.raises(CairnError, match="damaged"):
            read(path)
    path = sound(target, tmp_path) / name
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(entry, twice)
    with pytest.raises(CairnError, match="damaged"):
        read(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(CairnError, match="damaged"):
        read(tmp_path / "array.npy")


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
@pytest.mark.parametrize("order", "<>")
def test_text_is_of_characters(tmp_path: Path, code: int, order: str) -> None:
    good, bad = (np.array([65, each], f"{order}u4").view(f"{order}U2") for each in (0x10FFFF, code))
    path = sound("points", tmp_path) / "points.npz"
    repack(path, {"names.npy": npy(good)})
    with open_archive(path) as archive:
        assert archive.array("names").tolist() == ["A\U0010ffff"]
    repack(path, {"names.npy": npy(bad)})
    with open_archive(path) as archive, pytest.raises(ValueError, match="no character"):
        archive.array("names")


def test_a_rotation_whose_check_would_take_minutes_is_refused() -> None:
    dim = 4096
    sizes = np.full(1, dim, np.int32)
    with pytest.raises(CairnError, match="far larger"):
        ProductCode(np.zeros((256, dim), np.float32), sizes, np.zeros((dim, dim), np.float32))


def test_a_part_of_a_photo_that_claims_gigabytes_has_none_set_aside(tmp_path: Path) -> None:
    contents = encode(photo(size=(300, 300)), "PNG")
    at = contents.index(b"IDAT")
    (tmp_path / "a.png").write_bytes(contents[: at - 4] + struct.pack(">I", (1 << 31) - 1) + contents[at:])
    tracemalloc.start()
    try:
        with suppress(CairnError), decoding_here():
            read_photo(tmp_path / "a.png")
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------------------------------------------- segments


def test_no_file_is_read_that_is_not_the_segments_own(tmp_path: Path) -> None:
    save_array(tmp_path / "secret.npy", np.zeros(540, np.float32))
    folder = sound("segment", tmp_path / "s")
    for name in ("../secret", "column_../../secret", "/etc/passwd", "other"):
        sound("segment", folder)

        def point_elsewhere(meta: dict[str, Any], name: str = name) -> None:
            meta["files"][name] = {"dtype": "<f4", "shape": [540], "sha256": "0" * 64}

        change_json(folder / "meta.json", point_elsewhere)
        sign_segment(folder)
        with pytest.raises(CairnError, match="damaged"):
            Segment.open(folder)
        assert verify_segment(folder) == ["meta.json"]


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.pop("vocabulary"),
        lambda meta: meta.update(descriptor=["d"]),
        lambda meta: meta.update(format=10**400),
        lambda meta: meta.update(format=True),
        lambda meta: meta.update(files=[]),
        lambda meta: meta["files"]["word_lists"].pop("dtype"),
        lambda meta: meta["files"]["word_lists"].update(sha256=3),
    ],
)
def test_a_description_that_lacks_something_is_refused(tmp_path: Path, change: Any) -> None:
    folder = sound("segment", tmp_path)
    meta = json.loads((folder / "meta.json").read_text())
    meta.pop("sha256")
    change(meta)
    (folder / "meta.json").write_text(json.dumps({**meta, "sha256": fingerprint({}, meta)}))
    for read in (Segment.open, lambda folder: verify_segment(folder) == ["meta.json"] and Segment.open(folder)):
        with pytest.raises(CairnError, match="damaged"):
            read(folder)


SEGMENT_ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "image_numbers": lambda array: array[::-1],
    "offsets": lambda array: array[:0],
    "word_lists": lambda array: array[:, None],
    "posting_starts": lambda array: array.astype(np.float32),
    "posting_lists": lambda array: array[:-1],
    "column_ellipses": lambda array: array[:-1],
    "column_codes": lambda array: array.view("V8"),
}


@pytest.mark.parametrize("name", SEGMENT_ARRAYS)
def test_arrays_of_a_segment_that_do_not_fit_the_others_are_refused(tmp_path: Path, name: str) -> None:
    folder = sound("segment", tmp_path)
    array = np.load(folder / f"{name}.npy")
    save_array(folder / f"{name}.npy", SEGMENT_ARRAYS[name](array))
    sign_segment(folder)
    assert verify_segment(folder) == []
    with pytest.raises(CairnError, match=f"({name}|offsets).npy is damaged"):
        Segment.open(folder)


def test_postings_that_make_no_sense_are_refused_when_they_are_read(tmp_path: Path) -> None:
    folder = sound("segment", tmp_path)
    lists = np.load(folder / "posting_lists.npy")
    lists[-1] ^= 1
    save_array(folder / "posting_lists.npy", lists)
    sign_segment(folder)
    segment = Segment.open(folder)
    for read in (segment.postings, InvertedIndex([segment], 40).score):
        with pytest.raises(CairnError, match=r"posting_lists\.npy is damaged"):
            read(np.arange(40))


# ------------------------------------------------------------------------------------------ vocabularies and searches


@pytest.mark.parametrize("count", [16, 33, 200])
@pytest.mark.parametrize("dim", [3, 16])
@pytest.mark.parametrize("options", [FaissOptions(exact_below=0), FaissOptions(exact_below=0, lists_from=0)])
def test_an_index_is_read_as_it_was_written(tmp_path: Path, count: int, dim: int, options: FaissOptions) -> None:
    points = np.random.default_rng(count).random((count, dim), dtype=np.float32)
    built = FaissSearch.build(points, options)
    built.save(tmp_path)
    assert (tmp_path / INDEX_FILE).is_file()
    loaded = FaissSearch.load(tmp_path, points)
    assert faiss.serialize_index(loaded._index).tobytes() == faiss.serialize_index(built._index).tobytes()


def _index(folder: Path, lists: bool) -> tuple[np.ndarray, bytes]:
    points = np.random.default_rng(0).random((100, 8), dtype=np.float32)
    FaissSearch.build(points, FaissOptions(exact_below=0, lists_from=0 if lists else 10**6)).save(folder)
    return points, (folder / INDEX_FILE).read_bytes()


def _sign_index(folder: Path, contents: bytes, name: str = INDEX_FILE) -> None:
    (folder / name).write_bytes(contents)
    digest = hashlib.sha256(contents).hexdigest()
    change_json(folder / "search.json", lambda value: value.update(index_sha256=digest))


@pytest.mark.slow
@pytest.mark.parametrize("lists", [False, True])
def test_an_index_that_is_not_of_the_points_is_refused(tmp_path: Path, lists: bool) -> None:
    points, contents = _index(tmp_path, lists)
    with np.load(io.BytesIO(contents)) as file:
        arrays = dict(file)
    hostile = [{**arrays, name: array[:-1]} for name, array in arrays.items()]
    hostile += [{**arrays, name: array.astype(np.float64)} for name, array in arrays.items()]
    hostile += [{**arrays, name: np.full_like(array, np.nan)} for name, array in arrays.items() if array.dtype == "f4"]
    hostile += [{**arrays, "more": np.zeros(3)}, {}]
    if lists:
        hostile += [{**arrays, "list_of": np.full(100, number, np.int32)} for number in (-1, len(arrays["lists"]))]
    written = []
    for changed in hostile:
        file = io.BytesIO()
        np.savez(file, **changed)
        written.append(file.getvalue())
    packed = io.BytesIO()
    np.savez_compressed(packed, **{**arrays, "codes": np.zeros((100_000, 1000), np.uint8)})
    written += [packed.getvalue(), contents[:200], contents + b"\0" * 70_000, b""]
    for some in written:
        _sign_index(tmp_path, some)
        with pytest.raises(CairnError, match="is no index of these points"):
            FaissSearch.load(tmp_path, points)


@pytest.mark.parametrize("dim", [3, 32, 40])
def test_codes_that_are_not_of_the_points_are_refused(tmp_path: Path, dim: int) -> None:
    points = np.random.default_rng(0).random((100, dim), dtype=np.float32)
    built = IvfSearch.build(points, IvfOptions(exact_below=0))
    built.save(tmp_path)
    contents = (tmp_path / INDEX_FILE).read_bytes()
    np.testing.assert_array_equal(IvfSearch.load(tmp_path, points).search(points, 5)[0], built.search(points, 5)[0])
    with np.load(io.BytesIO(contents)) as file:
        arrays = dict(file)
    hostile = [{**arrays, name: array[..., :-1]} for name, array in arrays.items()]
    hostile += [{**arrays, name: array.astype(np.float64)} for name, array in arrays.items()]
    hostile += [{**arrays, name: np.full_like(array, np.inf)} for name, array in arrays.items() if array.dtype == "f4"]
    hostile += [{**arrays, "names": np.full(100, number, np.int32)} for number in (-1, 0, 100, 2**31 - 1)]
    hostile += [{**arrays, "names": np.append(arrays["names"][1:], np.int32(2**31 - 1))}]
    sizes = arrays["sizes"]
    changes = ((0, 1), (0, -(2**63)), (1, 2**62), (1, 100))
    hostile += [{**arrays, "sizes": np.where(np.arange(len(sizes)) == at, to, sizes)} for at, to in changes]
    # Together they are as many as there are points, in the numbers that a processor has.
    hostile += [{**arrays, "sizes": np.array([2**63 - 1, 2**63 - 1, 102, *[0] * (len(sizes) - 3)], np.int64)}]
    without = {
        name: array[..., :0] if name in ("basis", "offset", "codes", "centres") else array
        for name, array in arrays.items()
    }
    hostile += [without, {**arrays, "more": np.zeros(3)}, {}]
    for changed in hostile:
        file = io.BytesIO()
        np.savez(file, **changed)
        _sign_index(tmp_path, file.getvalue())
        with pytest.raises(CairnError, match="is no index of these points"):
            IvfSearch.load(tmp_path, points)


@pytest.mark.parametrize("lists", [False, True])
def test_an_index_of_an_earlier_version_is_built_again_and_never_given_to_faiss(
    tmp_path: Path, lists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, _ = _index(tmp_path, lists)
    built = FaissSearch.load(tmp_path, points)
    (tmp_path / INDEX_FILE).unlink()
    monkeypatch.setattr("faiss.deserialize_index", lambda array: pytest.fail("it was read"))
    for contents in (faiss.serialize_index(built._index).tobytes(), b"IwPf" + b"\xff" * 500):
        _sign_index(tmp_path, contents, EARLIER_INDEX_FILE)
        loaded = FaissSearch.load(tmp_path, points)
        assert faiss.serialize_index(loaded._index).tobytes() == faiss.serialize_index(built._index).tobytes()
    (tmp_path / EARLIER_INDEX_FILE).write_bytes(b"IwPf")
    with pytest.raises(CairnError, match=r"search\.index is damaged"):
        FaissSearch.load(tmp_path, points)


def test_an_index_file_of_flann_is_not_read(tmp_path: Path) -> None:
    points = np.random.default_rng(0).random((50, 8), dtype=np.float32)
    search = FlannSearch.build(points, FlannOptions(trees=2, checks=8), seed=4)
    search.save(tmp_path)
    assert not (tmp_path / INDEX_FILE).exists()
    _sign_index(tmp_path, b"FLANN_INDEX" + b"\xff" * 500, EARLIER_INDEX_FILE)  # as an earlier version kept one
    found = FlannSearch.load(tmp_path, points).search(points, 3)
    np.testing.assert_array_equal(found[0], search.search(points, 3)[0])


SEARCH_SETTINGS: dict[str, dict[str, Any]] = {
    "no candidates": {"options": {"candidates": 0}},
    "no dimensions": {"options": {"code_dims": 0}},
    "lists without end": {"options": {"list_factor": 1e300}},
    "no number of lists": {"options": {"list_factor": float("nan")}},
    "text": {"options": {"candidates": "many"}},
    "true": {"options": {"probes": True}},
    "options of another kind": {"options": [1]},
    "a seed beyond all": {"seed": float("inf")},
    "a negative seed": {"seed": -1},
    "a name of another type": {"name": ["faiss"]},
}


@pytest.mark.parametrize("case", SEARCH_SETTINGS)
def test_settings_of_a_search_that_cannot_be_are_refused(tmp_path: Path, case: str) -> None:
    points, _ = _index(tmp_path, lists=False)
    change_json(tmp_path / "search.json", lambda value: value.update(SEARCH_SETTINGS[case]))
    with pytest.raises(CairnError, match=r"search\.json is damaged"):
        FaissSearch.load(tmp_path, points)


@pytest.mark.parametrize(
    "change",
    [
        {"recall_at_1": 10**400},
        {"recall_at_1": float("nan")},
        {"quantisation_error": -1.0},
        {"trained_on": ["x"]},
        {"format": 10**400},
        {"search": {"backend": "9" * 5000}},
        {"search": {"backend": ["faiss"]}},
        {"training": 3},
    ],
)
def test_a_vocabulary_that_says_what_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = sound("vocabulary", tmp_path)
    change_json(folder / "meta.json", lambda meta: meta.update(change))
    with pytest.raises(CairnError, match="is damaged: make it again") as refused:
        Vocabulary.load(folder)
    assert len(str(refused.value).replace(str(folder), "")) < 200


@pytest.mark.parametrize("value", [np.nan, -np.inf, 3e38])
def test_centres_beyond_all_distances_are_refused(tmp_path: Path, value: float) -> None:
    folder = sound("vocabulary", tmp_path)
    centres = np.load(folder / "centres.npy")
    centres[0, 0] = value
    save_array(folder / "centres.npy", centres)
    sign_vocabulary(folder)
    with pytest.raises(CairnError, match="damaged"):
        Vocabulary.load(folder)


# --------------------------------------------------------------------------------------------- patches, records, tables


def test_a_bitmap_of_another_format_is_not_opened(tmp_path: Path) -> None:
    folder = sound("phototour", tmp_path)
    # Pillow would have Ghostscript draw it.
    program = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1024 1024\n%%EndComments\nshowpage\n"
    (folder / "patches0000.bmp").write_bytes(program)
    with pytest.raises(CairnError, match="damaged"):
        PatchSet.open(folder).read(np.arange(3))


@pytest.mark.parametrize(
    "change",
    [{"stage": "../../x"}, {"key": "../" * 6}, {"refits": -1}, {"refits": True}, {"fpr95": float("nan")}],
)
def test_records_name_no_files_but_their_own(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = sound("records", tmp_path)
    assert len(ModelRecords(folder, Record).all) == 1
    entries = json.loads((folder / "records.json").read_text())
    (folder / "records.json").write_text(json.dumps([entries[0] | change]))
    with pytest.raises(CairnError, match="damaged"):
        ModelRecords(folder, Record)


@pytest.mark.parametrize(
    "change",
    [
        {"inliers": float("inf")},
        {"photos": "6"},
        {"format": 10**300},
        {"groups": [{"group": 1, "photos": [1, 1], "links": 1, "duplicates": []}]},
        {"groups": [{"group": 1, "photos": [1, 2], "links": 1, "duplicates": [[3, 4]]}]},
        {"groups": [{"group": 1, "photos": [[1], 2], "links": 1, "duplicates": []}]},
    ],
)
def test_groups_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = sound("groups", tmp_path)
    read_group_file(folder)
    change_json(folder / "groups.json", lambda groups: groups.update(change))
    with pytest.raises(CairnError, match=r"groups\.json is damaged"):
        read_group_file(folder)


@pytest.mark.parametrize(
    "text",
    ["format = 1\nwords = " + "[" * 5000, "format = 1\nseed = 9" + "9" * 40, "[features]\nmeasurement_scale = nan"],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "collection.toml"
    path.write_text(text if "format" in text else f"format = 1\n{text}")
    with pytest.raises(CairnError, match="restore it from a copy") as refused:
        read_options(path)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("text", ["x" * 100_000, "[" * 10_000, "a b c d e" * 2000])
def test_a_long_line_is_not_told_whole(tmp_path: Path, text: str) -> None:
    folder = sound("ground-truth", tmp_path)
    (folder / "church_1_query.txt").write_text(text)
    with pytest.raises(CairnError, match="expected 'stem x0 y0 x1 y1', found") as refused:
        TARGETS["ground-truth"].read(folder)
    assert len(str(refused.value).replace(str(folder), "")) < 200
    table = sound("labels", tmp_path / "t") / "labels.csv"
    table.write_text(f"{text};church\n")
    with pytest.raises(CairnError) as refused:
        TARGETS["labels"].read(tmp_path / "t")
    assert len(str(refused.value).replace(str(folder), "")) < 250


def test_a_text_is_shown_short_and_without_controls() -> None:
    assert shown("a\x1b[31m") == "'a\\x1b[31m'"
    assert shown("x" * 100) == repr("x" * 80 + "…")
