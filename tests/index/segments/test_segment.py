"""Segments: data are read back by word and by image, and damage is detected."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from index.postings import word_lists
from index.postings.entries import Postings, QuerySignatures
from index.segments.description import segment_bytes, verify_segment
from index.segments.segment import Segment
from index.segments.writing import write_segment
from tests.support.segments_of_format_1 import write_segment_of_format_1

VOCABULARY, DESCRIPTOR = "a" * 64, "b" * 64


def write(
    folder: Path, words: list[list[int]], numbers: list[int] | None = None, **columns: list[np.ndarray]
) -> Segment:
    return write_segment(
        folder,
        image_numbers=np.array(numbers if numbers is not None else range(len(words)), dtype=np.uint32),
        words=[np.array(row, dtype=np.int32) for row in words],
        columns=columns,
        vocabulary_fingerprint=VOCABULARY,
        descriptor_fingerprint=DESCRIPTOR,
    )


def write_as(
    form: int, folder: Path, words: list[list[int]], numbers: list[int] | None = None, **columns: list[np.ndarray]
) -> Segment:
    """Write a segment in a format."""
    if form != 1:
        return write(folder, words, numbers, **columns)
    write_segment_of_format_1(
        folder,
        image_numbers=numbers if numbers is not None else range(len(words)),
        words=words,
        columns=columns,
        vocabulary_fingerprint=VOCABULARY,
        descriptor_fingerprint=DESCRIPTOR,
    )
    return Segment.open(folder)


@pytest.mark.parametrize("form", [1, 2])
def test_hand_made_segment(tmp_path: Path, form: int) -> None:
    positions = [
        np.array([[1, 2], [3, 4], [5, 6]], np.uint16),
        np.empty((0, 2), np.uint16),
        np.array([[7, 8]], np.uint16),
    ]
    segment = write_as(form, tmp_path / "000001", [[9, 4, 9], [], [4]], numbers=[3, 8, 70_000], position=positions)

    assert segment.format == form
    assert (segment.images, segment.features) == (3, 4)
    assert segment.image_numbers.tolist() == [3, 8, 70_000]
    postings = segment.postings(np.array([0, 4, 9, 10]))
    assert postings.words.tolist() == [4, 9]
    assert postings.lengths.tolist() == [2, 1]
    assert postings.images.tolist() == [0, 2, 0]
    assert postings.counts.tolist() == [1, 1, 2]
    assert segment.document_frequency(11).tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0]
    assert segment.feature_frequency(11).tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0]
    first = segment.image(0)
    assert first.words.tolist() == [4, 9, 9]
    # Features of one word stay in input order.
    assert first.columns["position"].tolist() == [[3, 4], [1, 2], [5, 6]]
    assert segment.image(1).columns["position"].shape == (0, 2)
    assert segment.image(2).columns["position"].tolist() == [[7, 8]]
    assert not first.columns["position"].flags.writeable and not first.columns["position"].flags.owndata
    lengths, words = segment.words_of(np.array([2, 0, 1, 0]))
    assert lengths.tolist() == [1, 3, 0, 3]
    assert words.tolist() == [4, 4, 9, 9, 4, 9, 9]
    with pytest.raises(IndexError):
        segment.image(3)


def test_notes_are_kept_and_hashed_like_all_else(tmp_path: Path) -> None:
    assert write(tmp_path / "000001", [[1]]).notes == b""
    notes = bytes(range(256)) * 3
    segment = write_segment(
        tmp_path / "000002",
        image_numbers=np.array([0], np.uint32),
        words=[np.array([1])],
        columns={},
        vocabulary_fingerprint=VOCABULARY,
        descriptor_fingerprint=DESCRIPTOR,
        notes=notes,
    )
    assert segment.notes == Segment.open(segment.folder).notes == notes
    assert segment.bytes["notes"] == (segment.folder / "notes.npy").stat().st_size
    content = bytearray((segment.folder / "notes.npy").read_bytes())
    content[-5] ^= 1
    (segment.folder / "notes.npy").write_bytes(content)
    assert verify_segment(segment.folder) == ["notes.npy"]
    with pytest.raises(ValueError, match="notes"):
        write(tmp_path / "000003", [[1]], notes=[np.ones(1)])


def test_elongations_are_kept_where_an_image_has_one(tmp_path: Path) -> None:
    def with_elongations(name: str, *elongations: float) -> Segment:
        return write_segment(
            tmp_path / name,
            image_numbers=np.array([3, 4, 9], np.uint32),
            words=[np.array([1]), np.array([2, 1]), np.zeros(0, np.int32)],
            columns={},
            vocabulary_fingerprint=VOCABULARY,
            descriptor_fingerprint=DESCRIPTOR,
            elongations=elongations,
        )

    for plain in (with_elongations("1"), with_elongations("2", 1, 1.0, 1)):
        assert plain.elongations is None and plain.image(1).elongation == 1
        assert not (plain.folder / "elongations.npy").exists()
    assert (tmp_path / "1" / "meta.json").read_bytes() == (tmp_path / "2" / "meta.json").read_bytes()
    segment = with_elongations("3", 1, 6.5, 2.25)
    assert [one.elongation for one in segment.some_images(np.array([2, 0, 1]))] == [2.25, 1, 6.5]
    assert segment.bytes["images"] == sum(
        (segment.folder / f"{name}.npy").stat().st_size for name in ("image_numbers", "offsets", "elongations")
    )
    for wrong in ((1, 2), (1, 2, 0.5), (1, 2, np.nan), (1, 2, np.inf)):
        with pytest.raises(ValueError, match="elongations"):
            with_elongations("4", *wrong)
    claimed = segment.folder / "elongations.npy"
    np.save(claimed, np.array([1, 0.5, 1], np.float32))
    with pytest.raises(CairnError, match="damaged"):
        Segment.open(segment.folder)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    images=st.lists(st.lists(st.integers(0, 12) | st.integers(0, 2**31 - 1), max_size=9), min_size=1, max_size=6),
    gap=st.integers(1, 10**8),
    form=st.sampled_from([1, 2, 2]),
)
def test_both_parts_hold_every_feature(
    tmp_path_factory: pytest.TempPathFactory, images: list[list[int]], gap: int, form: int
) -> None:
    numbers = [1 + gap * i for i in range(len(images))]
    tags = [np.arange(len(row), dtype=np.float32)[:, None] + 100 * i for i, row in enumerate(images)]
    folder = tmp_path_factory.mktemp("segment") / "s"
    segment = write_as(form, folder, images, numbers, tag=tags)

    assert segment.image_numbers.tolist() == numbers
    for i, row in enumerate(images):
        got = segment.image(i)
        expected = sorted((word, 100 * i + k) for k, word in enumerate(row))
        assert list(zip(got.words.tolist(), got.columns["tag"][:, 0].tolist(), strict=True)) == expected
    expected_postings = sorted({(w, i, row.count(w)) for i, row in enumerate(images) for w in row})
    words = sorted({word for row in images for word in row})
    assert listed([segment.postings(np.array(words, np.int64))]) == expected_postings
    assert listed([segment.postings(np.array(words[::2], np.int64))]) == [
        posting for posting in expected_postings if posting[0] in words[::2]
    ]
    assert listed([segment.postings()]) == expected_postings
    assert segment.verify() == []


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("vectors", [1, 3])
def test_products_are_those_of_the_vectors_by_hand(tmp_path: Path, form: int, vectors: int) -> None:
    """A sum over words in order, with term frequencies of each image's counts."""
    rng = np.random.default_rng(vectors)
    rows = [rng.integers(0, 60, rng.integers(0, 50)).tolist() for _ in range(9)]
    segment = write_as(form, tmp_path / "s", rows)
    words = np.unique(rng.integers(0, 70, 30))
    weights = rng.random((len(words), vectors)) * (rng.random((len(words), vectors)) < 0.6)
    weights[1] = 0
    total = rng.random((vectors, 9))
    expected = total.copy()
    segment.add_products(total, words, weights, lambda counts: np.sqrt(counts, dtype=np.float64))
    for image, row in enumerate(rows):
        for word, some in zip(words.tolist(), weights, strict=True):
            if word in row:
                expected[:, image] += np.sqrt(row.count(word)) * some
    assert total.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("words", "per_image", "images"), [(20, 500, 40), (5_000, 50, 60), (10**6, 30, 2), (3, 200, 1)]
)
def test_many_words_or_few_give_the_same_postings(tmp_path: Path, words: int, per_image: int, images: int) -> None:
    """Rare words share lists."""
    rng = np.random.default_rng(words)
    rows = [rng.integers(0, words, per_image).tolist() for _ in range(images)]
    segment = write(tmp_path / "s", rows)
    expected = sorted({(word, i, row.count(word)) for i, row in enumerate(rows) for word in row})
    assert listed([segment.postings()]) == expected
    requested = np.unique(np.concatenate([rng.integers(0, words, 40), rows[0][:20]]))
    assert listed([segment.postings(requested)]) == [one for one in expected if one[0] in requested]
    frequency = np.bincount([word for word, _, _ in expected], minlength=words)
    assert (segment.document_frequency(words) == frequency).all()
    counts = np.bincount(np.concatenate(rows), minlength=words)
    assert (segment.feature_frequency(words) == counts).all()


def listed(blocks: list[Postings]) -> list[tuple[int, int, int]]:
    """Word, position and count of each posting."""
    return [
        posting
        for block in blocks
        for posting in zip(
            np.repeat(block.words, block.lengths).tolist(), block.images.tolist(), block.counts.tolist(), strict=True
        )
    ]


def test_bytes_by_part_are_those_of_the_files_and_few(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = [rng.integers(0, 20_000, 2_000).tolist() for _ in range(50)]
    geometry = [rng.integers(0, 256, (2_000, 5)).astype(np.uint8) for _ in words]
    segment = write(tmp_path / "s", words, geometry=geometry)
    assert segment.bytes.keys() == {"images", "words", "postings", "geometry"}
    assert segment_bytes(tmp_path / "s") == segment.bytes
    assert sum(segment.bytes.values()) == sum(path.stat().st_size for path in (tmp_path / "s").glob("*.npy"))
    assert 6 < segment.bytes_per_feature < 7


@pytest.mark.parametrize("images", [1, 30])
def test_a_large_vocabulary_costs_few_bytes(tmp_path: Path, images: int) -> None:
    """As in a collection of 100,000 photos, when some more are added."""
    rng = np.random.default_rng(0)
    segment = write(tmp_path / "s", [rng.integers(0, 500_000, 2_000).tolist() for _ in range(images)])
    for part in ("words", "postings"):
        headers = 128 * (2 if part == "postings" else 1)
        assert (segment.bytes[part] - headers) / segment.features < 1.55


def test_other_fingerprints_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "s", [[1]])
    Segment.open(tmp_path / "s", vocabulary_fingerprint=VOCABULARY, descriptor_fingerprint=DESCRIPTOR)
    with pytest.raises(CairnError, match="another vocabulary"):
        Segment.open(tmp_path / "s", vocabulary_fingerprint="c" * 64)
    with pytest.raises(CairnError, match="another descriptor"):
        Segment.open(tmp_path / "s", descriptor_fingerprint="c" * 64)


def test_any_flipped_byte_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    segment = write(folder, [[1, 2, 2], [2]], tag=[np.zeros(3, np.uint8), np.zeros(1, np.uint8)])
    for path in sorted(folder.iterdir()):
        sound = path.read_bytes()
        for at in {len(sound) // 2, len(sound) - 2}:
            path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
            assert segment.verify() == [path.name]
        path.write_bytes(sound)
    (folder / "word_lists.npy").unlink()
    assert verify_segment(folder) == ["word_lists.npy"]
    with pytest.raises(CairnError, match="missing"):
        Segment.open(folder)


@pytest.mark.parametrize(
    ("vocabulary", "sizes"), [(20_000, (300, 200, 0, 100)), (40, (9, 0, *[8] * 98))], ids=["many words", "few"]
)
def test_damaged_postings_are_refused_or_of_the_words_that_were_asked_for(
    tmp_path: Path, vocabulary: int, sizes: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(3)
    write(tmp_path / "s", [rng.integers(0, vocabulary, size).tolist() for size in sizes])
    path = tmp_path / "s" / "posting_lists.npy"
    sound, refused, read = path.read_bytes(), 0, 0
    for at in range(144, len(sound)):  # after NumPy's header and the one of the lists
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1 << int(rng.integers(8))]) + sound[at + 1 :])
        requested = np.unique(rng.integers(0, vocabulary, 60))
        try:
            postings = Segment.open(tmp_path / "s").postings(requested)
        except CairnError as error:
            assert "posting_lists.npy is damaged" in str(error)
            refused += 1
            continue
        read += 1
        assert np.isin(postings.words, requested).all()
        assert (np.diff(postings.words) > 0).all()
        of = np.repeat(np.arange(len(postings.words)), postings.lengths)
        assert (np.diff(of * len(sizes) + postings.images) > 0).all()
        assert ((postings.images >= 0) & (postings.images < len(sizes))).all()
        assert (postings.counts > 0).all()
    assert refused > 0 and read > 0


@pytest.mark.parametrize("name", ["word_lists.npy", "offsets.npy", "posting_lists.npy", "column_tag.npy", "meta.json"])
def test_a_truncated_file_is_refused_at_opening(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "s"
    write(folder, [[1, 2, 2], [2]], tag=[np.zeros(3, np.uint8), np.zeros(1, np.uint8)])
    path = folder / name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CairnError):
        Segment.open(folder)


def test_arrays_that_do_not_match_are_refused_at_opening(tmp_path: Path) -> None:
    write(tmp_path / "s", [[1, 2, 2], [2]])
    np.save(tmp_path / "s" / "word_lists.npy", np.zeros(5, np.uint8))
    with pytest.raises(CairnError, match=r"word_lists\.npy is damaged"):
        Segment.open(tmp_path / "s")


def test_a_missing_segment_and_a_later_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="missing"):
        Segment.open(tmp_path / "s")
    write(tmp_path / "s", [[1]])
    meta = tmp_path / "s" / "meta.json"
    meta.write_text(meta.read_text().replace('"format": 2', '"format": 3'))
    with pytest.raises(CairnError, match="later version"):
        Segment.open(tmp_path / "s")


def test_a_failed_write_leaves_nothing_and_never_overwrites(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 rows for 1 features"):
        write(tmp_path / "s", [[1]], tag=[np.zeros(2)])
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "s", [[1]])
    with pytest.raises(CairnError, match="exists"):
        write(tmp_path / "s", [[2]])
    assert Segment.open(tmp_path / "s").image(0).words.tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([], []), ([2, 1], [[0], [0]]), ([1, 1], [[0], [0]]), ([1], [[-1]]), ([1], [[0], [0]])],
    ids=["no images", "descending", "repeated", "negative word", "lengths differ"],
)
def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, numbers: list[int], words: list[list[int]]) -> None:
    with pytest.raises(ValueError):
        write(tmp_path / "s", words, numbers)


def test_columns_of_mixed_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="float16"):
        write(tmp_path / "s", [[1], [1]], tag=[np.zeros(1, np.float16), np.zeros(1, np.float32)])
    with pytest.raises(ValueError, match="name of a column"):
        write(tmp_path / "s", [[1]], **{"../x": [np.zeros(1)]})


def test_images_without_any_feature(tmp_path: Path) -> None:
    segment = write(tmp_path / "s", [[], []], tag=[np.empty((0, 2), np.uint16)] * 2)
    assert (segment.images, segment.features, segment.bytes_per_feature) == (2, 0, 0.0)
    assert segment.document_frequency(3).tolist() == [0, 0, 0]
    assert segment.feature_frequency(3).tolist() == [0, 0, 0]
    assert listed([segment.postings(np.array([0, 2]))]) == listed([segment.postings()]) == []
    assert segment.image(1).columns["tag"].shape == (0, 2)


# Signatures


def signed(data: list[list[int]], length: int = 4) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Words of images, and signatures that encode image and feature."""
    rows = [
        np.array([[i, k, 7, 9][:length] for k in range(len(row))], np.uint8).reshape(-1, length)
        for i, row in enumerate(data)
    ]
    return [np.array(row, np.int64) for row in data], rows


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    images=st.lists(st.lists(st.integers(0, 12) | st.integers(0, 10**6), max_size=9), min_size=1, max_size=9),
    chosen=st.lists(st.integers(0, 8), max_size=9),
    most=st.integers(1, 30),
)
def test_signatures_stay_with_their_features(
    tmp_path_factory: pytest.TempPathFactory, images: list[list[int]], chosen: list[int], most: int
) -> None:
    words, rows = signed(images)
    folder = tmp_path_factory.mktemp("segment") / "s"
    segment = write(folder, images, signature=rows)
    assert segment.signatures is not None and segment.signatures.shape == (segment.features, 4)
    assert segment.columns == {} and segment.bytes["signatures"] == (folder / "posting_signatures.npy").stat().st_size
    expected = [row[np.argsort(some, kind="stable")] for some, row in zip(words, rows, strict=True)]
    # Of few images, of many, and of all, in any order and with repeats.
    positions = np.array([k for k in chosen if k < len(images)], np.int64)
    for some in (positions, np.arange(len(images)), *(np.array([k]) for k in range(len(images)))):
        for position, found in zip(some.tolist(), segment.signatures_of(some), strict=True):
            np.testing.assert_array_equal(found, expected[position])
    # By word: a list of each, its images ascending, its features in input order.
    requested = np.unique(np.concatenate([np.zeros(0, np.int64), *words]))
    for wanted, long in itertools.product((None, requested, requested[::2]), (0, word_lists.LONG)):
        listed_ = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(word_lists, "LONG", long)  # signatures of a list are copied together, or row by row
            blocks = list(segment.signed_blocks(most, wanted))
        for entries in blocks:
            lists = np.repeat(entries.words, entries.lengths)
            listed_ += list(
                zip(lists.tolist(), entries.images.tolist(), entries.signatures[:, 1].tolist(), strict=True)
            )
            assert (entries.signatures[:, 0] == entries.images).all()
        kept = set((requested if wanted is None else wanted).tolist())
        every = [(word, i, k) for i, row in enumerate(images) for k, word in enumerate(row) if word in kept]
        assert listed_ == sorted(every)
    assert segment.verify() == []


@pytest.mark.parametrize(
    "rows",
    [np.zeros((2, 4), np.int8), np.zeros((2, 4), np.float32), np.zeros(2, np.uint8), np.zeros((2, 4, 1), np.uint8)],
)
def test_signatures_are_rows_of_bytes(tmp_path: Path, rows: np.ndarray) -> None:
    with pytest.raises(ValueError, match="signatures must be rows of bytes"):
        write(tmp_path / "s", [[1, 2]], signature=[rows])
    assert list(tmp_path.iterdir()) == []


def test_a_segment_of_photos_without_features_has_signatures_too(tmp_path: Path) -> None:
    segment = write(tmp_path / "s", [[], []], signature=[np.zeros((0, 8), np.uint8)] * 2)
    assert [found.shape for found in segment.signatures_of(np.arange(2))] == [(0, 8), (0, 8)]
    assert [found.shape for found in segment.signatures_of(np.array([1]))] == [(0, 8)]
    assert list(segment.signed_blocks(5, np.array([0, 3]))) == []


@pytest.mark.parametrize("form", [1, 2])
def test_without_signatures_a_sentence_says_what_to_do(tmp_path: Path, form: int) -> None:
    segment = write_as(form, tmp_path / "s", [[1], [2]])
    assert segment.signatures is None and "signatures" not in segment.bytes
    for ask in (lambda: list(segment.signed_blocks(9)), lambda: segment.signatures_of(np.array([0]))):
        with pytest.raises(CairnError, match=r"s has no signatures: run Collection.retrain.signature=…."):
            ask()


@pytest.mark.parametrize("what", ["fewer", "wider type"])
def test_signatures_that_do_not_fit_are_damage(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "s"
    segment = write(folder, [[1, 2], [2]], signature=[np.zeros((2, 4), np.uint8), np.ones((1, 4), np.uint8)])
    assert segment.signatures is not None
    other = segment.signatures[:2] if what == "fewer" else segment.signatures.astype(np.uint16)
    np.save(folder / "posting_signatures.npy", other)
    with pytest.raises(CairnError, match=r"posting_signatures.npy is damaged: run Collection.check"):
        Segment.open(folder)
    assert verify_segment(folder) == ["posting_signatures.npy"]


@pytest.mark.parametrize("length", [4, 8, 16])
@pytest.mark.parametrize(
    ("vocabulary", "per_image", "images"),
    [(4, 40, 3), (3, 300, 1), (5, 2_000, 4), (30, 60, 50), (2_000, 20, 12), (10**6, 30, 2)],
)
def test_near_entries_are_all_those_that_differ_in_few_bits(
    tmp_path: Path, vocabulary: int, per_image: int, images: int, length: int
) -> None:
    """In long lists of one word, and in short ones shared by several words."""
    rng = np.random.default_rng(vocabulary)
    data = [rng.integers(0, vocabulary, rng.integers(0, per_image)).tolist() for _ in range(images)]
    patterns = rng.integers(0, 256, (3, length))
    noise = (rng.random((9, 8 * length)) < 0.1).astype(np.uint8)
    made = np.packbits(np.unpackbits(patterns.astype(np.uint8), axis=1)[rng.integers(0, 3, 9)] ^ noise, axis=1)
    rows = [made[rng.integers(0, 9, len(row))].reshape(-1, length) for row in data]
    segment = write(tmp_path / "s", data, signature=rows)

    there = np.concatenate([np.zeros(0, np.int64), *map(np.array, data)]).astype(np.int64)
    requested = np.sort(rng.choice(np.append(there, [vocabulary + 5, 0]), 25))
    signatures = made[rng.integers(0, 9, len(requested))]
    words, firsts, counts = np.unique(requested, return_index=True, return_counts=True)
    padded = np.zeros((len(requested), max(length, 8)), np.uint8)
    padded[:, :length] = signatures
    most = 3 * length
    found = segment.near(QuerySignatures(words, firsts, counts, padded.view("<u8").astype(np.uint64), most), 7)

    expected = set()
    for image, (row, some) in enumerate(zip(data, rows, strict=True)):
        for rank_of, word in enumerate(row):
            rank = 7 + row[:rank_of].count(word)
            for k in np.flatnonzero(requested == word).tolist():
                distance = int(np.bitwise_count(some[rank_of] ^ signatures[k]).sum())
                if distance <= most:
                    expected.add((k, image, rank, distance))
    columns = (found.rows, found.images, found.ranks, found.distances)
    reported = list(zip(*(column.tolist() for column in columns), strict=True))
    assert len(reported) == len(set(reported)) and set(reported) == expected and (expected or vocabulary == 10**6)


def test_what_rots_in_lists_is_refused_or_a_place_in_the_segment(tmp_path: Path) -> None:
    """Whatever the bytes say, nothing beyond the arrays is read."""
    rng = np.random.default_rng(1)
    data = [rng.integers(0, 40, 60).tolist() for _ in range(30)]
    segment = write(tmp_path / "s", data, signature=[rng.integers(0, 256, (60, 8)).astype(np.uint8) for _ in data])
    path = tmp_path / "s" / "posting_lists.npy"
    whole = path.read_bytes()
    start = len(whole) - len(segment._lists._of_words._high) - len(segment._lists._of_words._low)
    unary = len(whole) - len(segment._lists._of_words._high)
    words = np.arange(40)
    refused = 0
    for at in range(start, len(whole), 3):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(damaged)
        opened = Segment.open(tmp_path / "s")
        total = np.zeros((1, 30))
        # One bit more or less in the unary bits changes the number of entries.
        if at in range(unary, len(whole) - 1):
            with pytest.raises(CairnError):
                opened.near(QuerySignatures(words, words, np.ones(40, np.int64), np.zeros((40, 1), np.uint64), 64))
        try:
            near = opened.near(QuerySignatures(words, words, np.ones(40, np.int64), np.zeros((40, 1), np.uint64), 64))
            assert ((near.images >= 0) & (near.images < 30)).all()
            opened.add_products(
                total, words, (words % 3 > 0).astype(np.float64)[:, None], lambda counts: counts.astype(np.float64)
            )
        except CairnError:
            refused += 1
    assert refused > 10
