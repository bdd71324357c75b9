"""A retrieval benchmark: index a folder of photos, run its queries, and score the rankings."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from index.errors import CairnError
from index.progress import Progress
from index.similarity import SimilarityMatrix
from index.vocabulary import Vocabulary
from learning.labels.ground_truth import Query, missing_photos, read_ground_truth
from learning.measures.precision import average_precision, mean_average_precision
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection, find_vocabulary
from retrieval.collection.content import check_similarity
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.described import create_described
from retrieval.photos.listing import list_photos
from retrieval.search.answers import ask_with_file, search_photo
from retrieval.search.engines.contract import settle
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Answer, Searcher


@dataclass(frozen=True)
class QueryScore:
    """How one query went."""

    name: str
    ap: float
    seconds: float
    ranking: list[str] = field(default_factory=list)  # the names of all photos, the best first; see `ranking_of`


@dataclass(frozen=True)
class BenchmarkReport:
    """How a benchmark went, and with what."""

    scores: list[QueryScore]
    engine: str
    expand: str
    descriptor: str
    words: int
    trained_on: str
    recall_at_1: float
    images: int
    failed: list[dict[str, str]]
    missing: list[str]  # photos of the ground truth that are not there
    seconds: dict[str, float] = field(default_factory=dict)
    similarity: dict[str, Any] | None = None  # the learnt similarity: file, fingerprint, neighbours, pairs

    @property
    def mean(self) -> float:
        """Mean average precision over the queries that have positives."""
        return mean_average_precision([score.ap for score in self.scores])

    def as_json(self) -> dict[str, Any]:
        """Give the object that `cairn evaluate retrieval --json` prints."""
        return {
            "mAP": round(self.mean, 6),
            "queries": [
                {"name": score.name, "ap": round(score.ap, 6), "seconds": round(score.seconds, 4)}
                for score in self.scores
            ],
            "engine": self.engine,
            "expand": self.expand,
            "similarity": self.similarity,
            "descriptor": self.descriptor,
            "vocabulary": {
                "words": self.words,
                "trained_on": self.trained_on,
                "recall_at_1": round(self.recall_at_1, 4),
            },
            "images": self.images,
            "failed": self.failed,
            "missing": self.missing,
            "seconds": {step: round(value, 3) for step, value in self.seconds.items()},
        }


def run_benchmark(
    images: Sequence[Path],
    ground_truth: Path,
    *,
    queries: Path | None = None,
    options: CollectionOptions | None = None,
    search: SearchOptions | None = None,
    vocabulary: Path | None = None,
    collection: Path | None = None,
    features: Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> BenchmarkReport:
    """Index photos, search for every query of a ground truth, and score (Philbin et al., CVPR 2007).

    Parameters
    ----------
    images : sequence of Path
        Folders of the photos to be indexed.
    ground_truth : Path
        Folder in the Oxford5K layout.
    queries : Path, optional
        Folder of query photos that are not among the images.
    options : CollectionOptions, optional
        How photos are indexed.
    search : SearchOptions, optional
        How queries are answered.
    vocabulary : Path, optional
        A collection whose vocabulary is used; else one is made from the images.
    collection : Path, optional
        Where the collection is kept, to be used again; else it is removed.
    features : Path, optional
        Features of all photos that another program made, in place of Cairn's own: see `open_features`.
    workers : int
        Processes; the result does not depend on it.
    progress : callable, optional
        Told how far each step is.

    Returns
    -------
    BenchmarkReport
        Average precision is the trapezoid of the published `compute_ap`; queries without positives leave the mean.

    Raises
    ------
    CairnError
        A folder is missing, a query's photo cannot be found, no query has positives, a photo that the ground truth
        names is there twice, or the learnt similarity is for another vocabulary: said before any work where it is
        known by then.
    """
    search = search or SearchOptions()
    asked = [query for query in read_ground_truth(ground_truth) if query.positives]
    if not asked:
        raise CairnError(f"No query of {ground_truth} has a positive.")
    _check_photos(asked, images, queries, is_new=collection is None)
    similarity = None
    if search.similarity is not None:
        similarity = _check_early(search.similarity, collection, vocabulary)
    with tempfile.TemporaryDirectory(prefix="cairn-") as scratch:
        folder = collection or Path(scratch) / "benchmark.cairn"
        start = time.perf_counter()
        options = options or CollectionOptions()
        with (
            create_described(folder, options, features, images) if features else Collection.create(folder, options)
        ) as opened:
            indexed = index_photos(opened, images, vocabulary=vocabulary, workers=workers, progress=progress)
            seconds = {"index": time.perf_counter() - start}
            if not opened.catalogue.counts()["indexed"]:
                raise CairnError(f"None of the photos in {', '.join(map(str, images))} can be indexed.")
            scores, missing = run_queries(opened, asked, queries, search, progress)
            seconds["queries"] = time.perf_counter() - start - seconds["index"]
            seconds["total"] = time.perf_counter() - start
            return BenchmarkReport(
                scores,
                engine=settle(search, opened).engine,
                expand=search.expand,
                descriptor=opened.extractor.descriptor.name,
                words=opened.vocabulary.words,
                trained_on=opened.vocabulary.trained_on,
                recall_at_1=opened.vocabulary.recall_at_1,
                images=opened.catalogue.counts()["indexed"],
                failed=indexed.failed,
                missing=missing,
                seconds=seconds,
                similarity=similarity,
            )


def run_queries(
    collection: Collection,
    queries: Sequence[Query],
    folder: Path | None,
    options: SearchOptions,
    progress: Progress | None = None,
) -> tuple[list[QueryScore], list[str]]:
    """Search for queries; give each one's score, and the ground truth's photos that are missing."""
    searcher = Searcher(collection, options)
    rows = collection.catalogue.images()
    stems = stems_of(rows, named_photos(queries))
    paths = {Path(row.path).stem: Path(row.path) for row in rows}
    if folder is not None:
        for _, path in list_photos([folder]):
            paths.setdefault(path.stem, path)
    scores = []
    for done, query in enumerate(queries):
        if query.stem not in paths:
            raise _no_photo_of(query)
        start = time.perf_counter()
        found = search_photo(searcher, ask_with_file(collection, query.stem, paths[query.stem], query.box))
        seconds = time.perf_counter() - start
        ranking = ranking_of(found.answer, stems)
        score = average_precision(ranking, query.positives, query.junk)
        scores.append(QueryScore(query.name, score, seconds, ranking))
        if progress is not None:
            progress("queries", done + 1, len(queries))
    return scores, missing_photos(queries, stems.values())


def ranking_of(answer: Answer, stems: Mapping[int, str]) -> list[str]:
    """Give the names that a ground truth knows photos by, the best first."""
    return [stems[number] for number in answer.hits.ordered.tolist()]


def _check_early(path: Path, collection: Path | None, vocabulary: Path | None) -> dict[str, Any]:
    """Read a learnt similarity and say what the report says of it; CairnError where it is known that it will not fit.

    A vocabulary that is yet to be made can fit as well, where the similarity was learnt on the same photos: the engine
    says in the end.
    """
    similarity = SimilarityMatrix.load(path)
    folder = None
    if collection is not None and find_vocabulary(collection) != collection:
        folder = find_vocabulary(collection)
    elif vocabulary is not None:
        folder = find_vocabulary(vocabulary)
    if folder is not None and (folder.is_dir() or vocabulary is not None):
        check_similarity(path, similarity, Vocabulary.load(folder))
    return {"file": str(path), **similarity.describe()}


def _check_photos(asked: Sequence[Query], images: Sequence[Path], folder: Path | None, *, is_new: bool) -> None:
    """Refuse, before anything is indexed, photos that the ground truth cannot tell apart and queries without a photo.

    Photos that a kept collection (not `is_new`) holds from elsewhere are not looked at: `run_queries` does.
    """
    found = [path.stem for _, path in list_photos(images)]
    _check_stems(found, named_photos(asked))
    there = set(found)
    if folder is not None:
        beside = [path.stem for _, path in list_photos([folder])]
        _check_stems(beside, {query.stem for query in asked} - there)
        there.update(beside)
    lost = [query for query in asked if query.stem not in there]
    if is_new and found and lost:
        raise _no_photo_of(lost[0])


def _no_photo_of(query: Query) -> CairnError:
    return CairnError(
        f"The photo {query.stem!r} of the query {query.name!r} is neither among the images nor the queries."
    )


def named_photos(queries: Iterable[Query]) -> set[str]:
    """Give the stems of all photos that some queries name: their own, good, ok and junk."""
    return {stem for query in queries for stem in (query.stem, *query.positives, *query.junk)}


def stems_of(rows: Sequence[ImageRow], named: Set[str] | None = None) -> dict[int, str]:
    """Give the names that a ground truth knows photos by, by their image numbers.

    CairnError where one comes twice. Where the stems that it names are given, the others go by their paths, and may.
    """
    stems = {row.number: Path(row.path).stem for row in rows}
    _check_stems(stems.values(), named)
    if named is None:
        return stems
    return {row.number: stems[row.number] if stems[row.number] in named else row.path for row in rows}


def _check_stems(stems: Iterable[str], named: Set[str] | None = None) -> None:
    twice = [stem for stem, count in Counter(stems).items() if count > 1 and (named is None or stem in named)]
    if twice:
        raise CairnError(
            f"{len(twice)} names of photos, such as {twice[0]!r}, come twice but for folder or ending, so the ground "
            "truth cannot tell them apart: keep one photo of each."
        )
