import errno
import hashlib
import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from index.arrays import fingerprint, load_array, load_json, publish_folder, save_array, save_arrays, save_json
from index.errors import CairnError

DTYPES = st.sampled_from([np.float32, np.float16, np.int32, np.uint8, np.bool_])


@given(hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))
def test_an_array_comes_back_as_it_was(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("arrays") / "a.npy"
    save_array(path, array)
    for mmap in (False, True):
        back = load_array(path, mmap=mmap)
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    assert [file.name for file in path.parent.iterdir()] == ["a.npy"]


def test_fingerprint_is_the_sha256_of_header_bytes_and_options():
    array = np.arange(6, dtype="<i4").reshape(2, 3)
    header = b'["a", "<i4", [2, 3]]'
    expected = hashlib.sha256(len(header).to_bytes(8, "little") + header + array.tobytes() + b'options{"x":1,"y":"z"}')
    assert fingerprint({"a": array}, {"y": "z", "x": np.int64(1)}) == expected.hexdigest()


def test_fingerprint_sees_names_dtypes_shapes_values_and_options_but_not_memory_layout(monkeypatch):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    first = fingerprint({"a": array, "b": array}, {"x": 1})
    assert fingerprint({"b": np.asfortranarray(array), "a": array}, {"x": 1}) == first
    others = [
        ({"a": array, "c": array}, {"x": 1}),
        ({"a": array, "b": array.astype(np.float64)}, {"x": 1}),
        ({"a": array, "b": array.view(np.int32)}, {"x": 1}),
        ({"a": array, "b": array.reshape(4, 3)}, {"x": 1}),
        ({"a": array, "b": array + 1}, {"x": 1}),
        ({"a": array, "b": array}, {"x": 2}),
        ({"a": array}, {"x": 1}),
    ]
    assert first not in {fingerprint(*other) for other in others}
    monkeypatch.setattr("index.arrays.HASH_BLOCK_BYTES", 16)
    assert fingerprint({"a": array, "b": array}, {"x": 1}) == first


def test_fingerprint_and_saving_refuse_objects(tmp_path):
    objects = np.array([{}], dtype=object)
    with pytest.raises(ValueError, match="objects"):
        fingerprint({"a": objects}, {})
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        save_array(tmp_path / "a.npy", objects)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.json"
    save_json(path, {"kept": 1})
    with pytest.raises(TypeError):
        save_json(path, {"lost": object()})
    with pytest.raises(ValueError, match="JSON"):
        save_json(path, {"lost": float("nan")})
    assert load_json(path) == {"kept": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_unusable_array_files_are_refused_with_one_sentence(tmp_path):
    good = tmp_path / "good.npy"
    save_array(good, np.arange(100.0))
    contents = good.read_bytes()
    files = {
        "truncated.npy": contents[:-9],
        "header.npy": contents[:20],
        "empty.npy": b"",
        "other.npy": b"not an array at all" * 20,
        "huge.npy": contents.replace(b"(100,), }            ", b"(10000000000000000,), }")[: len(contents)],
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", a=np.zeros(3))
    for name in [*files, "pickled.npy", "archive.npz", "missing.npy"]:
        for mmap in (False, True):
            with pytest.raises(CairnError) as caught:
                load_array(tmp_path / name, mmap=mmap)
            assert name in str(caught.value)
            assert str(caught.value).count("\n") == 0
    with pytest.raises(CairnError, match="pickled"):
        load_array(tmp_path / "pickled.npy")


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        np.array(7, np.uint8),
        np.zeros((0, 4), np.float16),
        np.array(["a", "bcd"]),
        np.arange(24, dtype=np.int16).reshape(2, 3, 4),
    ],
)
def test_any_array_of_numbers_or_text_is_read_without_the_parser_of_python(tmp_path, monkeypatch, array, mmap):
    np.save(tmp_path / "a.npy", array)
    monkeypatch.setattr("ast.parse", lambda *_, **__: pytest.fail("Python 3.11 cannot parse in two threads at once"))
    read = load_array(tmp_path / "a.npy", mmap=mmap and array.size > 0)
    assert read.dtype == array.dtype and read.flags.f_contiguous == array.flags.f_contiguous
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000])
def test_unusable_json_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(CairnError, match="damaged"):
        load_json(tmp_path / "a.json")
    with pytest.raises(CairnError, match="missing"):
        load_json(tmp_path / "b.json")


def test_a_folder_is_published_whole_and_never_over_another(tmp_path):
    for number in (1, 2):
        (tmp_path / f"temporary{number}" / "deep").mkdir(parents=True)
        save_json(tmp_path / f"temporary{number}" / "deep" / "a.json", number)
    publish_folder(tmp_path / "temporary1", tmp_path / "final")
    with pytest.raises(CairnError, match="already exists"):
        publish_folder(tmp_path / "temporary2", tmp_path / "final")
    assert json.loads((tmp_path / "final" / "deep" / "a.json").read_text()) == 1
    assert not (tmp_path / "temporary1").exists()


def test_a_full_disk_is_told_with_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as raised:
        save_array(tmp_path / "a.npy", np.zeros(3))
    assert raised.value.filename == str(tmp_path / "a.npy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("deflated", [False, True])
def test_the_same_arrays_make_the_same_archive_at_any_time(tmp_path, monkeypatch, deflated):
    arrays = {"rows": np.arange(6.0).reshape(2, 3).T, "one": np.float32(2.5), "none": np.zeros((0, 4), np.int32)}
    save_arrays(tmp_path / "a.npz", arrays, {"b": 1, "a": "ä"}, deflated=deflated)
    monkeypatch.setattr("time.time", lambda: 2e9)
    save_arrays(tmp_path / "b.npz", arrays, {"a": "ä", "b": 1}, deflated=deflated)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert json.loads(found["meta.json"]) == {"b": 1, "a": "ä"}
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == np.asarray(array).dtype
    with pytest.raises(ValueError, match="Object"):
        save_arrays(tmp_path / "a.npz", {"one": np.array([{}])})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert found["one"] == np.float32(2.5)
