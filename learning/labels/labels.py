"""Labels: the photos of each object, and training queries made of them (Yan13, sections IV.A, IV.B, IV.D and V)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ISSUED = 80
"""Most photos of an object issued as queries (section IV.B)."""


@dataclass(frozen=True)
class Relevance:
    """Queries among the photos of a collection, by object, then number, and their positives.

    A photo of the database that is neither positive nor ignored for a query counts as irrelevant to it.
    """

    queries: NDArray[np.int64]  # (Q,) int64, image numbers of the query photos
    database: NDArray[np.int64]  # (N,) int64 ascending, image numbers of the database
    # Positives of each query: ascending image numbers in the database, without itself.
    positives: tuple[NDArray[np.int64], ...]
    # Ignored photos of each query: image numbers in the database, including itself.
    ignored: tuple[NDArray[np.int64], ...]
    objects: NDArray[np.int32]  # (Q,) int32, number of each query's object
    names: tuple[str, ...]  # of the objects

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights (Q,) float64 of the queries' triplets: max N(t) / N(i), N(i) queries of i's object (section IV.B)."""
        issued = np.bincount(self.objects, minlength=len(self.names))
        return np.asarray(issued.max(initial=0) / issued[self.objects])

    def without(self, numbers: NDArray[np.integer]) -> "Relevance":
        """Remove photos from queries and database."""
        rows = np.flatnonzero(~np.isin(self.queries, numbers))
        return _part(self, rows, np.setdiff1d(self.database, numbers))


@dataclass(frozen=True)
class ObjectLabels:
    """Photos labelled with one object."""

    name: str
    positives: frozenset[int]  # image numbers of the photos that show it
    junk: frozenset[int] = frozenset()  # of ignored photos, which for example show too little of it


@dataclass(frozen=True)
class Labels:
    """Labels of a collection's photos; photos without one are background and show no object."""

    # a photo may show several objects; then it is a positive for the queries of each, but no query, as its object would
    # be ambiguous
    objects: tuple[ObjectLabels, ...]
    # image numbers of the query photos of a ground truth. They are excluded from learning, both as queries and from the
    # database, so that the same ground truth can measure the result.
    asked: frozenset[int] = frozenset()

    def relevance(self, numbers: NDArray[np.integer], rng: np.random.Generator, *, most: int = ISSUED) -> Relevance:
        """Issue the labelled photos of a database (image numbers) as queries (section IV.B), at most `most` an object.

        Photos in `asked` are no queries. Positives are the other photos of the object; its junk and the query itself
        are ignored. Objects with fewer than two photos there have no queries, but keep their number and name.
        """
        database = np.setdiff1d(np.asarray(numbers, np.int64), _array(self.asked))
        labelled = [np.intersect1d(database, _array(labels.positives)) for labels in self.objects]
        several = _in_several(labelled)
        queries: list[int] = []
        positives: list[NDArray[np.int64]] = []
        ignored: list[NDArray[np.int64]] = []
        objects: list[int] = []
        for number, (labels, photos) in enumerate(zip(self.objects, labelled, strict=True)):
            if len(photos) < 2:
                continue
            junk = np.intersect1d(database, _array(labels.junk - labels.positives))
            issued = np.setdiff1d(photos, several)
            if len(issued) > most:
                issued = np.sort(rng.choice(issued, most, replace=False))
            for photo in issued.tolist():
                queries.append(photo)
                positives.append(photos[photos != photo])
                ignored.append(np.union1d(junk, photo))
                objects.append(number)
        return Relevance(
            np.array(queries, np.int64),
            database,
            tuple(positives),
            tuple(ignored),
            np.array(objects, np.int32),
            tuple(labels.name for labels in self.objects),
        )


def split(
    labels: Labels, numbers: NDArray[np.int64], rng: np.random.Generator, *, share: float = 0.8
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split labelled image numbers (N,) into training and test (section V), ascending.

    The share for training is exact to less than one photo for the positives and junk of every object, for the
    background, and in total. The query photos of a ground truth are always in the test part.
    """
    everything = np.unique(np.asarray(numbers, np.int64))
    groups = [labels_of.positives for labels_of in labels.objects]
    groups.append(frozenset[int]().union(*(labels_of.junk for labels_of in labels.objects)))
    left = np.setdiff1d(everything, _array(labels.asked))
    dealt: list[NDArray[np.int64]] = []
    for group in groups:
        members = np.intersect1d(left, _array(group))
        left = np.setdiff1d(left, members)  # a photo of several groups is assigned with the first
        dealt.append(rng.permutation(members))
    order = np.concatenate([*dealt, rng.permutation(left)])
    # Of any m consecutive photos in this order, the training part gets share · m, rounded up or down.
    count = np.floor(share * np.arange(len(order) + 1) + rng.random())
    training = np.sort(order[np.diff(count) > 0])
    return training, np.setdiff1d(everything, training)


def hold_out(
    relevance: Relevance, rng: np.random.Generator, *, each: int = 4, thirds: bool = True
) -> tuple[Relevance, Relevance]:
    """Hold out at most `each` photos an object from the training database, to choose the best similarity (section
    IV.D); the last positive of a query is never held out. `thirds`: at most a third of an object's photos; otherwise
    `each` photos of objects with more than that, and none of the others (section V). Both results search the training
    database; the held-out photos are the queries of the second, and not part of the first.
    """
    asking: dict[int, list[int]] = {}  # by photo number: the queries with it as a positive
    for query, positives in enumerate(relevance.positives):
        for photo in positives.tolist():
            asking.setdefault(photo, []).append(query)
    findable = [len(positives) for positives in relevance.positives]
    held: list[int] = []
    for number in range(len(relevance.names)):
        own = np.flatnonzero(relevance.objects == number)
        photos = set(relevance.queries[own].tolist()).union(*(relevance.positives[query].tolist() for query in own))
        room = min(each, len(photos) // 3) if thirds else each * (len(photos) > each)
        for query in rng.permutation(own).tolist():
            if room == 0:
                break
            others = asking.get(int(relevance.queries[query]), [])
            if findable[query] == 0 or any(findable[other] < 2 for other in others):
                continue
            for other in others:
                findable[other] -= 1
            held.append(query)
            room -= 1
    out = np.zeros(len(relevance.queries), bool)
    out[held] = True
    database = np.setdiff1d(relevance.database, relevance.queries[out])
    return _part(relevance, np.flatnonzero(~out), database), _part(relevance, np.flatnonzero(out), database)


def _part(relevance: Relevance, chosen: NDArray[np.int64], database: NDArray[np.int64]) -> Relevance:
    """Keep the `chosen` queries (indices), and search a smaller database."""
    return Relevance(
        relevance.queries[chosen],
        database,
        tuple(np.intersect1d(relevance.positives[query], database) for query in chosen),
        tuple(np.intersect1d(relevance.ignored[query], database) for query in chosen),
        relevance.objects[chosen],
        relevance.names,
    )


def _array(numbers: frozenset[int]) -> NDArray[np.int64]:
    return np.array(sorted(numbers), np.int64)


def _in_several(groups: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Numbers in more than one group of distinct numbers."""
    numbers, counts = np.unique(np.concatenate([np.zeros(0, np.int64), *groups]), return_counts=True)
    return numbers[counts > 1]
