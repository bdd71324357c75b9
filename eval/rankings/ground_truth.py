"""Ground truth of any format for scoring rankings."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.protocols.truth import PLAIN, Truth, read_by_extension, read_truth
from learning.labels.ground_truth import read_ground_truth


@dataclass(frozen=True)
class JudgedQuery:
    """A query of a ground truth under one protocol; photos are named without folder and extension."""

    name: str
    stem: str  # its photo
    box: tuple[float, float, float, float] | None  # x0, y0, x1, y1 in pixels of the photo; None: all of it
    positives: Set[Any]  # the positives
    junk: Set[Any]  # photos that take no rank


@dataclass(frozen=True)
class GroundTruth:
    """Queries by protocol, and further data of a benchmark."""

    protocols: Mapping[str, Sequence[JudgedQuery]]  # by name: one of the name `eval.protocols.truth.PLAIN`, or several
    cutoffs: tuple[int, ...] = ()  # the k of reported mean precisions at k
    database: frozenset[str] | None = None  # photos of the database, if the ground truth lists them
    depth: int | None = None  # number of photos of a ranking that count, if not all

    @property
    def named(self) -> frozenset[Any]:
        """All photos named: queries, positives, junk and database."""
        queries = (query for of_one in self.protocols.values() for query in of_one)
        names = (name for query in queries for name in (query.stem, *query.positives, *query.junk))
        return frozenset(names) | (self.database or frozenset())


def read_truth_of_rankings(path: Path) -> GroundTruth:
    """Read a ground truth: a folder in the layout of Oxford5K, or a file, as for `read_truth`."""
    path = Path(path)
    truth = read_by_extension(path)
    if truth is not None:
        return of_truth(truth)
    if path.is_file():
        return of_truth(read_truth(path))
    # Queries without positives, too, so that their names are known.
    queries = read_ground_truth(path)
    return GroundTruth({PLAIN: [JudgedQuery(one.name, one.stem, one.box, one.positives, one.junk) for one in queries]})


def of_truth(truth: Truth) -> GroundTruth:
    """Convert a ground truth for scoring rankings; each query counts in protocols with a positive."""
    protocols = {
        protocol: [
            JudgedQuery(query.name, query.stem, query.box, labels.positives, labels.junk)
            for query in truth.queries
            if (labels := query.labels.get(protocol)) is not None
        ]
        for protocol in truth.protocols
    }
    return GroundTruth(protocols, truth.cutoffs, truth.database, truth.depth)
