"""Photos as files of a few bytes that determine their features, so that extraction is free.

Few words, features and objects, so that scores tie and photos verify.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from index.search_backends import search_backend
from index.similarity import SimilarityMatrix
from index.vocabulary import Vocabulary
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.encoding import frames_of
from retrieval.features.extraction import Extractor, Features
from retrieval.features.staging import Staged, Staging
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.report import IndexReport
from retrieval.search.options import SearchOptions
from retrieval.search.query import Query, quantise_views
from retrieval.search.searcher import Searcher
from retrieval.search.views import DescribedView
from tests.support.searching import answer_to

WORDS, DIM, SIDE = 40, 8, 100
THINGS, EMPTY = 3, 11  # objects in photos; each photo of number 10 modulo 11 has no features
_SCALE = 8.0  # spacing of the words' centres: features are never near the border of two words
_CENTRES = (_SCALE * np.random.default_rng(0).normal(size=(WORDS, DIM))).astype(np.float32)

Found = tuple[str, bytes, int]
"""Name, bytes of the score, inliers."""


def write_photo(path: Path, number: int, mtime_ns: int) -> None:
    """Write the photo of a number: the same bytes and the same features each time."""
    path.write_bytes(f"photo {number}\n".encode())
    os.utime(path, ns=(mtime_ns, mtime_ns))


@cache
def features_of(number: int) -> Features:
    """Features of the photo of a number: of its object, from a random view, and some of clutter."""
    if number % EMPTY == EMPTY - 1:
        return Features(np.zeros((0, 5), np.float32), np.zeros(0, np.float32), np.zeros((0, DIM), np.float16))
    rng, thing = np.random.default_rng(number), np.random.default_rng(1000 + number % THINGS)
    words, points = thing.integers(0, 16, 20), thing.uniform(0.1, 0.6, (20, 2))
    shown = rng.random(20) < 0.8
    scale, noise = rng.uniform(0.8, 1.4), int(rng.integers(1, 11))
    words = np.concatenate([words[shown], rng.integers(0, WORDS, noise)])
    centres = np.concatenate([points[shown] * scale + rng.uniform(0, 0.1, 2), rng.uniform(0, 1, (noise, 2))]) * SIDE
    shape = np.full(len(words), 1 / (5 * scale) ** 2)
    ellipses = np.column_stack([centres, shape, np.zeros(len(words)), shape]).astype(np.float32)
    descriptors = (_CENTRES[words] + 0.1 * rng.normal(size=(len(words), DIM))).astype(np.float16)
    return Features(ellipses, np.zeros(len(words), np.float32), descriptors)


@cache
def counts_of(number: int) -> np.ndarray:
    """Number of features of a photo with each word, (WORDS,) int64, by the distances to all centres."""
    rows = features_of(number).descriptors.astype(np.float64)
    distances = np.square(rows[:, None, :] - _CENTRES[None].astype(np.float64)).sum(-1)
    return np.bincount(distances.argmin(1), minlength=WORDS) if len(rows) else np.zeros(WORDS, np.int64)


@contextmanager
def extraction_from_files(fsync: bool = False) -> Iterator[None]:
    """Extract features from the files themselves; without `fsync`, nothing waits for the disk."""

    def stage(self: Staging, path: Path, key: str) -> Staged:
        try:
            content = path.read_bytes()
            number = int(content.removeprefix(b"photo "))
        except (OSError, ValueError):
            return Staged(0, 0, 0, "the file is not a photo")
        assert hashlib.sha256(content).hexdigest() == key
        features = features_of(number)
        np.save(self.descriptors(key), features.descriptors)
        (self.folder / f"{key}.number").write_text(str(number))
        return Staged(len(features), SIDE, SIDE)

    def read(self: Staging, key: str) -> Features:
        return features_of(int((self.folder / f"{key}.number").read_text()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Staging, "stage", stage)
        patch.setattr(Staging, "read", read)
        if not fsync:
            patch.setattr("os.fsync", lambda handle: None)
        yield


def write_vocabulary(folder: Path) -> Vocabulary:
    """Save the vocabulary of all these photos."""
    extractor = Extractor(
        find_descriptor(CollectionOptions(signature="none").descriptor), CollectionOptions(signature="none").features
    )
    search = search_backend("faiss").build(_CENTRES)
    vocabulary = Vocabulary(search, extractor.fingerprint, "nothing", 1.0, 0.08, {})
    vocabulary.save(folder)
    return vocabulary


def similarity(vocabulary: Vocabulary) -> SimilarityMatrix:
    """A similarity that relates some words."""
    rng = np.random.default_rng(7)
    first, second = np.triu_indices(WORDS, 1)
    some = rng.random(len(first)) < 0.1
    values = rng.uniform(0, 0.5, int(some.sum())).astype(np.float32)
    return SimilarityMatrix(
        vocabulary.fingerprint,
        rng.uniform(0.5, 1.5, WORDS).astype(np.float32),
        first[some].astype(np.int32),
        second[some].astype(np.int32),
        values,
    )


def query_of(collection: Collection, number: int) -> Query:
    """The photo of a number as a query."""
    features = features_of(number)
    return query_of_views(collection, [DescribedView(0.0, frames_of(features, SIDE), features.descriptors)])


def query_of_views(collection: Collection, views: Sequence[DescribedView]) -> Query:
    """A query with some views, with signatures if the collection has them."""
    found = quantise_views(views, collection.vocabulary, source=collection.signatures, signed=3)
    return Query(Path("query"), SIDE, SIDE, None, found)


def rankings(collection: Collection, numbers: Sequence[int], options: SearchOptions) -> list[list[Found]]:
    """Answers of a collection to photos by number, with ties sorted by name."""
    searcher = Searcher(collection, options)
    names = {number: name for number, name, _ in collection.catalogue.places()}
    answers = []
    for number in numbers:
        found = [
            (names[hit.number], np.float32(hit.score).tobytes(), hit.verification.inliers)
            for hit in answer_to(query_of(collection, number), searcher).hits
        ]
        nothing = [entry for entry in found if entry[1:] == (bytes(4), 0)]
        assert found[len(found) - len(nothing) :] == nothing
        # Ties stay in the order of adding.
        answers.append([entry for _, tied in groupby(found, key=itemgetter(1, 2)) for entry in sorted(tied)])
    return answers


@dataclass
class Album:
    """A folder of such photos, and a collection of them."""

    folder: Path
    options: CollectionOptions
    catalogue: str | None = None
    clock: Iterator[int] = field(default_factory=lambda: count(10**18, 10**9))

    @property
    def photos(self) -> Path:
        """Folder of the photos."""
        return self.folder / "photos"

    @property
    def place(self) -> Path:
        """Folder of the collection."""
        return self.folder / "c.cairn"

    def put(self, **photos: int) -> None:
        """Write photos by their names, without the extension; `a__b` is in folder a."""
        for name, number in photos.items():
            path = self.photos / f"{name.replace('__', '/')}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_photo(path, number, next(self.clock))

    def index(self, *names: str) -> IndexReport:
        """Index all photos, or some."""
        with self.open() as collection:
            paths = [self.photos / name for name in names] if names else [self.photos]
            vocabulary = None if collection.has_vocabulary else self.folder / "words"
            return index_photos(collection, paths, AddOptions(vocabulary=vocabulary))

    def once(self, name: str, make: Callable[["Album"], object]) -> None:
        """Do something to this new album, or copy the stored result of an earlier test with this name.

        Photos are identified by their full paths, so a copy is only usable in the same place, that of
        `album_in_one_place`.
        """
        kept = self.folder.with_name(name)
        if kept.is_dir():
            shutil.copytree(kept, self.folder, dirs_exist_ok=True)
        else:
            make(self)
            shutil.copytree(self.folder, kept)
        self.clock = count(2 * 10**18, 10**9)  # later than all written files

    def open(self) -> Collection:
        """Open the collection, or make it."""
        return Collection.create(self.place, self.options, catalogue=self.catalogue)

    def held(self) -> dict[str, int]:
        """Numbers of the images by the names of the photos."""
        with self.open() as collection:
            return {str(row.name): row.number for row in collection.catalogue.read(all_indexed)}

    def answers(self, *numbers: int) -> list[list[Found]]:
        """Verified answers of the collection."""
        with self.open() as collection:
            return rankings(collection, numbers or (0, 1, 2, 29), SearchOptions())

    def fresh(self, **photos: int) -> "Album":
        """Another album, of the same vocabulary."""
        other = Album(self.folder / f"fresh-{next(self.clock)}", CollectionOptions(signature="none"))
        other.photos.mkdir(parents=True)
        shutil.copytree(self.folder / "words", other.folder / "words")
        other.put(**photos)
        other.index()
        return other


@pytest.fixture
def album(tmp_path: Path) -> Iterator[Album]:
    """An empty one."""
    with extraction_from_files():
        yield _empty(tmp_path)


@pytest.fixture(scope="module")
def place_of_album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of `album_in_one_place`, and of the results stored by `Album.once`."""
    return tmp_path_factory.mktemp("albums") / "album"


@pytest.fixture
def album_in_one_place(place_of_album: Path) -> Iterator[Album]:
    """An empty album, in the same folder for each test of a module."""
    shutil.rmtree(place_of_album, ignore_errors=True)
    place_of_album.mkdir()
    with extraction_from_files():
        yield _empty(place_of_album)


def _empty(folder: Path) -> Album:
    (folder / "photos").mkdir()
    write_vocabulary(folder / "words")
    return Album(folder, CollectionOptions(batch=3, signature="none"))
