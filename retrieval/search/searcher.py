"""Search: ranking by an engine, verification of the best photos, rotated queries, query expansion."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread
from retrieval.catalogue.photos import names_of
from retrieval.collection.collection import Collection
from retrieval.matching.verification import NOTHING, Verification
from retrieval.matching.verifiers import OWN
from retrieval.search.engines.contract import Engine, load_engine, settle
from retrieval.search.engines.other_verifier import OtherVerifier
from retrieval.search.engines.registry import VerifiedPhotos, find_engine
from retrieval.search.expansion import average_words, back_project, discriminative_words, near_places, strongest
from retrieval.search.global_ranking import LikenessEngine, shortlisted
from retrieval.search.options import ALONE, NO_GLOBAL, SHORTLIST, SearchOptions
from retrieval.search.photos import SearchedPhotos
from retrieval.search.probability import calibration_of
from retrieval.search.ranking import Hit, Names, Ranking, Tried, by_score
from retrieval.search.scoreboard import Candidates, Rule, Scoreboard, turned_weights, weigh, weight_of_one
from retrieval.search.views import LazyViews, PlacedViews, View, joined, part_of


@dataclass(frozen=True)
class RankedAnswer:
    """All photos of the collection, or the requested ones, the best first."""

    hits: Ranking
    seconds: dict[str, float]  # extract (of views at other turns than upright), search, verify
    turned: bool  # whether views at other turns than upright were searched
    sure: bool  # whether the photos found upright make it unlikely that other turns change the answer
    ranked: "Ranked"  # data that the ranking was made from
    missing: tuple[int, ...] = ()  # shards of the collection that were not searched, as no worker had them


class SearchEngine(Protocol):
    """The interface of an engine that a searcher uses; `Engine` implements it for local photos."""

    @property
    def index(self) -> SearchedPhotos:
        """The photos."""

    @property
    def needs_descriptors(self) -> bool:
        """Whether views must have descriptors."""

    def scoreboard(self, views: int, among: NDArray[np.integer] | None = None, /) -> Scoreboard:
        """Return the scoreboard of a search with several views, among all photos or the given numbers."""

    def verify(self, view: View, number: int, /) -> Verification:
        """Verify one photo."""


class Searcher:
    """Answers queries from one collection, with the engine that the options name, or with `engine`, whose photos may
    lie on other machines.
    """

    def __init__(self, collection: Collection, options: SearchOptions, engine: SearchEngine | None = None) -> None:
        self.collection = collection
        self.options = settle(options, collection)
        if engine is not None and self.options.verifier != OWN:
            raise CairnError("Other verifiers only work on one machine: leave out {--cluster} or {--verifier}.")
        if engine is not None and self.options.global_descriptors != NO_GLOBAL:
            raise CairnError(
                "Global descriptors only work on one machine: leave out {--cluster} or {--global-descriptors}."
            )
        if engine is None:
            engine = own = load_engine(self.options.engine)(collection, self.options)
            if self.options.verifier != OWN:
                engine = OtherVerifier(own, collection)
        self.engine = engine

    @property
    def index(self) -> SearchedPhotos:
        """The photos of the collection, as the engine scores them."""
        return self.engine.index

    def describe_similarity(self) -> dict[str, Any] | None:
        """Describe the learnt similarity for `--json`; None without one."""
        if self.index.similarity is None:
            return None
        return {"file": str(self.options.similarity), **self.index.similarity.describe()}

    def search(
        self,
        views: Sequence[View],
        among: NDArray[np.integer] | None = None,
        *,
        region: NDArray[np.float64] | None = None,
        top: int | None = None,
        global_row: NDArray[np.float32] | None = None,
    ) -> RankedAnswer:
        """Rank the photos of the collection for a query. Raises ValueError if it is to be expanded, and `region` is not
        given, or if global descriptors count, and `global_row` is not given, the query's own (D,).

        `among` (n,): only these photos are ranked, verified and used for expansion; their scores are those among all
        photos, and unknown numbers are ignored. `region`: x0, y0, x1, y1 of the query in units of the longer side; only
        expansion needs it. `top`: number of places wanted; photos on other machines are ranked no further. None: as
        many as available. `views`: features of the query, at one turn or several; the first is upright. If the best
        photos are verified, the other views are used only if they can still change the answer, or if `every_turn` is
        set.
        """
        if self.options.expand != "none" and region is None:
            raise ValueError("expansion needs the region of the query")
        engine, how = self.engine, self.options.global_descriptors
        if how != NO_GLOBAL:
            kept, numbers = self.collection.global_rows, self.index.image_numbers
            if kept is None or global_row is None or len(global_row) != kept.dim:
                raise ValueError("global descriptors need that of the query")
            likeness = kept.likeness(global_row, numbers)
            if how == SHORTLIST:
                among = shortlisted(likeness, numbers, among, self.options.verification.depth)
            else:
                assert isinstance(engine, Engine)  # others work elsewhere
                engine = LikenessEngine(engine, likeness, alone=how == ALONE)
        with one_thread():
            return _Search(self, engine, views, among, top).run(region)

    def aligned(self, answers: Sequence[RankedAnswer], *, match_all: bool, top: int) -> list[Ranking]:
        """Rank the same photos in several answers, so that the rankings can be compared.
        `match_all`: whether a photo counts by its worst answer: see `combine`.
        """
        if len(answers) == 1:
            return [answers[0].hits]
        also = tuple({number for one in answers for number in one.ranked.found})
        boards, weights = [one.ranked.board for one in answers], [one.ranked.weights for one in answers]
        grounds = tuple(board.ground(one) for board, one in zip(boards, weights, strict=True))
        several = boards[0].aligned(boards[1:], weights, Rule(match_all, grounds, top + len(also), also))
        return [one.ranked.rank(some) for one, some in zip(answers, several, strict=True)]

    def verified_at(self, views: Sequence[View], ranking: Ranking, hit: Hit) -> Hit:
        """Verify a photo of a ranking with the view that a hit names; return the hit with the result."""
        return ranking.weighed(replace(hit, verification=self.engine.verify(views[hit.view], hit.number)))


@dataclass(frozen=True)
class Ranked:
    """Data that a ranking is made from."""

    board: Scoreboard
    weights: NDArray[np.float32]  # (V,), of the views
    found: dict[int, Tried]  # what decides before scores do, by the numbers of photos
    rank: Callable[[Candidates], Ranking]


class _Search:
    """State of one search: scores and verifications so far."""

    def __init__(
        self,
        searcher: Searcher,
        engine: SearchEngine,
        views: Sequence[View],
        among: NDArray[np.integer] | None,
        top: int | None,
    ) -> None:
        self._searcher = searcher
        self._options = searcher.options
        catalogue = searcher.collection.catalogue
        self._names: Names = lambda numbers: catalogue.read(names_of, numbers)
        self._views = views
        self._top = top
        self._board = engine.scoreboard(len(views), among)
        self._own = 0  # the view at the query's own turn, as far as photos tell
        self._weights = turned_weights(len(views), self._options.turned)
        # Scores by signatures are reliable: once several photos in a row fail verification, so do all after them.
        self._ranks_well = find_engine(searcher.options.engine).signed
        self._turned = False  # whether views at other turns were searched
        self._known: dict[tuple[int, int], Verification] = {}  # by number and view
        self._seconds = {"extract": 0.0, "search": 0.0, "verify": 0.0}
        self._since = time.perf_counter()

    def run(self, region: NDArray[np.float64] | None) -> RankedAnswer:
        """Score, verify, search at other turns if they may help, and expand."""
        verified = find_engine(self._options.engine).verified
        decides = verified is not VerifiedPhotos.NONE
        in_stages = verified is VerifiedPhotos.BEST
        self._look([0] if in_stages else range(len(self._views)))
        results: dict[int, Tried] = {}
        sure = False
        if decides or self._options.expand != "none":
            results = self._verify_all() if verified is VerifiedPhotos.ALL else self._verify_best({})
            sure = in_stages and self._is_sure(results)
            others = range(1, len(self._views))
            if in_stages and others and (self._options.every_turn or not sure):
                is_fuller = isinstance(self._views, PlacedViews) and self._views.complete(0)
                self._look(range(len(self._views)) if is_fuller else others)
                upright, results = results, self._verify_best({})
                # The best of all views may leave no room among the candidates for what upright has found.
                results = _better(results, upright)
                results = self._look_fully(results)
            if self._options.expand != "none" and region is not None:
                results = self._expand(region, results, decides)
        ranked = self._ranked(results if decides else {})
        hits = ranked.rank(self._candidates(ranked))
        return RankedAnswer(hits, self._seconds, self._turned, sure, ranked, self._board.missing)

    def _look_fully(self, results: dict[int, Tried]) -> dict[int, Tried]:
        """Search as fully as upright at the turn that a photo is found at beyond doubt, and verify again; return the
        better results.
        """
        surest = max(results.values(), key=lambda one: one.verification.inliers, default=None)
        if surest is None or not surest.view or surest.verification.inliers < self._options.sure_turn:
            return results
        if not isinstance(self._views, PlacedViews):
            return results
        self._own = own = surest.view
        self._views.complete(own)
        self._weights = turned_weights(len(self._views), self._options.turned, own)
        self._look([own])
        self._known = {pair: one for pair, one in self._known.items() if pair[1] != own}
        fuller = self._verify_best({})
        again = [number for number, one in results.items() if one.view == own and number not in fuller]
        self._try({number: [own] for number in again}, fuller)
        return _better(fuller, {number: one for number, one in results.items() if one.view != own})

    def _took(self, step: str) -> None:
        """Add the time since the last call to a step."""
        now = time.perf_counter()
        self._seconds[step] += now - self._since
        self._since = now

    def _look(self, which: Sequence[int]) -> None:
        """Score with some views that were not scored before."""
        if isinstance(self._views, LazyViews):
            self._views.make(which)
        new = [self._views[one] for one in which]
        self._took("extract")
        if new:
            self._board.look(list(which), new)
        self._turned |= any(which)
        self._took("search")

    def _is_sure(self, results: dict[int, Tried]) -> bool:
        """Whether the other turns can be skipped, as they could hardly change the answer.

        They can if another photo shows the same object from so near that many of the features agree, or a large part
        of them, and no photo hints at a rotated camera. Copies of the query are no evidence: they are found at no other
        turn. Photos with few inliers relative to the best are no hint of rotation: an object seen at a slant looks
        rolled. A query of few features is never sure: a large part of them is little evidence, and the other turns are
        cheap.
        """
        if not self._searcher.collection.options.features.upright:
            return True  # patches are turned themselves
        options = self._options
        features = len(self._views[0].words)
        if features < options.few_features:
            return False
        sure = [number for number, one in results.items() if one.verification.inliers >= options.sure_turn]
        counts = self._searcher.index.images.feature_counts(sure).tolist()
        others = [  # inliers and roll of photos that are no copies
            (results[number].verification.inliers, _roll(transform))
            for number, there in zip(sure, counts, strict=True)
            if (transform := results[number].verification.transform) is not None
            and results[number].verification.inliers < options.copy * min(features, there)
        ]
        most = max((inliers for inliers, _ in others), default=0)
        if most < min(options.sure_share * features, options.sure_inliers):
            return False
        return all(abs(roll) <= options.sure_roll for inliers, roll in others if inliers >= options.sure_hint * most)

    def _ranked(self, results: dict[int, Tried]) -> Ranked:
        """Return the data for the ranking: by best score over the views, behind the verified photos.

        The best of several scores of an unrelated photo is higher than a single score. So scores of turned views are
        multiplied by a weight, which protects the many upright photos. The background score is that of all photos, even
        if the search is restricted to some.
        """
        calibration = calibration_of(self._options.engine)

        def rank(some: Candidates) -> Ranking:
            weighted = weigh(some.table, self._weights)
            views = weighted.argmax(axis=0)
            best = np.take_along_axis(weighted, views[None], axis=0)[0]
            there = results
            if self._board.missing:  # photos that were removed meanwhile are left out
                numbers = set(some.numbers.tolist())
                there = {number: one for number, one in results.items() if number in numbers}
            ground = self._board.ground(self._weights)
            return Ranking(some.numbers, best, views, there, self._names, ground, calibration)

        return Ranked(self._board, self._weights, results, rank)

    def _candidates(self, ranked: Ranked) -> Candidates:
        """Return the photos to rank: those of the best scores, and the verified ones."""
        top = self._top + len(ranked.found) if self._top is not None else None
        return self._board.best(self._weights, top, ranked.found)

    def _verify(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Verify pairs of a photo's number and a view that were not verified before."""
        by_view: dict[int, list[int]] = {}
        for number, view in dict.fromkeys(wanted):
            if (number, view) not in self._known:
                by_view.setdefault(view, []).append(number)
        requests = [(self._views[view], numbers) for view, numbers in by_view.items()]
        for (view, numbers), verifications in zip(by_view.items(), self._board.verify(requests), strict=True):
            self._known.update(((number, view), one) for number, one in zip(numbers, verifications, strict=True))

    def _verify_all(self) -> dict[int, Tried]:
        """Verify every photo with the view of its best score; return the results by number."""
        results = self._board.verify_all(self._weights)
        self._took("verify")
        return results

    def _verify_best(self, known: dict[int, Tried]) -> dict[int, Tried]:
        """Verify the photos of the best scores; return the results and the known ones, by number.

        If scores are reliable, photos are verified in batches until none of the last `patience` passes. Each photo is
        tried with the view of its best score; both upright and a turn are tried if their scores are close. If one photo
        is found beyond doubt, its view is tried with all.
        """
        weights = turned_weights(len(self._views), self._options.turned_candidate, self._own)
        options = self._options.verification
        depth = options.depth
        candidates = self._board.best(weights, depth)
        numbers, weighted = candidates.numbers, weigh(candidates.table, weights)
        chosen = by_score(numbers, weighted.max(axis=0), self._names, depth)
        tried: dict[int, list[int]] = {}
        results = dict(known)
        start, stop = 0, options.batch if self._ranks_well else depth
        while start < len(chosen):
            some = chosen[start:stop]
            views = self._views_to_try(Candidates(numbers[some], weighted[:, some]), known)
            self._try(views, results)
            tried |= views
            so_far = numbers[chosen[:stop]].tolist()
            passing = [
                place for place, one in enumerate(so_far) if one in results and results[one].verification.inliers
            ]
            wanted = max(passing, default=-1) + 1 + options.patience
            if wanted <= stop:
                break
            start, stop = stop, max(wanted, stop + options.batch // 4)
        # Photos are upright as a rule: the turn that one is found at beyond doubt is the query's own.
        surest = max(results.values(), key=lambda one: one.verification.inliers, default=None)
        if surest is not None and surest.verification.inliers >= self._options.sure_turn:
            self._try({number: [surest.view] for number, views in tried.items() if surest.view not in views}, results)
        self._took("verify")
        return results

    def _views_to_try(self, some: Candidates, known: dict[int, Tried]) -> dict[int, list[int]]:
        """Views to verify photos with, by number, for photos not known to pass; scores are weighted."""
        views: dict[int, list[int]] = {}
        best = np.argsort(-some.table, axis=0, kind="stable")[:2].T.tolist()
        for number, scores, order in zip(some.numbers.tolist(), some.table.T, best, strict=True):
            if number in known and known[number].verification.inliers:
                continue
            # Neighbouring turns find the same: only upright and a turn are worth two verifications.
            least = self._options.second_view * scores[order[0]]
            near = 0 in order and len(order) > 1 and 0 < scores[order[1]] >= least
            views[number] = order if near else order[:1]
        return views

    def _try(self, views: dict[int, list[int]], results: dict[int, Tried]) -> None:
        """Verify photos with some views each, and keep results that are better than the known ones."""
        self._verify([(number, view) for number, several in views.items() for view in several])
        for number, several in views.items():
            for view in several:
                one = Tried(view, self._known[number, view])
                if _is_more(one, results.get(number)):
                    results[number] = one

    def _expand(self, region: NDArray[np.float64], results: dict[int, Tried], decides: bool) -> dict[int, Tried]:
        """Score again with the features that the best verified photos add; return the results with those of expansion.

        Photos that the query alone does not find are verified by the added features too, if their new scores are among
        the best. Those that pass add their own features in the next round, and rank behind the found ones.
        """
        options = self._options.expansion
        sources = self._sources(results)
        if not sources:
            return results
        which = results[sources[0][0]].view  # only photos found at the same turn as the best are combined
        sources = [one for one in sources if results[one[0]].view == which]
        view = self._views[which]
        # Places where photos agree with the query; elsewhere they may show other objects.
        agreed = {number: view.frames.centres[one.matches[:, 0]] for number, one in sources}
        reach = options.reach * float(np.ptp(region.reshape(2, 2), axis=0).max())
        through: dict[int, Verification] = {}
        for done in range(options.rounds if decides else 1):
            if not sources:
                break
            added = [
                near_places(self._added(which, number, one, region), agreed[number], reach)
                for number, one in sources[: options.photos]
            ]
            if not done:
                self._score_again(which, added)
            if decides:
                known = [*through, *(number for number, one in results.items() if one.verification.inliers)]
                expanded = joined([view, *added])
                new = self._verify_through(expanded, which, known)
                through |= new
                agreed |= {number: expanded.frames.centres[one.matches[:, 0]] for number, one in new.items()}
                new = {number: one for number, one in new.items() if one.inliers >= options.min_inliers}
                sources = [*sources[options.photos :], *sorted(new.items(), key=lambda one: -one[1].inliers)]
        results = dict(results)
        # The query alone may find them too: their first scores were too low to be tried.
        self._try({number: [which] for number in through}, results)
        for number, one in through.items():
            tried = Tried(which, Verification(NOTHING.matches, None, one.log_odds, one.inliers))
            if _is_more(tried, results.get(number)):
                results[number] = tried
        self._took("verify")
        return results

    def _sources(self, results: dict[int, Tried]) -> list[tuple[int, Verification]]:
        """Return the photos that may expand the query, the best first: surely found, and no copies."""
        options = self._options.expansion
        ranked = self._ranked(results)
        ranking = ranked.rank(self._board.best(self._weights, 0, results))
        return [
            (hit.number, hit.verification)
            for hit in ranking[:]
            if options.min_inliers <= hit.verification.inliers < options.copy * len(self._views[hit.view].words)
        ]

    def _added(self, which: int, number: int, verification: Verification, region: NDArray[np.float64]) -> View:
        """Features that a photo adds to a view: see `back_project`."""
        index = self._searcher.index
        signatures = index.images.signatures(number) if self._views[which].signed is not None else None
        return back_project(index.images.features(number), verification, region, signatures)

    def _score_again(self, which: int, added: Sequence[View]) -> None:
        """Score with a view and the features added to it."""
        options, index, view = self._options.expansion, self._searcher.index, self._views[which]
        words = [one.words for one in added]
        if self._options.expand == "average":
            scored = average_words(view.words, words)
        else:
            lowest = self._board.lowest(which, min(options.negatives, len(index.image_numbers) // 2))
            scored = discriminative_words(view.words, words, index, lowest, options.cost)
        scored = strongest(scored, index, int(options.words * len(np.unique(view.words))))
        again = replace(view, terms=scored.words, weights=scored.weights)
        if find_engine(self._options.engine).signed:
            # Hamming expansion (Tolias & Jégou, 2014): added features of these words vote by their own signatures.
            some = [part_of(one, np.flatnonzero(np.isin(one.words, scored.words))) for one in added]
            again = joined([view, *some])
        self._board.look([which], [again])
        self._took("search")

    def _verify_through(self, view: View, which: int, known: Sequence[int]) -> dict[int, Verification]:
        """Verify the photos of the best scores with one view, except the known ones; return those that pass."""
        most = self._options.expansion.candidates
        some = self._board.best(weight_of_one(len(self._views), which), most + len(known))
        scores = np.where(np.isin(some.numbers, known), np.float32(0), some.table[which])
        places = by_score(some.numbers, scores, self._names, most)
        numbers = some.numbers[places[scores[places] > 0]].tolist()
        (verifications,) = self._board.verify([(view, numbers)])
        verified = zip(numbers, verifications, strict=True)
        return {number: one for number, one in verified if one.inliers}


def _better(some: dict[int, Tried], others: dict[int, Tried]) -> dict[int, Tried]:
    """The better of two results of each photo."""
    return some | {number: one for number, one in others.items() if _is_more(one, some.get(number))}


def _is_more(one: Tried, other: Tried | None) -> bool:
    """Whether more matches of a photo agree with one view than with another; never if none do."""
    return one.verification.strength > (other.verification if other is not None else NOTHING).strength


def _roll(transform: NDArray[np.float64]) -> float:
    """Angle in radians by which a map (2, 3) turns the plane: that of the rotation nearest to it."""
    return float(np.arctan2(transform[1, 0] - transform[0, 1], transform[0, 0] + transform[1, 1]))
