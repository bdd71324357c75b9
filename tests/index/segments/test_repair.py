"""Files of a segment rebuilt from the others, byte for byte and in little memory."""

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.arrays import fingerprint
from index.postings import plain_lists, sorted_lists, word_lists
from index.segments import repair
from index.segments.description import META, verify_segment
from index.segments.repair import restore_segment
from index.segments.writing import write_segment
from tests.support.segments_of_format_1 import write_segment_of_format_1

LISTS = {
    1: [["offsets"], ["words"], ["posting_words", "posting_offsets", "posting_images", "posting_counts"]],
    2: [["offsets", "word_lists"], ["word_lists"], ["posting_starts", "posting_lists"]],
}
WRITERS: dict[int, Callable[..., object]] = {1: write_segment_of_format_1, 2: write_segment}
BLOCK = 1 << 12  # features at a time


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sorted_lists, repair):
        monkeypatch.setattr(module, "BLOCK_ENTRIES", BLOCK)
    monkeypatch.setattr(word_lists, "_SORTED_AT_ONCE", BLOCK)
    monkeypatch.setattr(plain_lists, "_SORTED_AT_ONCE", BLOCK)


def write(folder: Path, form: int, images: int, features: int, words: int, *, has_signatures: bool = False) -> str:
    """Write a segment with some very frequent words; return the checksum of meta.json."""
    rng = np.random.default_rng(1)
    each = [(words * rng.random(features if number % 5 else 0) ** 3).astype(np.int32) for number in range(images)]
    WRITERS[form](
        folder,
        image_numbers=np.arange(images),
        words=each,
        columns={"signature": [rng.integers(0, 256, (len(row), 8)).astype(np.uint8) for row in each]}
        if has_signatures
        else {},
        vocabulary_fingerprint="v" * 64,
        descriptor_fingerprint="d" * 64,
    )
    return hashlib.sha256((folder / META).read_bytes()).hexdigest()


def restore(folder: Path, sha256: str) -> list[str]:
    return restore_segment(folder, sha256, vocabulary_fingerprint="v" * 64, descriptor_fingerprint="d" * 64, known={})


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize(
    ("images", "features", "words"), [(40, 700, 3000), (300, 60, 50), (3, 20_000, 100_000), (2, 0, 9)]
)
@pytest.mark.parametrize("which", range(3))
def test_lists_are_made_again_byte_for_byte(
    tmp_path: Path, form: int, images: int, features: int, words: int, which: int
) -> None:
    folder = tmp_path / "segment"
    sha256 = write(folder, form, images, features, words)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    lost = [f"{name}.npy" for name in LISTS[form][which]]
    for name in lost:
        (folder / name).write_bytes(files[name][:-1] + bytes([files[name][-1] ^ 1]))
    if len(lost) > 1:
        (folder / lost[0]).unlink()
    assert sorted(restore(folder, sha256)) == sorted(lost)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


@pytest.mark.parametrize("lost", ["meta.json", "offsets.npy", "posting_lists.npy", "word_lists.npy"])
def test_what_is_lost_beside_signatures_is_made_again(tmp_path: Path, lost: str) -> None:
    folder = tmp_path / "segment"
    sha256 = write(folder, 2, 40, 300, 3000, has_signatures=True)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "posting_signatures.npy" in files
    (folder / lost).unlink()
    assert lost in restore(folder, sha256)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


def test_lost_signatures_are_made_from_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "segment"
    sha256 = write(folder, 2, 40, 300, 3000, has_signatures=True)
    (folder / "posting_signatures.npy").unlink()
    assert restore(folder, sha256) == [] and verify_segment(folder) == ["posting_signatures.npy"]


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("which", [1, 2])
def test_lists_are_made_again_in_little_memory(tmp_path: Path, form: int, which: int) -> None:
    """A merged segment has 40 million features, for which about a gigabyte is allowed."""
    folder = tmp_path / "segment"
    sha256 = write(folder, form, 80, 1500, 100_000)
    for name in LISTS[form][which]:
        (folder / f"{name}.npy").unlink()
    tracemalloc.start()
    restored = restore(folder, sha256)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(restored) == len(LISTS[form][which])
    assert peak < 30 * 80 * 1500 * 4 // 5 + 50 * 8 * BLOCK


@pytest.mark.parametrize("change", [lambda meta: [], lambda meta: {**meta, "format": -(1 << 63)}, lambda meta: {}])
def test_a_description_that_was_tampered_with_and_noted_down_restores_nothing(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    folder = tmp_path / "s"
    write(folder, 2, 4, 20, 10)
    (folder / "offsets.npy").unlink()
    tampered = json.dumps(change(json.loads((folder / META).read_text()))).encode()
    (folder / META).write_bytes(tampered)
    assert restore(folder, hashlib.sha256(tampered).hexdigest()) == []
    assert (folder / META).read_bytes() == tampered


@pytest.mark.parametrize("kind", ["no type", "<U9", "|V8"])
def test_a_type_that_no_array_can_have_restores_nothing(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "s"
    write(folder, 2, 4, 20, 10)
    (folder / "offsets.npy").unlink()
    meta = json.loads((folder / META).read_text())
    meta.pop("sha256")
    meta["files"]["offsets"]["dtype"] = kind
    tampered = json.dumps({**meta, "sha256": fingerprint({}, meta)}).encode()
    (folder / META).write_bytes(tampered)
    assert restore(folder, hashlib.sha256(tampered).hexdigest()) == []
