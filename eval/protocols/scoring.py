"""Scores of rankings by the protocols of a ground truth."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from eval.protocols.truth import BenchmarkQuery, QueryLabels, Truth
from learning.measures.precision import average_precision, average_precision_at, mean_average_precision, precision_at


@dataclass(frozen=True)
class QueryScore:
    """Score of one query."""

    name: str
    ap: float
    seconds: float
    ranking: list[str] = field(default_factory=list)  # the names of all photos, best first
    precision: dict[int, float] = field(default_factory=dict)  # precision at k, by k


def score_ranking(
    query: BenchmarkQuery, protocol: str, ranking: Sequence[str], seconds: float, truth: Truth
) -> QueryScore:
    """Score a ranking by a protocol in which the query has a positive."""
    labels: QueryLabels = query.labels[protocol]
    names = list(ranking)
    ap = precision_of(names, labels.positives, labels.junk, truth.depth)
    precision = {k: precision_at(names, labels.positives, k, labels.junk) for k in truth.cutoffs}
    return QueryScore(query.name, ap, seconds, names, precision)


def precision_of(ranking: Sequence[str], positives: Set[str], junk: Set[str], depth: int | None) -> float:
    """Average precision as Oxford5K reports it, or of the first photos alone: see `Truth.depth`."""
    if depth is None:
        return average_precision(ranking, positives, junk)
    return average_precision_at(ranking, positives, depth, junk)


def mean_precision(scores: Sequence[QueryScore], k: int) -> float:
    """Mean over queries of their precision at k."""
    return mean_average_precision([score.precision[k] for score in scores])
