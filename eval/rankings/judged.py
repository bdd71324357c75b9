"""What a ranking is scored by."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol


class Judged(Protocol):
    """A query of a ground truth under one protocol; photos go by their names without folder and ending.

    `learning.labels.ground_truth.GroundTruthQuery` is one.
    """

    @property
    def name(self) -> str:
        """Name of the query."""
        ...

    @property
    def stem(self) -> str:
        """The query's photo."""
        ...

    @property
    def box(self) -> tuple[float, float, float, float] | None:
        """x0, y0, x1, y1 in pixels of the query's photo; None: all of it."""
        ...

    @property
    def positives(self) -> AbstractSet[str]:
        """Photos to be found."""
        ...

    @property
    def junk(self) -> AbstractSet[str]:
        """Photos that take no rank."""
        ...


Protocols = Mapping[str, Sequence[Judged]]
"""Queries by the protocol's name: see `eval.rankings.ground_truth.GroundTruth`."""


def named_in(protocols: Protocols) -> frozenset[str]:
    """Return all photos that some protocols name: those of the queries, the positives and the junk."""
    queries: Iterable[Judged] = (query for of_one in protocols.values() for query in of_one)
    return frozenset(name for query in queries for name in (query.stem, *query.positives, *query.junk))
