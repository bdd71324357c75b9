"""The ground truth that a ranking is scored by, whichever form it has."""

from dataclasses import dataclass
from pathlib import Path

from eval.protocols.truth import PLAIN, Truth, read_by_extension, read_truth
from eval.rankings.judged import Protocols
from learning.labels.ground_truth import read_ground_truth


@dataclass(frozen=True)
class GroundTruth:
    """Queries by protocol, and further data of a benchmark."""

    protocols: Protocols  # one of the name `eval.protocols.truth.PLAIN`, or several
    cutoffs: tuple[int, ...] = ()  # the k of the mean precisions at k that are reported
    database: frozenset[str] | None = None  # photos that are searched, where the ground truth says which
    depth: int | None = None  # photos of a ranking that count, where not all do


@dataclass(frozen=True)
class _ProtocolQuery:
    """A query under one protocol: `eval.rankings.judged.Judged`."""

    name: str
    stem: str
    box: tuple[float, float, float, float] | None
    positives: frozenset[str]
    junk: frozenset[str]


def read_truth_of_rankings(path: Path) -> GroundTruth:
    """Read a ground truth: a folder in the layout of Oxford5K, or a file, as `read_truth` takes it."""
    path = Path(path)
    told = read_by_extension(path)
    if told is not None:
        return of_truth(told)
    if path.is_file():
        return of_truth(read_truth(path))
    return GroundTruth(
        {PLAIN: read_ground_truth(path)}
    )  # queries without positives, too, so that their names are known


def of_truth(truth: Truth) -> GroundTruth:
    """Return the same ground truth as rankings are scored by; each query counts where it has a positive."""
    protocols = {
        protocol: [
            _ProtocolQuery(
                query.name, query.stem, query.box, query.labels[protocol].positives, query.labels[protocol].junk
            )
            for query in truth.queries
            if protocol in query.labels
        ]
        for protocol in truth.protocols
    }
    return GroundTruth(protocols, truth.cutoffs, truth.database, truth.depth)
