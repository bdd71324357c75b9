"""Scores of rankings under the protocols of a ground truth."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.rankings.files import Rankings
from eval.rankings.ground_truth import GroundTruth
from eval.rankings.judged import Judged, Protocols, named_in
from eval.rankings.names import check_known, settle_photos, settle_queries
from index.errors import CairnError
from index.text import shown
from learning.measures.precision import average_precision, mean_average_precision, precision_at


@dataclass(frozen=True)
class ScoredQuery:
    """How one ranking was scored under one protocol.

    Attributes
    ----------
    query : Judged
        What it was scored by.
    ap : float
        Average precision, 0 to 1; 0 where there is no ranking.
    photos : sequence of str
        The ranking, junk included.
    is_ranked : bool
        Whether there is a ranking.
    """

    query: Judged
    ap: float
    photos: Sequence[str] = field(repr=False)
    is_ranked: bool = True

    @cached_property
    def hits(self) -> NDArray[np.bool_]:
        """Whether each ranked photo that is not junk is a positive, shape (M,)."""
        positives, junk = self.query.positives, self.query.junk
        return np.array([photo in positives for photo in self.photos if photo not in junk], bool)

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Ranks of the positives that were found, from 1, junk taking none; the first come first."""
        counted = [photo for photo in self.photos if photo not in self.query.junk]
        return {photo: rank for rank, photo in enumerate(counted, start=1) if photo in self.query.positives}

    @property
    def missed(self) -> list[str]:
        """Positives that are not in the ranking, sorted."""
        return sorted(self.query.positives - self.ranks.keys())


@dataclass(frozen=True)
class RankingReport:
    """Scores of rankings under each protocol.

    Attributes
    ----------
    protocols : dict of str to list of ScoredQuery
        Queries with positives, in the order of the ground truth.
    unranked : list of str
        Queries without a ranking, which score 0.
    source : str
        Where the rankings are from.
    notes : list of str
        What a reader of the figures should know, a sentence each.
    cutoffs : tuple of int
        The k of the mean precisions at k that are reported.
    """

    protocols: dict[str, list[ScoredQuery]]
    unranked: list[str]
    source: str
    notes: list[str] = field(default_factory=list)
    cutoffs: tuple[int, ...] = ()

    def mean(self, protocol: str) -> float:
        """Mean average precision over the queries that have positives."""
        return mean_average_precision([score.ap for score in self.protocols[protocol]])

    def mean_precision(self, protocol: str, k: int) -> float:
        """Mean precision at k over the same queries; see `learning.measures.precision.precision_at`."""
        return mean_average_precision(
            precision_at(score.photos, score.query.positives, k, score.query.junk) for score in self.protocols[protocol]
        )

    def as_json(self) -> dict[str, Any]:
        """Give the object that `cairn evaluate ranking --json` prints."""
        scored: dict[str, dict[str, Any]] = {
            name: {
                "mAP": round(self.mean(name), 6),
                **{f"mP@{k}": round(self.mean_precision(name, k), 6) for k in self.cutoffs},
                "queries": [{"name": score.query.name, "ap": round(score.ap, 6)} for score in scores],
            }
            for name, scores in self.protocols.items()
        }
        result = next(iter(scored.values())) if len(scored) == 1 else {"protocols": scored}
        return {**result, "ranking": self.source, "unranked": self.unranked, "notes": self.notes}


def score_rankings(rankings: Rankings, truth: GroundTruth, photos: Iterable[str] | None = None) -> RankingReport:
    """Score rankings that were made anywhere, as the published programs do.

    Average precision is that of `learning.measures.precision.average_precision`: the trapezoid of ``compute_ap``, junk
    takes no rank. A query without a ranking scores 0; one without positives leaves the mean.

    Parameters
    ----------
    rankings : Rankings
        Photos and queries by any of their names: with or without folder and ending.
    truth : GroundTruth
        What they are scored by.
    photos : iterable of str, optional
        Names or paths of all photos that are searched: names that are none of them are refused.

    Raises
    ------
    CairnError
        A query is unknown or is ranked twice, a photo is ranked twice or known nowhere, or no query has positives.
    """
    protocols = truth.protocols
    named = named_in(protocols) | (truth.database or frozenset())
    all_queries = list({query.name: query for queries in protocols.values() for query in queries}.values())
    by_query = {
        query: settle_photos(ranked, named, query, rankings.source)
        for query, ranked in settle_queries(rankings, all_queries).items()
    }
    check_known(by_query, named, rankings.source, photos)
    scored = score_named(by_query, protocols)
    ranked = {photo for of_query in by_query.values() for photo in of_query}
    unranked = [query.name for query in all_queries if query.name not in by_query]
    notes = list(rankings.notes)
    if unranked:
        notes.append(
            f"{len(unranked)} of {len(all_queries)} queries, such as {shown(unranked[0])}, have no ranking: each "
            "scores 0."
        )
    if truth.database is not None and (beside := ranked - named):
        notes.append(
            f"Of the ranked photos {len(beside)}, such as {shown(min(beside))}, are not in the database of the ground "
            "truth: they count as wrong, as distractors do."
        )
    return RankingReport(scored, unranked, rankings.source, notes, truth.cutoffs)


def score_named(rankings: Mapping[str, Sequence[str]], protocols: Protocols) -> dict[str, list[ScoredQuery]]:
    """Score rankings whose queries and photos go by the names of the ground truth; see `score_rankings`."""
    scored = {
        name: [_score(query, rankings.get(query.name)) for query in queries if query.positives]
        for name, queries in protocols.items()
    }
    if empty := [name for name, scores in scored.items() if not scores]:
        raise CairnError(f"No query of the ground truth has a positive under the protocol {empty[0]}.")
    return scored


def _score(query: Judged, photos: Sequence[str] | None) -> ScoredQuery:
    if photos is None:
        return ScoredQuery(query, 0.0, [], is_ranked=False)
    return ScoredQuery(query, average_precision(photos, query.positives, query.junk), photos)
