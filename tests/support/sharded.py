"""A small collection of many segments, with difficulties for sharding: ties, removed photos, borrowed features."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval.collection.augmentation import Loan, write_loans, write_manifest
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.features.encoding import frames_of
from retrieval.indexing.removal import remove_photos
from retrieval.search.query import Query
from retrieval.search.views import DescribedView
from retrieval.shards.epoch import open_epoch
from retrieval.shards.holder import Call, Holder
from retrieval.shards.holders import Holders, Lost
from retrieval.shards.shards import Shards, ShardTimeouts
from tests.support.written_photos import (
    SIDE,
    Album,
    extraction_from_files,
    features_of,
    query_of_views,
    similarity,
    write_vocabulary,
)

PHOTOS, BATCH = 36, 4  # nine segments: ten would be merged


class LocalHolders(Holders):
    """Holders in this process.

    Parameters
    ----------
    number : int
        How many.
    """

    def __init__(self, number: int) -> None:
        self.there: dict[str, Holder] = {f"holder-{one}": Holder() for one in range(number)}
        self.seconds: dict[str, float] = dict.fromkeys(self.there, 0.0)  # processor time of each
        self.messages = 0

    def members(self) -> list[str]:
        """Names of the holders: see `Holders.members`."""
        return list(self.there)

    def ask(self, calls: Mapping[str, Sequence[Call]], seconds: float) -> dict[str, list[Any] | Exception]:
        """Call several in turn: see `Holders.ask`."""
        found: dict[str, list[Any] | Exception] = {}
        for member, some in calls.items():
            self.messages += 1
            began = time.process_time()
            try:
                found[member] = self.there[member].run(some) if member in self.there else Lost([member])
            except Exception as error:  # pickled, as from another machine
                found[member] = error
            if member in self.seconds:
                self.seconds[member] += time.process_time() - began
        return found


def make_album(folder: Path, seed: int, *, borrowing: bool = True) -> Album:
    """Index photos in a random order of names, remove some, and make others borrow features."""
    rng = np.random.default_rng(seed)
    (folder / "photos").mkdir(parents=True)
    similarity(write_vocabulary(folder / "words")).save(folder / "similarity.npz")
    album = Album(folder, CollectionOptions(batch=BATCH, keep_descriptors=True, signature="hamming-64"))
    names = [f"n{one:03d}" for one in rng.permutation(PHOTOS)]
    # Some photos occur twice or three times: their scores tie.
    album.put(**dict(zip(names, rng.integers(0, 26, PHOTOS).tolist(), strict=True)))
    for first in range(0, PHOTOS, BATCH):  # for small segments
        album.index(*(f"{name}.jpg" for name in names[first : first + BATCH]))
    with album.open() as collection:
        gone = rng.choice(names, 5, replace=False).tolist()
        remove_photos(collection, [f"{name}.jpg" for name in gone])
        if borrowing:
            lend(collection, rng)
    return album


def lend(collection: Collection, rng: np.random.Generator) -> None:
    """Let a third of the photos borrow features of another."""
    numbers = collection.index.image_numbers.tolist()
    loans = []
    for photo in sorted(rng.choice(numbers, len(numbers) // 3, replace=False).tolist()):
        source = int(rng.choice(numbers))
        image = collection.index.images.features(source)
        some = np.flatnonzero(rng.random(len(image.words)) < 0.5)
        signatures = collection.index.images.signatures(source)[some]
        loans.append(Loan(photo, (source,), image.words[some].astype(np.uint32), signatures))
    segment = write_loans(collection.folder, collection.basis, loans)
    write_manifest(collection.folder, collection.basis, "test", [segment])
    collection.forget()


def query_at_turns(collection: Collection, *numbers: int) -> Query:
    """A query whose views are photos by number: the first upright, the others as if rotated."""
    views = [
        DescribedView(float(turn), frames_of(features, SIDE), features.descriptors)
        for turn, features in enumerate(map(features_of, numbers))
    ]
    return query_of_views(collection, views)


def local_shards(collection: Collection, shards: int, holders: int, patience: ShardTimeouts | None = None) -> Shards:
    """Shards of a collection on holders in this process."""
    return Shards(open_epoch(collection, shards), LocalHolders(holders), patience)


@dataclass
class SharedAlbum:
    """An album, and the collection of it, open."""

    album: Album
    collection: Collection
    shards: dict[tuple[int, int], Shards] = field(default_factory=dict)

    def sharded(self, shards: int, holders: int) -> Shards:
        """Its shards, on `holders` holders."""
        if (shards, holders) not in self.shards:
            self.shards[shards, holders] = local_shards(self.collection, shards, holders)
        return self.shards[shards, holders]


ALBUMS = [0, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 2))]


@contextmanager
def opened_album(folder: Path, number: int) -> Iterator[SharedAlbum]:
    """One of the albums, made in a folder."""
    with extraction_from_files():
        album = make_album(folder, number, borrowing=number != 2)
    with album.open() as collection:
        yield SharedAlbum(album, collection)


@pytest.fixture(scope="session", params=ALBUMS)
def shared_album(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedAlbum]:
    """One of three read-only albums."""
    with opened_album(tmp_path_factory.mktemp("shared") / "album", request.param) as album:
        yield album
