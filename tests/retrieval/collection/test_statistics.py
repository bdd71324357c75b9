"""Statistics of a collection's postings: the same as computed again, or not used at all."""

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from index.inverted import InvertedIndex, ScoringOptions
from index.segments.segment import Segment
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.segment_rows import segments_and_tombstones
from retrieval.catalogue.settings import keep_setting
from retrieval.collection import statistics
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS, STATISTICS
from retrieval.collection.sealing import seal
from retrieval.collection.statistics import FORMAT, read_statistics, statistics_key
from retrieval.collection.summary import describe_collection
from retrieval.indexing.compaction import compact
from retrieval.indexing.removal import remove_photos
from retrieval.integrity.check import check_collection
from tests.conftest import Ran


def computed(folder: Path) -> tuple[bytes, bytes]:
    """Document frequency and norms, by reading all postings."""
    with Collection.open(folder) as collection:
        _, removed = collection.catalogue.read(segments_and_tombstones)
        index = InvertedIndex(collection.segments, collection.vocabulary.words, removed)
    return index.document_frequency.tobytes(), index.norms.tobytes()


def opened(folder: Path) -> tuple[bytes, bytes]:
    """The same, as a search has them."""
    with Collection.open(folder) as collection:
        return collection.index.document_frequency.tobytes(), collection.index.norms.tobytes()


def test_opening_reads_no_postings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = computed(folder)
    for name in ("postings", "add_products", "near", "document_frequency", "image"):
        monkeypatch.setattr(Segment, name, lambda *_, **__: pytest.fail("a segment was read"))
    assert opened(folder) == expected


def test_other_scoring_computes_its_own_norms(folder: Path) -> None:
    rooted = ScoringOptions("sqrt")
    with Collection.open(folder) as collection:
        _, removed = collection.catalogue.read(segments_and_tombstones)
        expected = InvertedIndex(collection.segments, collection.vocabulary.words, removed, options=rooted)
        np.testing.assert_array_equal(collection.scored_index(rooted).norms, expected.norms)


def test_norms_of_another_weighting_are_computed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, before = computed(folder), statistics_key(folder / STATISTICS)
    monkeypatch.setattr(statistics, "WEIGHTING", 2)
    assert opened(folder) == expected
    with Collection.open(folder) as collection:
        seal(collection)
    assert statistics_key(folder / STATISTICS) != before


def test_every_command_that_changes_photos_keeps_them_anew(folder: Path) -> None:
    keys = [statistics_key(folder / STATISTICS)]
    with Collection.open(folder) as collection:
        remove_photos(collection, [row.name or "" for row in collection.catalogue.read(all_indexed)[:2]])
    assert opened(folder) == computed(folder)
    keys.append(statistics_key(folder / STATISTICS))
    with Collection.open(folder) as collection:
        compact(collection)
    assert opened(folder) == computed(folder)
    keys.append(statistics_key(folder / STATISTICS))
    assert None not in keys and len(set(keys)) == 3
    # One that changes none does not write them again.
    written = (folder / STATISTICS).stat().st_ino
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "some", "value")
        seal(collection)
    assert (folder / STATISTICS).stat().st_ino == written


def test_a_collection_is_described_without_opening_a_segment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Collection.open(folder) as collection:
        (folder / STATISTICS).rename(aside := folder.parent / "aside")
        expected = describe_collection(collection)
        assert expected["vocabulary"]["imbalance"] == round(collection.index.imbalance, 3)
        assert sum(expected["bytes"].values()) == sum(sum(one.bytes.values()) for one in collection.segments)
        aside.rename(folder / STATISTICS)
    monkeypatch.setattr(Segment, "open", lambda *_, **__: pytest.fail("a segment was opened"))
    with Collection.open(folder) as collection:
        assert describe_collection(collection) == expected


def test_stale_ones_are_not_used_and_reading_writes_none(folder: Path) -> None:
    stale = (folder / STATISTICS).read_bytes()
    with Collection.open(folder) as collection:
        remove_photos(collection, [collection.catalogue.read(all_indexed)[0].name or ""])
    (folder / STATISTICS).write_bytes(stale)  # as where a process was killed before it wrote them
    assert opened(folder) == computed(folder)
    assert (folder / STATISTICS).read_bytes() == stale
    (folder / STATISTICS).unlink()
    assert opened(folder) == computed(folder)
    assert not (folder / STATISTICS).exists()
    with Collection.open(folder) as collection:
        seal(collection)
    assert read_statistics(folder / STATISTICS) is not None


def test_damaged_ones_are_found_not_used_and_made_again(folder: Path, cairn: Callable[..., Ran]) -> None:
    file = folder / STATISTICS
    sound, expected = file.read_bytes(), computed(folder)
    line = sound.index(b"\n")
    for at in (3, line, line + 10, len(sound) - 100, len(sound) - 3):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert read_statistics(file) is None
        assert opened(folder) == expected
        assert [one.file for one in check_collection(folder).damaged] == [STATISTICS]
    file.write_bytes(sound[:-9])
    assert opened(folder) == expected
    assert cairn("repair", folder).code == 0
    assert file.read_bytes() == sound
    assert check_collection(folder).damaged == ()


@pytest.mark.parametrize(
    "change", [{"images": 3}, {"words": 10**12}, {"words": -1}, {"format": 2}, {"words": None}, {"images": [1]}]
)
def test_what_somebody_made_is_not_believed(folder: Path, change: dict[str, object]) -> None:
    file, expected = folder / STATISTICS, computed(folder)
    line, _, rest = file.read_bytes().partition(b"\n")
    body = json.dumps(json.loads(line) | change).encode() + b"\n" + rest[:-64]
    if change == {"images": 3}:
        body = body[: body.index(b"\n") + 1 + 4 * json.loads(line)["words"] + 8 * 3]
    file.write_bytes(body + hashlib.sha256(body).hexdigest().encode())
    assert opened(folder) == expected


def test_postings_that_were_mended_are_counted_again(folder: Path, cairn: Callable[..., Ran]) -> None:
    expected = computed(folder)
    damaged = next((folder / SEGMENTS).glob("*/posting_lists.npy"))
    contents = damaged.read_bytes()
    damaged.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))
    (folder / STATISTICS).unlink()
    with Collection.open(folder) as collection:
        seal(collection)
    assert cairn("repair", folder).code == 0
    assert damaged.read_bytes() == contents
    assert opened(folder) == expected


def test_what_was_computed_of_damaged_postings_is_found_after_they_are_restored_by_hand(
    folder: Path, cairn: Callable[..., Ran]
) -> None:
    expected = computed(folder)
    damaged = next((folder / SEGMENTS).glob("*/word_lists.npy"))
    sound = damaged.read_bytes()
    # Damage that reading does not notice: entries of other words, as many as before.
    for at in range(len(sound) - 1, 0, -1):
        damaged.write_bytes(sound[:at] + bytes([(sound[at] << 1 | sound[at] >> 7) & 0xFF]) + sound[at + 1 :])
        with contextlib.suppress(CairnError):
            if computed(folder)[0] != expected[0]:
                break
    (folder / STATISTICS).unlink()
    with Collection.open(folder) as collection:
        seal(collection)
    assert [Path(one.file).name for one in check_collection(folder).damaged] == ["word_lists.npy"]
    damaged.write_bytes(sound)
    assert opened(folder) != expected
    assert [one.file for one in check_collection(folder).damaged] == [STATISTICS]
    assert cairn("repair", folder).code == 0
    assert opened(folder) == expected
    assert check_collection(folder).ok


def test_those_of_a_later_version_are_neither_used_nor_damage(folder: Path) -> None:
    file, expected = folder / STATISTICS, computed(folder)
    line = json.loads(file.read_bytes().partition(b"\n")[0])
    body = json.dumps(line | {"format": FORMAT + 1}).encode() + b"\nanything"
    file.write_bytes(later := body + hashlib.sha256(body).hexdigest().encode())
    assert opened(folder) == expected
    assert check_collection(folder).ok
    assert file.read_bytes() == later
    file.write_bytes(later.replace(b"anything", b"anythinf"))
    assert [one.file for one in check_collection(folder).damaged] == [STATISTICS]


def test_where_they_cannot_be_written_the_rest_is(folder: Path) -> None:
    (folder / STATISTICS).unlink()
    (folder / STATISTICS).mkdir()
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "some", "value")
        seal(collection)
    assert opened(folder) == computed(folder)
