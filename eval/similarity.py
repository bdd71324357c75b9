"""Gain of learnt similarities over random splits: tables II to IV and figures 2, 4 and 5 of Yan13. By photos, as in the
paper, queries are never in the training set, and four fifths of the others are; by objects, photos of the measured
objects are excluded from learning.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eval.benchmark import run_queries
from eval.retrieval.photos import named_photos, stems_of
from eval.similarity_options import SimilarityStudy
from eval.similarity_splits import Lesson, lessons
from index.arrays import fingerprint, load_json, save_json
from index.errors import CairnError
from index.parallel import processes, run
from index.progress import Progress, silent
from index.similarity import nearest_pairs
from learning.labels.ground_truth import GroundTruthQuery, read_ground_truth
from learning.similarity.learning import learn_similarity
from learning.similarity.options import SimilarityOptions
from learning.similarity.pair_gradients import WordPairs
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.metadata.pages import stem_of
from retrieval.search.options import SearchOptions

ALONE, UNSEEN = "alone", "unseen"
WAYS = {
    ALONE: SearchOptions(engine="tf-idf", turns=1),
    "verified": SearchOptions(engine="tf-idf-sp", turns=1),
    "expanded": SearchOptions(engine="tf-idf-sp", expand="average", turns=1),
    UNSEEN: SearchOptions(engine="tf-idf", turns=1),
}
"""As in table II: the words alone; verified (SR); verified and expanded by the average (SR and QE).

And the words alone, with training photos left out of the rankings and positives."""

Scores = dict[str, dict[str, float]]
"""By search method, then by the query's name: average precision, or seconds."""


@dataclass(frozen=True)
class SimilarityFigures:
    """Results in one collection with one similarity."""

    scores: Scores
    seconds: Scores

    @staticmethod
    def joined(parts: Sequence["SimilarityFigures"]) -> "SimilarityFigures":
        """Merge the figures of several parts of queries."""

        def join(one: list[Scores]) -> Scores:
            return {way: {name: each for part in one for name, each in part.get(way, {}).items()} for way in WAYS}

        return SimilarityFigures(join([part.scores for part in parts]), join([part.seconds for part in parts]))

    def mean(self, way: str) -> float:
        """Mean average precision."""
        return float(np.mean([*self.scores[way].values()]))

    def median(self, way: str) -> float:
        """Median seconds of a search."""
        return float(np.median([*self.seconds[way].values()]))


@dataclass(frozen=True)
class SplitOutcome:
    """The similarities learnt from one split, part by part, and their figures."""

    neighbours: int
    seed: int
    parts: list[dict[str, Any]]  # parameters, triplets, hard, seconds, iteration and held_out of each
    photos: dict[str, int]  # by the query's name: number of positives in the training set
    before: dict[str, SimilarityFigures]  # by searched collection: tf-idf, without training photos
    after: dict[str, SimilarityFigures]  # by searched collection


@dataclass(frozen=True)
class SimilarityReport:
    """Figures of all splits, and those of tf-idf."""

    about: dict[str, Any]
    plain: dict[str, SimilarityFigures]  # by searched collection: tf-idf
    splits: list[SplitOutcome]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `cairn evaluate similarity --json` prints."""
        groups = {
            k: [one for one in self.splits if one.neighbours == k] for k in {one.neighbours: 0 for one in self.splits}
        }
        searched = {}
        for name, plain in self.plain.items():
            ways = [way for way in WAYS if plain.scores[way]]
            searched[name] = {
                "tf-idf": {way: {**_figures([plain], way), "queries": plain.scores[way]} for way in ways},
                "learnt": [
                    {"neighbours": k, **{way: self._row(name, group, way) for way in (*ways, UNSEEN)}}
                    for k, group in groups.items()
                ],
            }
        learning = [
            {
                "neighbours": k,
                **{
                    what: _spread([sum(part[what] for part in one.parts) for one in group])
                    for what in ("triplets", "hard", "seconds")
                },
                "parameters": _spread([one.parts[0]["parameters"] for one in group]),
                "splits": [{"seed": one.seed, "parts": one.parts, "photos": one.photos} for one in group],
            }
            for k, group in groups.items()
        ]
        return {**self.about, "searched": searched, "learning": learning}

    def _row(self, name: str, group: list[SplitOutcome], way: str) -> dict[str, Any] | None:
        # A split may leave no unseen positives.
        group = [one for one in group if one.after[name].scores[way]]
        if not group:
            return None
        figures = [one.after[name] for one in group]
        before = [one.before[name].mean(UNSEEN) if way == UNSEEN else self.plain[name].mean(way) for one in group]
        gains = [one.mean(way) / max(was, 1e-12) - 1 for one, was in zip(figures, before, strict=True)]
        queries = {query for one in figures for query in one.scores[way]}
        return {
            **_figures(figures, way),
            "tf-idf": round(float(np.mean(before)), 6),
            "gain": round(float(np.mean(gains)), 6),
            "splits": [round(one.mean(way), 6) for one in figures],
            "queries": {
                query: round(float(np.mean([one.scores[way][query] for one in figures if query in one.scores[way]])), 6)
                for query in sorted(queries)
            },
        }


def evaluate_similarity(
    folder: Path,
    ground_truth: Path,
    options: SimilarityOptions,
    study: SimilarityStudy,
    progress: Progress = silent,
) -> SimilarityReport:
    """Learn from random splits of a collection, and compare with tf-idf by its queries. Query photos in no answer take
    no rank. A stopped run can be resumed. `options`: of learning, except `neighbours` and `seed`, which the study sets.
    """
    splits = study.split
    ways = study.way or tuple(WAYS)
    queries = [query for query in read_ground_truth(ground_truth) if query.positives]
    if not queries:
        raise CairnError(f"No query of {ground_truth} has a positive.")
    if unknown := [way for way in ways if way not in WAYS]:
        raise CairnError(f"There is no way of searching {unknown[0]!r}; choose of {', '.join(WAYS)}.")
    bench = _Bench((folder, ground_truth), queries, ways, study, progress)
    counts = [*dict.fromkeys(study.neighbours)] or [options.neighbours]
    about = {
        "collection": str(folder),
        "photos": len(bench.rows),
        "queries": len(queries),
        **{f"split_{name}" if name == "seed" else name: value for name, value in asdict(splits).items()},
        "options": asdict(options),
    }
    plain = {name: bench.measure(name, queries, None) for name in bench.places}
    outcomes = []
    for done, (k, number) in enumerate((k, number) for k in counts for number in range(splits.splits)):
        progress("splits", done, len(counts) * splits.splits)
        seed = splits.seed + number
        outcomes.append(bench.split(replace(options, neighbours=k, seed=seed)))
    progress("splits", len(outcomes), len(outcomes))
    return SimilarityReport(about, plain, outcomes)


class _Bench:
    def __init__(
        self,
        places: tuple[Path, Path],
        all_queries: list[GroundTruthQuery],
        ways: Sequence[str],
        study: SimilarityStudy,
        tell: Progress,
    ) -> None:
        (self.folder, self.ground_truth), self.asked, self.splits = places, all_queries, study.split
        self.ways, self.workers, self.tell = [way for way in ways if way != UNSEEN], processes(study.workers), tell
        folder = self.folder
        self.told_unseen = UNSEEN in ways and study.split.by == "photos"
        self.places = {str(path): path for path in (folder, *study.searched)}
        self.rows: list[ImageRow] = []
        self.keys: dict[str, str] = {}
        words: set[str] = set()
        for name, path in self.places.items():
            with Collection.open(path) as opened:
                rows = list(opened.catalogue.read(all_indexed))
                words.add(opened.vocabulary.fingerprint)
            if len(words) > 1:
                raise CairnError(
                    "{path} has another vocabulary than {folder}: index it with {--vocabulary} {folder}.",
                    path=path,
                    folder=folder,
                )
            stems = set(stems_of(rows, named_photos(all_queries)).values())
            if lost := {query.stem for query in all_queries} - stems:
                raise CairnError(f"The photo {min(lost)!r}, which is asked with, is not in {path}: index it there too.")
            self.rows = self.rows or rows
            photos = sorted((row.sha256 or "", stem_of(row.path)) for row in rows)
            self.keys[name] = fingerprint({}, {"photos": photos, "words": sorted(words)})[:12]
        queries = [[*vars(query).values()] for query in all_queries]
        listed = [[sorted(one) if isinstance(one, frozenset) else one for one in query] for query in queries]
        self.work = study.work / f"{self.keys[str(folder)]}-{fingerprint({}, {'queries': listed})[:12]}"
        self.work.mkdir(parents=True, exist_ok=True)

    def split(self, options: SimilarityOptions) -> SplitOutcome:
        seed = options.seed
        settings = asdict(replace(options, seed=0)) | {"split": asdict(replace(self.splits, splits=1, seed=0))}
        name = f"k{options.neighbours}-{fingerprint({}, settings)[:12]}-{seed}"
        stems = stems_of(self.rows, named_photos(self.asked))
        parts, photos = [], {}
        before: dict[str, list[SimilarityFigures]] = {place: [] for place in self.places}
        after: dict[str, list[SimilarityFigures]] = {place: [] for place in self.places}
        for part, lesson in enumerate(lessons(self.ground_truth, self.asked, self.rows, self.splits, seed)):
            file = self.work / f"{name}-{part}.npz"
            parts.append(self._learn(lesson, options, file))
            seen = lesson.seen(stems)
            photos.update({query.name: len(query.positives & seen) for query in lesson.queries})
            for place in self.places:
                before[place].append(self.measure(place, lesson.queries, None, seen))
                after[place].append(self.measure(place, lesson.queries, file, seen))
        return SplitOutcome(
            options.neighbours,
            seed,
            parts,
            photos,
            {place: SimilarityFigures.joined(each) for place, each in before.items()},
            {place: SimilarityFigures.joined(each) for place, each in after.items()},
        )

    def measure(
        self, place: str, queries: Sequence[GroundTruthQuery], file: Path | None, seen: frozenset[str] | None = None
    ) -> SimilarityFigures:
        """Search a collection with a similarity file, or with tf-idf, then only for `UNSEEN` if photos are `seen`."""
        ways = self.ways if file is not None or seen is None else []
        if self.told_unseen and seen is not None:
            ways = [*ways, UNSEEN]
        figures = SimilarityFigures({}, {})
        for way in ways:
            key = {"queries": [query.name for query in queries], "seen": sorted(seen or ()) if way == UNSEEN else []}
            by = file.stem if file is not None else "tf-idf"
            stored = self.work / f"{by}-{self.keys[place]}-{way}-{fingerprint({}, key)[:12]}.json"
            if not stored.is_file():
                save_json(stored, self._search(place, queries, file, way, seen or frozenset()))
            rows = load_json(stored)
            figures.scores[way] = {name: ap for name, (ap, _) in rows.items()}
            figures.seconds[way] = {name: seconds for name, (_, seconds) in rows.items()}
        return SimilarityFigures.joined([figures])

    def _search(
        self, place: str, queries: Sequence[GroundTruthQuery], file: Path | None, way: str, seen: frozenset[str]
    ) -> dict[str, tuple[float, float]]:
        # A query photo in no answer is not in the set.
        unlisted = {query.stem for query in self.asked}
        unlisted -= {stem for query in self.asked for stem in query.positives | query.junk}
        remaining = []
        for query in queries:
            good = query.positives - seen if way == UNSEEN else query.positives
            junk = query.junk | unlisted | (query.positives - good)
            if good:
                remaining.append(replace(query, good=good, ok=frozenset(), junk=junk - good))
        size = max(1, -(-len(remaining) // (2 * self.workers)))
        options = replace(WAYS[way], similarity=file)
        jobs = [
            partial(_search_some, self.places[place], remaining[start : start + size], options)
            for start in range(0, len(remaining), size)
        ]
        return {name: row for part in run(jobs, self.workers) for name, row in part.items()}

    def _learn(self, lesson: Lesson, options: SimilarityOptions, file: Path) -> dict[str, Any]:
        """Learn unless already done, and report it."""
        record_file = file.with_suffix(".json")
        if record_file.is_file() and file.is_file():
            known: dict[str, Any] = load_json(record_file)
            return known
        began = time.perf_counter()
        with Collection.open(self.folder) as collection:
            relevance = lesson.labels.relevance(lesson.numbers, np.random.default_rng(options.seed))
            vocabulary = collection.vocabulary
            pairs = WordPairs(vocabulary.words, *nearest_pairs(vocabulary, options.neighbours))
            learnt = learn_similarity(
                collection.index,
                vocabulary.fingerprint,
                pairs,
                relevance,
                options,
                workers=self.workers,
                progress=self.tell,
            )
        learnt.matrix.save(file)
        first, chosen = learnt.history[0], learnt.history[learnt.chosen]
        save_json(
            record_file,
            {
                "parameters": pairs.parameters,
                "photos": len(learnt.learnt_from.queries),
                "triplets": learnt.triplets,
                "hard": learnt.hard,
                "iteration": learnt.chosen,
                "held_out": {"tf-idf": first.held_out, "learnt": chosen.held_out},
                "seconds": round(time.perf_counter() - began, 3),
            },
        )
        record: dict[str, Any] = load_json(record_file)
        return record


def _search_some(
    folder: Path, queries: Sequence[GroundTruthQuery], options: SearchOptions
) -> dict[str, tuple[float, float]]:
    """Average precision of some queries, and the seconds of each search."""
    with Collection.open(folder) as collection:
        scores, _ = run_queries(collection, queries, None, options)
    return {score.name: (score.ap, score.seconds) for score in scores}


def _figures(results: Sequence[SimilarityFigures], way: str) -> dict[str, Any]:
    return {
        **_spread([one.mean(way) for one in results], "mAP"),
        "seconds": round(float(np.median([one.median(way) for one in results])), 6),
    }


def _spread(values: Sequence[float], name: str = "mean") -> dict[str, float | None]:
    """Mean and sample standard deviation, which is unknown for one value."""
    return {
        name: round(float(np.mean(values)), 6),
        "sd": round(float(np.std(values, ddof=1)), 6) if len(values) > 1 else None,
    }
