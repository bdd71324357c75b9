"""Pickles of plain data are read as by Python, all others are refused, and no name is ever called."""

import copyreg
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.protocols.pickles import read_pickle
from index.errors import CairnError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(DATA, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_data_is_read_as_python_reads_it(tmp_path_factory: pytest.TempPathFactory, data: Any, level: int) -> None:
    path = tmp_path_factory.getbasetemp() / "data.pkl"
    path.write_bytes(pickle.dumps(data, level))
    found = read_pickle(path)
    assert found == data and type(found) is type(data)


ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.zeros((0, 4), np.int32),
    np.array([1.5, np.nan], ">f4"),
    np.array([True, False]),
    np.array(["a", "bcd"]),
    np.array([b"ab"]),
    np.array(7, np.uint8),
    np.float64(2.5),
    np.int32(-3),
]


@pytest.mark.parametrize("level", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_are_read_as_numpy_reads_them(level: int, tmp_path: Path) -> None:
    path = tmp_path / "arrays.pkl"
    path.write_bytes(pickle.dumps({"all": ARRAYS, "again": ARRAYS[0]}, level))
    found = read_pickle(path)
    for one, expected in zip(found["all"], ARRAYS, strict=True):
        assert np.array_equal(one, expected, equal_nan=np.asarray(expected).dtype.kind == "f")
        assert np.asarray(one).dtype == np.asarray(expected).dtype
    assert np.array_equal(found["again"], ARRAYS[0])


def test_what_python_2_wrote_is_read(tmp_path: Path) -> None:
    """Its text is Latin-1, and so are the bytes of an array: {'a': 'caf\\xe9', 'b': array([258], '<i2')}."""
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x01(cnumpy\nndarray\nK\x00\x85U\x01bt\x52"
    kind = b"cnumpy\ndtype\n(U\x02i2K\x00K\x01tR(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01K\x01\x85" + kind + b"\x89U\x02\x02\x01tb"
    path = tmp_path / "old.pkl"
    path.write_bytes(b"\x80\x02}(U\x01aU\x04caf\xe9U\x01b" + array + state + b"u.")
    found = read_pickle(path)
    assert found["a"] == "café"
    assert found["b"].tolist() == [258]


class _Call:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.what = function, arguments

    def __reduce__(self) -> Any:
        return self.what


def _within_itself() -> list[Any]:
    value: list[Any] = []
    value.append({"again": value})
    return value


def _swollen(shape: tuple[int, ...]) -> bytes:
    """An array with a shape larger than its bytes."""
    return pickle.dumps(np.zeros(3, np.uint8), 2).replace(b"K\x03\x85", b"J" + shape[0].to_bytes(4, "little") + b"\x85")


def _nested(depth: int) -> bytes:
    return b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."


HOSTILE = {
    "a call of the system": pickle.dumps(_Call(os.system, "touch called")),
    "a call by the stack": pickle.dumps(_Call(os.system, "touch called"), 4),
    "an evaluation": pickle.dumps([_Call(eval, "open('called', 'w')")]),
    "an object": pickle.dumps(Path("a")),
    "Python objects in an array": pickle.dumps(np.array([{}], object)),
    "an array of records": pickle.dumps(np.zeros(2, [("a", "i4")])),
    "dates": pickle.dumps(np.array(["2020-01-01"], "M8[D]")),
    "a set": pickle.dumps({1, 2}, 4),
    "another codec": pickle.dumps(b"ab", 2).replace(b"latin1", b"zlib_c"),
    "a cycle": pickle.dumps(_within_itself()),
    "a deep list": _nested(200_000),
    "a huge array": _swollen((2**30,)),
    "a huge text": b"\x80\x04\x8d" + (2**40).to_bytes(8, "little") + b"a.",
    "a huge place in the memo": b"\x80\x02]r\xff\xff\xff\x7fh\x01.",
    "huge bytes": b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b"a.",
    "an extension": b"\x80\x02\x82\x01.",
    "a number of its writer": b"P1\n.",
    "an object of old Python": b"(S'touch called'\nios\nsystem\n.",
    "a state of a name": b"\x80\x02cnumpy\nndarray\n}(U\x05_callK\x01ub.",
    "a state of a list": b"\x80\x02](NN}b.",
    "a call of an array": pickle.dumps(np.zeros(3), 2)[:-1] + b")R.",
    "a name as a key": b"\x80\x02}cnumpy\nndarray\nK\x01s.",
    "a lonely name": b"\x80\x02cnumpy\nndarray\n.",
    "an array without contents": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR.",
    "no pickle": b"all_souls_000013 1 2 3 4",
    "nothing": b"",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_plain_data_is_refused_in_one_sentence(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "gnd.pkl"
    path.write_bytes(content)
    with pytest.raises(CairnError) as refused:
        read_pickle(path)
    sentence = str(refused.value)
    assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 400
    assert [one.name for one in tmp_path.iterdir()] == ["gnd.pkl"]


def test_an_extension_that_the_process_knows_is_not_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's reader looks these up by number, bypassing checks for cached ones."""
    monkeypatch.chdir(tmp_path)
    module = os.system.__module__
    copyreg.add_extension(module, "system", 250)
    try:
        assert pickle.loads(b"\x80\x02\x82\xfa.") is os.system
        (tmp_path / "gnd.pkl").write_bytes(b"\x80\x02\x82\xfaX\x0c\x00\x00\x00touch called\x85R.")
        with pytest.raises(CairnError, match="no plain data"):
            read_pickle(tmp_path / "gnd.pkl")
    finally:
        copyreg.remove_extension(module, "system", 250)
    assert not (tmp_path / "called").exists()


def test_a_large_file_and_a_missing_one_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gnd.pkl"
    path.write_bytes(pickle.dumps(list(range(100))))
    monkeypatch.setattr("eval.protocols.pickles.LARGEST", 50)
    with pytest.raises(CairnError, match="larger"):
        read_pickle(path)
    with pytest.raises(CairnError, match="cannot be read"):
        read_pickle(tmp_path / "other.pkl")


def test_what_is_shared_is_read_once(tmp_path: Path) -> None:
    """Following every path through lists that hold the next one twice would take forever."""
    value: list[Any] = [1]
    for _ in range(30):
        value = [value, value]
    path = tmp_path / "shared.pkl"
    path.write_bytes(pickle.dumps(value))
    found = read_pickle(path)
    for _ in range(30):
        assert found[0] is found[1]
        found = found[0]
    assert found == [1]


@pytest.mark.slow
def test_damage_is_told_or_harmless(tmp_path: Path) -> None:
    """Any changed byte gives data or one sentence."""
    sound = pickle.dumps({"gnd": [{"easy": np.arange(4), "bbx": [1.0, 2]}], "imlist": ["a", "b"]}, 2)
    path = tmp_path / "damaged.pkl"
    chance = random.Random(0)
    for _ in range(1500):
        content = bytearray(sound)
        for _ in range(chance.randint(1, 3)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice([len(content), chance.randrange(len(content))])])
        try:
            read_pickle(path)
        except CairnError as error:
            assert str(error).endswith(".")
