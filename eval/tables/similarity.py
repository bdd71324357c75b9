"""How much learnt similarities bring, on splits as in Yan13 section V: queries are never learnt from.

`landmarks`-like sets, whose queries are photos of the set: the queries' photos are in the test part, of the others four
in five are learnt from. Sets whose queries are photos of their own, one of which may be all there is of an object
beside the photo that it finds: the query photos join the collection as photos that take no rank, and are divided into
five parts; each part is searched for with what was learnt from the other four.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from eval.retrieval.photos import ranking_of, stems_of
from eval.similarity import ALONE, WAYS
from eval.similarity_splits import Lesson
from eval.tables.retrieval import Cell, collect
from eval.tables.staged import link_features, load_described, query_folder, stage_photos, stage_queries
from index.arrays import fingerprint, load_json, save_json
from index.parallel import run
from index.similarity import nearest_pairs
from learning.labels.files import read_labels
from learning.labels.ground_truth import Query
from learning.labels.labels import Labels, ObjectLabels, split
from learning.measures.precision import average_precision
from learning.similarity.learning import learn_similarity
from learning.similarity.options import SimilarityOptions
from learning.similarity.pair_gradients import WordPairs
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.indexing.adding import index_photos
from retrieval.search.query import quantise_query
from retrieval.search.searcher import Searcher

PARTS = 5
"""Parts of query photos that are no photos of the set."""

ENGINES = {"tf-idf": WAYS[ALONE], "tf-idf-sp": WAYS["verified"], "tf-idf-sp, expanded": WAYS["expanded"]}
"""As in table II: the words alone; verified; verified and expanded by the average."""

UNSEEN, UNSEEN_BEFORE = "tf-idf, unseen photos", "tf-idf, unseen photos, before"
"""Like tf-idf, but photos that were learnt from take no rank: only those that were not are to be found. And the same by
tf-idf itself."""

Tell = Callable[[str], None]
Scores = dict[str, dict[str, float]]
"""By way of searching, then by the query's name: average precision."""


class SimilarityTable:
    """Measures of one set with one vocabulary.

    Parameters
    ----------
    cell : Cell
        Set, whose vocabulary, descriptor.
    work : Path
        Folder where all is kept.
    workers : int
        Processes or threads; no figure depends on it.
    tell : callable
        Told what is being done.
    """

    def __init__(self, cell: Cell, work: Path, workers: int, tell: Tell) -> None:
        self.cell = cell
        self.work = work
        self.workers = workers
        self.tell = tell
        self.folder = self._collect()
        self.results = work / "similarity" / cell.settings / f"{cell.photos.key}-by-{cell.origin.key}"
        self.results.mkdir(parents=True, exist_ok=True)

    def baseline(self) -> Scores:
        """Scores of tf-idf."""
        return self._kept("tf-idf", lambda: self._score(None, [query for query in self.cell.photos.asked], frozenset()))

    def learnt(self, options: SimilarityOptions, seed: int, name: str) -> Scores:
        """Scores of what is learnt from the split of a seed, all queries being test queries once.

        Parameters
        ----------
        options : SimilarityOptions
            What is learnt.
        seed : int
            Of the split, and of learning.
        name : str
            By which the result is kept.
        """
        # By what is learnt too: figures of other settings are not taken for these.
        name = f"{name}-{fingerprint({}, asdict(replace(options, seed=0)))[:8]}"

        def measure() -> Scores:
            total: Scores = defaultdict(dict)
            for place, lesson in enumerate(self._lessons(seed)):
                file = self.results / f"{name}-{seed}-{place}.npz"
                seen = self._learn(lesson, replace(options, seed=seed), file)
                for way, scores in self._score(file, lesson.queries, seen).items():
                    total[way].update(scores)
            return dict(total)

        return self._kept(f"{name}-{seed}", measure)

    def training_photos(self, seed: int) -> dict[str, int]:
        """Photos of what each query shows that are learnt from in a split, by the query's name."""
        with Collection.open(self.folder) as collection:
            stems = stems_of(collection.catalogue.read(all_indexed))
        found: dict[str, int] = {}
        for lesson in self._lessons(seed):
            known = set(lesson.numbers.tolist()) - lesson.labels.asked
            shown = [one.positives & known for one in lesson.labels.objects]
            for query in lesson.queries:
                # Of an object, all photos count that one of its photos that the query should find is labelled with.
                own = [photos for photos in shown if any(stems[number] in query.positives for number in photos)]
                found[query.name] = len(frozenset[int]().union(*own))
        return found

    def _collect(self) -> Path:
        """Index the photos, and the query photos where they are others."""
        cell, work = self.cell, self.work
        image = cell.options.image
        for photos in {cell.photos.key: cell.photos, cell.origin.key: cell.origin}.values():
            for done, total in stage_photos(work, photos, [cell.extractor], image, self.workers):
                if done in (1, total):
                    self.tell(f"{photos.name}: {done} of {total} described")
        for done, total in stage_queries(work, cell.photos, cell.extractor, image, cell.turns, self.workers):
            if done in (1, total):
                self.tell(f"{cell.photos.name}: {done} of {total} queries described")
        searched = collect(cell, work, self.workers, lambda step, done, of: None)
        if cell.photos.queries is None:
            return searched
        final = work / "collections" / cell.settings / f"{cell.photos.key}-asked-by-{cell.origin.key}.cairn"
        if not final.is_dir():
            making = final.with_name(f"{final.name}.unfinished")
            with Collection.create(making, cell.options) as collection:
                link_features(work, cell.photos, cell.extractor, cell.options.image, collection)
                folders = [cell.photos.images, cell.photos.queries]
                index_photos(collection, folders, vocabulary=searched, workers=self.workers)
            making.rename(final)
        return final

    def _lessons(self, seed: int) -> Iterator[Lesson]:
        rng = np.random.default_rng(seed)
        photos = self.cell.photos
        with Collection.open(self.folder) as collection:
            rows = collection.catalogue.read(all_indexed)
        numbers = np.array([row.number for row in rows], np.int64)
        if photos.queries is None:
            labels = read_labels(photos.ground_truth, rows, skip_missing=True)
            training, _ = split(labels, numbers, rng)
            yield Lesson(labels, training, photos.asked)
            return
        by_stem = {stem: number for number, stem in stems_of(rows).items()}
        part = rng.permutation(len(photos.asked)) % PARTS
        for place in range(PARTS):
            # A query photo shows the object it finds; one that finds two says of neither what it shows.
            shown: dict[str, set[int]] = defaultdict(set)
            for query, at in zip(photos.asked, part.tolist(), strict=True):
                if at != place and len(query.positives) == 1:
                    (stem,) = query.positives
                    shown[stem] |= {by_stem[stem], by_stem[query.stem]}
            objects = tuple(ObjectLabels(stem, frozenset(found)) for stem, found in sorted(shown.items()))
            tested = [query for query, at in zip(photos.asked, part.tolist(), strict=True) if at == place]
            asked = frozenset(by_stem[query.stem] for query in tested)
            yield Lesson(Labels(objects, asked), np.setdiff1d(numbers, sorted(asked)), tested)

    def _learn(self, lesson: Lesson, options: SimilarityOptions, file: Path) -> frozenset[str]:
        """Learn unless it is there, and give the stems of the labelled photos that are learnt from."""
        with Collection.open(self.folder) as collection:
            stems = stems_of(collection.catalogue.read(all_indexed))
            known = set(lesson.numbers.tolist())
            seen = frozenset(stems[n] for one in lesson.labels.objects for n in one.positives & known)
            if file.is_file():
                return seen
            relevance = lesson.labels.relevance(lesson.numbers, np.random.default_rng(options.seed))
            vocabulary = collection.vocabulary
            pairs = WordPairs(vocabulary.words, *nearest_pairs(vocabulary, options.neighbours))
            learnt = learn_similarity(
                collection.index, vocabulary.fingerprint, pairs, relevance, options, workers=self.workers
            )
        learnt.matrix.save(file)
        first, chosen = learnt.history[0].held_out, learnt.history[learnt.chosen].held_out
        held = f"{100 * first:.1f} to {100 * chosen:.1f}" if first is not None and chosen is not None else "none"
        self.tell(
            f"{file.stem}: {len(relevance.queries)} photos to learn from, {learnt.triplets} triplets "
            f"({learnt.hard} hard); held out {held}, iteration {learnt.chosen}"
        )
        return seen

    def _score(self, file: Path | None, queries: Sequence[Query], seen: frozenset[str]) -> Scores:
        size = max(1, -(-len(queries) // (2 * self.workers)))
        jobs = [
            partial(_score_some, self.folder, self.cell, self.work, file, queries[start : start + size], seen)
            for start in range(0, len(queries), size)
        ]
        total: Scores = defaultdict(dict)
        for scores in run(jobs, self.workers):
            for way, found in scores.items():
                total[way].update(found)
        return dict(total)

    def _kept(self, name: str, measure: Callable[[], Scores]) -> Scores:
        file = self.results / f"{name}.json"
        if not file.is_file():
            self.tell(f"{self.cell.photos.name}, {self.cell.origin.name}'s words: {name}")
            save_json(file, measure())
        scores: Scores = load_json(file)
        return scores


def _score_some(
    folder: Path, cell: Cell, work: Path, file: Path | None, queries: Sequence[Query], seen: frozenset[str]
) -> Scores:
    described = query_folder(work, cell.photos, cell.extractor, cell.options.image, cell.turns)
    photos = dict(zip([query.name for query in cell.photos.asked], cell.photos.query_files, strict=True))
    beside = {path.stem for path in photos.values()} if cell.photos.queries is not None else set()
    found: Scores = defaultdict(dict)
    with Collection.open(folder) as collection:
        stems = stems_of(collection.catalogue.read(all_indexed))
        engines = {way: Searcher(collection, replace(options, similarity=file)) for way, options in ENGINES.items()}
        plain = Searcher(collection, ENGINES["tf-idf"])
        for query in queries:
            asked = quantise_query(
                load_described(described / f"{query.name}.npz", photos[query.name]), collection.vocabulary
            )
            junk = query.junk | beside
            unseen = query.positives - seen
            for way, engine in engines.items():
                ranking = ranking_of(engine.search(asked.views, region=asked.region), stems)
                found[way][query.name] = average_precision(ranking, query.positives, junk)
            for way, engine in ((UNSEEN, engines["tf-idf"]), (UNSEEN_BEFORE, plain)):
                if unseen and file is not None:
                    ranking = ranking_of(engine.search(asked.views, region=asked.region), stems)
                    found[way][query.name] = average_precision(ranking, unseen, junk | (query.positives & seen))
    return dict(found)
