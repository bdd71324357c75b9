"""Scores of rankings under the protocols of a ground truth."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.protocols.scoring import precision_of
from eval.rankings.files import Rankings
from eval.rankings.ground_truth import GroundTruth, JudgedQuery
from eval.rankings.names import check_known, settle_photos, settle_queries
from index.errors import CairnError
from index.text import shown
from learning.measures.precision import mean_average_precision, precision_at


@dataclass(frozen=True)
class ScoredQuery:
    """Score of one ranking under one protocol."""

    query: JudgedQuery  # its query
    ap: float  # average precision, 0 to 1; 0 if there is no ranking
    photos: Sequence[str] = field(repr=False)  # the ranking, junk included
    is_ranked: bool = True  # whether there is a ranking

    @cached_property
    def hits(self) -> NDArray[np.bool_]:
        """Whether each ranked non-junk photo is a positive, shape (M,)."""
        positives, junk = self.query.positives, self.query.junk
        return np.array([photo in positives for photo in self.photos if photo not in junk], bool)

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Ranks of the positives found, ascending from 1, without counting junk."""
        ranked = [photo for photo in self.photos if photo not in self.query.junk]
        return {photo: rank for rank, photo in enumerate(ranked, start=1) if photo in self.query.positives}

    def precision_at(self, k: int) -> float:
        """Precision at k; see `learning.measures.precision.precision_at`."""
        return precision_at(self.photos, self.query.positives, k, self.query.junk)

    @property
    def missed(self) -> list[str]:
        """Positives missing in the ranking, sorted."""
        return sorted(self.query.positives - self.ranks.keys())


@dataclass(frozen=True)
class RankingReport:
    """Scores of rankings under each protocol."""

    protocols: dict[str, list[ScoredQuery]]  # queries with positives, in the order of the ground truth
    unranked: list[str]  # queries without a ranking, which score 0
    source: str  # the file of the rankings; empty if made here
    notes: list[str] = field(default_factory=list)  # notes for readers of the figures, a sentence each
    cutoffs: tuple[int, ...] = ()  # the k of the mean precisions at k that are reported

    def mean(self, protocol: str) -> float:
        """Mean average precision over the queries with positives."""
        return mean_average_precision([score.ap for score in self.protocols[protocol]])

    def mean_precision(self, protocol: str, k: int) -> float:
        """Mean precision at k over the same queries; see `learning.measures.precision.precision_at`."""
        return mean_average_precision([score.precision_at(k) for score in self.protocols[protocol]])

    def as_json(self) -> dict[str, Any]:
        """Return the object that `cairn evaluate ranking --json` prints."""
        scored: dict[str, dict[str, Any]] = {
            name: {
                "mAP": round(self.mean(name), 6),
                **{f"mP@{k}": round(self.mean_precision(name, k), 6) for k in self.cutoffs},
                "queries": [self._scored(score) for score in scores],
            }
            for name, scores in self.protocols.items()
        }
        result = next(iter(scored.values())) if len(scored) == 1 else {"protocols": scored}
        return {**result, "ranking": self.source, "unranked": self.unranked, "notes": self.notes}

    def _scored(self, score: ScoredQuery) -> dict[str, Any]:
        precision = {f"P@{k}": round(score.precision_at(k), 6) for k in self.cutoffs}
        return {"name": score.query.name, "ap": round(score.ap, 6), **precision}


def score_rankings(rankings: Rankings, truth: GroundTruth, photos: Iterable[str] | None = None) -> RankingReport:
    """Score rankings of any program as the published programs do: by the trapezoid of ``compute_ap``, junk takes no
    rank, or the first photos alone (`GroundTruth.depth`). A query without a ranking scores 0, one without positives
    leaves the mean. `photos`: names of the whole database; other names are refused.

    `rankings`: photos and queries by any of their names: with or without folder and ending.
    """
    named = truth.named
    queries_of_truth = list({query.name: query for queries in truth.protocols.values() for query in queries}.values())
    if strange := [name for name in rankings.protocols if name not in truth.protocols]:
        known = ", ".join(filter(None, truth.protocols)) or "one without a name"
        raise CairnError(
            f"{rankings.source} has rankings of the protocol {shown(strange[0])}, but the ground truth has {known}."
        )

    looked_up: dict[str, str] = {}

    def settle(photos: Mapping[str, list[str]]) -> dict[str, list[str]]:
        of_query = settle_queries(photos, queries_of_truth, rankings.source)
        return {query: settle_photos(ranked, named, query, rankings, looked_up) for query, ranked in of_query.items()}

    for_all = settle(rankings.photos)
    settled = {name: {**for_all, **settle(rankings.protocols.get(name, {}))} for name in truth.protocols}
    ranked = {photo for of_query in settled.values() for of_one in of_query.values() for photo in of_one}
    check_known(ranked, named, rankings.source, photos)
    missing = {one.name for name, of in truth.protocols.items() for one in of if one.name not in settled[name]}
    unranked = [one.name for one in queries_of_truth if one.name in missing]
    notes = list(rankings.notes)
    if unranked:
        notes.append(
            f"{len(unranked)} of {len(queries_of_truth)} queries, such as {shown(unranked[0])}, "
            "have no ranking: each scores 0."
        )
    if truth.database is not None and (beside := ranked - named - rankings.distractors):
        notes.append(
            f"Of the ranked photos {len(beside)}, such as {shown(min(beside))}, are not in the database of the ground "
            "truth: they count as wrong, as distractors do."
        )
    return RankingReport(score_named(settled, truth), unranked, rankings.source, notes, truth.cutoffs)


def score_named(
    rankings: Mapping[str, Mapping[str, Sequence[str]]], truth: GroundTruth
) -> dict[str, list[ScoredQuery]]:
    """Score rankings, by protocol and query, with the names of the ground truth; see `score_rankings`."""
    scored = {
        name: [_score(query, rankings[name].get(query.name), truth.depth) for query in queries if query.positives]
        for name, queries in truth.protocols.items()
    }
    if empty := [name for name, scores in scored.items() if not scores]:
        raise CairnError(f"No query of the ground truth has a positive{empty[0] and f', {empty[0]}'}.")
    return scored


def _score(query: JudgedQuery, photos: Sequence[str] | None, depth: int | None) -> ScoredQuery:
    if photos is None:
        return ScoredQuery(query, 0.0, [], is_ranked=False)
    return ScoredQuery(query, precision_of(photos, query.positives, query.junk, depth), photos)
