"""Labels: which photos show which object, and what is learnt from them (Yan13, sections IV.A, IV.B, IV.D and V)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ISSUED = 80
"""Photos of an object that are issued as queries, at most (section IV.B)."""


@dataclass(frozen=True)
class Relevance:
    """Which photos of a collection are to be found by which.

    A photo of the database that is neither to be found by a query nor ignored counts as irrelevant to it. Queries come
    by ascending object, then number.
    """

    queries: NDArray[np.int64]  # (Q,) int64, image number of each photo that is asked with
    database: NDArray[np.int64]  # (N,) int64 ascending, image numbers that are searched
    # Of each query: ascending image numbers in the database to be found, not itself.
    positives: tuple[NDArray[np.int64], ...]
    # Of each query: image numbers in the database that count neither way, itself too.
    ignored: tuple[NDArray[np.int64], ...]
    objects: NDArray[np.int32]  # (Q,) int32, number of the object that each query shows
    names: tuple[str, ...]  # of the objects

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights (Q,) float64 of the queries' triplets: max N(t) / N(i), N(i) queries of i's object (section IV.B)."""
        issued = np.bincount(self.objects, minlength=len(self.names))
        return np.asarray(issued.max(initial=0) / issued[self.objects])

    def without(self, numbers: NDArray[np.integer]) -> "Relevance":
        """Leave photos out altogether: nothing asks with them, and they are not searched."""
        kept = np.flatnonzero(~np.isin(self.queries, numbers))
        return _part(self, kept, np.setdiff1d(self.database, numbers))


@dataclass(frozen=True)
class ObjectLabels:
    """Photos that are labelled with one object."""

    name: str
    positives: frozenset[int]  # image numbers of the photos that show it
    junk: frozenset[int] = frozenset()  # of photos that count neither way: they show too little of it, say


@dataclass(frozen=True)
class Labels:
    """What is known of a collection's photos; those that are not mentioned are background and show no object."""

    # a photo may show several of them; it is to be found by the queries of each, and is not issued as a query then, as
    # nothing says which of them it asks for
    objects: tuple[ObjectLabels, ...]
    # image numbers of the photos that a ground truth asks with. They have no part in learning, neither as queries nor
    # as photos that are searched, so that the same ground truth can measure what was learnt.
    asked: frozenset[int] = frozenset()

    def relevance(self, numbers: NDArray[np.integer], rng: np.random.Generator, *, most: int = ISSUED) -> Relevance:
        """Issue the labelled photos of a database (image numbers) as queries (section IV.B), at most `most` an object;
        those of `asked` are left out. Positives are the other photos of the object; its junk and the query itself are
        ignored. Objects with fewer than two photos there have no queries; they keep their number and name.
        """
        database = np.setdiff1d(np.asarray(numbers, np.int64), _array(self.asked))
        shown = [np.intersect1d(database, _array(labels.positives)) for labels in self.objects]
        several = _repeated(shown)
        queries: list[int] = []
        positives: list[NDArray[np.int64]] = []
        ignored: list[NDArray[np.int64]] = []
        objects: list[int] = []
        for number, (labels, photos) in enumerate(zip(self.objects, shown, strict=True)):
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
    """Divide image numbers (N,) into those to learn from and those to test with (section V), ascending. The share
    holds, but for less than one photo each, for the positives and junk of every object, for the background, and for all
    together.

    `labels`: what is known of them. The photos asked with are always in the test part. `share`: part of the other
    photos that is learnt from, from 0 to 1.
    """
    everything = np.unique(np.asarray(numbers, np.int64))
    groups = [labels_of.positives for labels_of in labels.objects]
    groups.append(frozenset[int]().union(*(labels_of.junk for labels_of in labels.objects)))
    left = np.setdiff1d(everything, _array(labels.asked))
    dealt: list[NDArray[np.int64]] = []
    for group in groups:
        members = np.intersect1d(left, _array(group))
        left = np.setdiff1d(left, members)  # a photo of several groups is dealt with the first
        dealt.append(rng.permutation(members))
    order = np.concatenate([*dealt, rng.permutation(left)])
    # Of any m neighbours in this order, the training part gets share · m, rounded up or down.
    count = np.floor(share * np.arange(len(order) + 1) + rng.random())
    training = np.sort(order[np.diff(count) > 0])
    return training, np.setdiff1d(everything, training)


def hold_out(
    relevance: Relevance, rng: np.random.Generator, *, each: int = 4, thirds: bool = True
) -> tuple[Relevance, Relevance]:
    """Take at most `each` photos an object out of the training database, to choose the best similarity by (section
    IV.D): no last one that a query could find. `thirds`: at most a third of an object's photos; else an object of more
    than `each` photos gives that many, and the others none (section V). Both results search the training database;
    held-out photos are the queries of the second, and no part of the first.
    """
    asking: dict[int, list[int]] = {}  # by the number of a photo: the queries that are to find it
    for query, positives in enumerate(relevance.positives):
        for photo in positives.tolist():
            asking.setdefault(photo, []).append(query)
    findable = [len(positives) for positives in relevance.positives]
    held: list[int] = []
    for number in range(len(relevance.names)):
        own = np.flatnonzero(relevance.objects == number)
        shown = set(relevance.queries[own].tolist()).union(*(relevance.positives[query].tolist() for query in own))
        room = min(each, len(shown) // 3) if thirds else each * (len(shown) > each)
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
    """Keep some queries, given by their places, and search a smaller database."""
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


def _repeated(groups: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Numbers that are in more than one group of distinct ones."""
    numbers, counts = np.unique(np.concatenate([np.zeros(0, np.int64), *groups]), return_counts=True)
    return numbers[counts > 1]
