"""A retrieval benchmark: index photos, run the queries of a ground truth, and score the rankings."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eval.protocols.scoring import QueryScore, mean_precision
from eval.protocols.truth import PLAIN, Truth, one_right_answer, plain_truth, read_truth
from eval.retrieval.kept import Answers, RunFolder, discard, folder_name, key_of, run_folder, size_of
from eval.retrieval.options import BenchmarkSetup
from eval.retrieval.photos import BenchmarkPhotos, as_called, choose_photos, states_of
from eval.retrieval.queries import QueryRun, no_photo_of
from eval.retrieval.vocabulary import MadeVocabulary, VocabularySource, find_source, origin_of, settings_of
from index.attributes import some_of
from index.errors import CairnError
from index.progress import Progress, silent
from index.similarity import SimilarityMatrix
from index.vocabulary import Vocabulary
from learning.labels.ground_truth import GroundTruthQuery
from learning.measures.precision import mean_average_precision
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection as Opened
from retrieval.collection.collection import find_vocabulary
from retrieval.collection.content import check_similarity
from retrieval.collection.options import CollectionOptions
from retrieval.library.collection import Collection
from retrieval.library.opening import make
from retrieval.metadata.pages import stem_of
from retrieval.photos.listing import list_photos
from retrieval.search.engines.registry import VerifiedPhotos, find_engine
from retrieval.search.options import SearchOptions


@dataclass(frozen=True)
class BenchmarkReport:
    """Results and settings of a benchmark."""

    protocols: dict[str, list[QueryScore]]
    engine: str
    expand: str
    descriptor: str
    words: int
    trained_on: str
    recall_at_1: float
    images: int
    features: int  # of the images
    failed: list[dict[str, str]]
    missing: list[str]  # photos of the ground truth that are missing
    truth: Truth  # with the stems of files as the names of photos
    left_out: list[str] = field(default_factory=list)  # queries without a score: see `Truth.answerable`
    seconds: dict[str, float] = field(default_factory=dict)
    similarity: dict[str, Any] | None = None  # the learnt similarity: file, fingerprint, neighbours, pairs
    origin: dict[str, Any] = field(default_factory=dict)  # of the vocabulary: see `origin_of`
    distractors: int = 0  # of the images
    share: float = 1.0  # of the queries and photos
    cutoffs: tuple[int, ...] = ()  # k of mean precisions at k
    published: str | None = None  # the paper whose choices were used
    turns: int = 1  # turns of queries to try
    every_turn: bool = True  # whether all queries are turned, even if that cannot change the answer
    work: dict[str, Any] | None = None  # folder of the run, its bytes, and searches done by an earlier run

    @property
    def scores(self) -> list[QueryScore]:
        """Scores of the queries, of the only protocol, or else of Medium, or of the first."""
        return self.protocols.get(PLAIN) or self.protocols.get("medium") or next(iter(self.protocols.values()))

    @property
    def mean(self) -> float:
        """Mean average precision over the queries that have positives, as `scores` gives them."""
        return mean_average_precision([score.ap for score in self.scores])

    def as_json(self) -> dict[str, Any]:
        """Return the object that `cairn evaluate retrieval --json` prints."""
        scored = {name: self._scored(scores) for name, scores in self.protocols.items()}
        return {
            **scored.get(PLAIN, {"protocols": scored}),
            **some_of(self, "engine", "expand", "similarity", "descriptor"),
            "vocabulary": {
                "words": self.words,
                "trained_on": self.trained_on,
                "recall_at_1": round(self.recall_at_1, 4),
                **self.origin,
            },
            **some_of(self, "images", "features", "distractors", "share"),
            "as_published": self.published,
            **some_of(self, "turns", "every_turn", "failed", "missing", "left_out", "work"),
            "seconds": {step: round(value, 3) for step, value in self.seconds.items()},
        }

    def _scored(self, scores: list[QueryScore]) -> dict[str, Any]:
        return {
            "mAP": round(mean_average_precision([score.ap for score in scores]), 6),
            **{f"mP@{k}": round(mean_precision(scores, k), 6) for k in self.cutoffs},
            "queries": [
                {
                    "name": score.name,
                    "ap": round(score.ap, 6),
                    **{f"P@{k}": round(value, 6) for k, value in score.precision.items()},
                    "seconds": round(score.seconds, 4),
                }
                for score in scores
            ],
        }


def run_benchmark(
    images: Sequence[Path],
    ground_truth: Path,
    *,
    queries: Path | None = None,
    options: CollectionOptions | None = None,
    search: SearchOptions | None = None,
    setup: BenchmarkSetup | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> BenchmarkReport:
    """Index photos, search for every query of a ground truth, and score (Philbin et al., CVPR 2007). Average precision
    is the trapezoid of the published `compute_ap`; queries without positives leave the mean. Errors that can be
    detected early are raised before any work.

    `ground_truth`: folder in the Oxford5K layout, a file ``gnd_*.pkl`` of Revisited (Radenović et al., CVPR 2018), or
    ``retrieval_solution_*.csv`` of Google Landmarks (Weyand et al., CVPR 2020).
    """
    search, options, setup = search or SearchOptions(), options or CollectionOptions(), setup or BenchmarkSetup()
    collection, features = setup.collection, setup.features
    source = VocabularySource(setup.vocabulary, tuple(setup.vocabulary_images))
    truth = _truth_of(ground_truth, setup.cameras)
    photos, truth = choose_photos(
        images, truth, queries=queries, distractors=setup.distractors, share=setup.share, seed=options.seed
    )
    _check_photos(photos, truth, collection, features)
    similarity = _check_early(search.similarity, collection, source) if search.similarity is not None else None
    start = time.perf_counter()
    with _working(setup, options, photos, source) as (place, root):
        words = find_source(source, options, root, share=setup.share, workers=workers, progress=progress)
        folder = collection or place.path / f"{folder_name(setup.name if setup.work else 'benchmark')}.cairn"
        described = [*photos.images, *photos.distractors] if features is not None else ()
        with make(folder, options, features=features, photos=described) as searched:
            opened = searched.opened
            _refuse_others(searched, photos)
            failed = _index(searched, photos, words, place, collection is None, workers, progress)
            seconds = {"index": time.perf_counter() - start}
            run = QueryRun(opened, photos, truth, search, setup.single_ranking)
            answers = place.answers(run.key)
            before = sum(job in answers for job in run.jobs)
            run.ask(answers, place.path, workers, progress)
            protocols = run.scores(answers)
            seconds["queries"] = time.perf_counter() - start - seconds["index"]
            seconds["total"] = time.perf_counter() - start
            report = BenchmarkReport(
                protocols,
                **_description(opened, run, search),
                failed=failed,
                truth=photos.truth,
                seconds=seconds,
                similarity=similarity,
                origin=origin_of(opened, source, words, photos),
                share=setup.share,
                cutoffs=truth.cutoffs,
            )
    if setup.work is None:
        return report
    if setup.discard:
        discard(place.path, *([words.kept] if words and words.kept else []))
    stored = None if setup.discard else size_of(place.path)
    about = {"folder": str(place.path), "bytes": stored, "searches": len(run.jobs), "done_before": before}
    return replace(report, work=about)


def _truth_of(ground_truth: Path, cameras: tuple[str, str] | None) -> Truth:
    """Read a ground truth, of some cameras if set. It must have queries with positives."""
    truth = read_truth(ground_truth)
    if cameras is not None:
        truth = one_right_answer(truth, *cameras)
    if not truth.queries:
        raise CairnError(f"No query of {ground_truth} has a positive.")
    return truth


def _check_photos(photos: BenchmarkPhotos, truth: Truth, collection: Path | None, features: Path | None) -> None:
    """Raise CairnError if an answerable query has no photo, or features of another program are unusable."""
    if collection is None:
        if not photos.image_files:
            raise _nothing_in(photos)
        answerable, _ = truth.answerable({truth.name_of(path) for path in photos.image_files})
        if lost := [query for query in answerable.queries if query.stem not in photos.queries]:
            raise no_photo_of(lost[0])
    if features is not None and truth.cropped:
        raise CairnError(
            "Queries of Revisited are cut out of their photos and described again, which features of another program "
            "are not: leave {--features} out."
        )


def _description(opened: Opened, run: QueryRun, search: SearchOptions) -> dict[str, Any]:
    return {
        "engine": run.engine,
        "expand": search.expand,
        "descriptor": opened.extractor.descriptor.name,
        "words": opened.vocabulary.words,
        "trained_on": opened.vocabulary.trained_on,
        "recall_at_1": opened.vocabulary.recall_at_1,
        "images": len(run.rows),
        "features": int(opened.index.images.feature_counts(opened.index.image_numbers.tolist()).sum()),
        **some_of(run, "missing", "left_out", "distractors"),
        "turns": search.turns,
        "every_turn": search.every_turn or find_engine(run.engine).verified is not VerifiedPhotos.BEST,
    }


@contextmanager
def _working(
    setup: BenchmarkSetup, options: CollectionOptions, photos: BenchmarkPhotos, source: VocabularySource
) -> Iterator[tuple[RunFolder, Path]]:
    """Open the folder of a run; also return the folder of all runs."""
    work, collection, features = setup.work, setup.collection, setup.features
    if work is None:
        with tempfile.TemporaryDirectory(prefix="cairn-") as scratch:
            yield RunFolder(Path(scratch), {}), Path(scratch)
        return
    settings = {
        "options": settings_of(options),
        "images": states_of(photos.image_files),
        "distractors": states_of(photos.distractor_files),
        "vocabulary": _source_settings(source),
        "collection": str(collection.resolve()) if collection is not None else None,
        **({"features": _feature_states(features)} if features is not None else {}),
    }
    about = {**settings, "images": photos.folders, "distractors": len(photos.distractor_files)}
    if features is not None:
        about["features"] = str(features)
    name = f"{folder_name(setup.name)}-{key_of(settings)[:12]}"
    with run_folder(work / name, about) as place:
        yield place, work


def _feature_states(features: Path) -> list[tuple[str, int, int]]:
    """States of feature files, for detecting changes since an earlier run."""
    if features.is_file():
        return states_of([features])
    return states_of(sorted(one for one in features.rglob("*") if one.is_file()))


def _refuse_others(collection: Collection, photos: BenchmarkPhotos) -> None:
    """Refuse a collection with photos outside the benchmark: they would be ranked and count as wrong."""
    searched = {str(path) for path in (*photos.image_files, *photos.distractor_files)}
    # A missing photo may have been moved: indexing then finds its new path.
    others = [one.path for one in collection if one.path not in searched and Path(one.path).exists()]
    if others:
        raise CairnError(
            "{folder} has {number} photos that are not measured on, such as {other}: name another {--collection}, or "
            "leave it out.",
            folder=collection.folder,
            number=len(others),
            other=others[0],
        )


def _source_settings(source: VocabularySource) -> dict[str, Any]:
    if source.collection is not None:
        return {"fingerprint": Vocabulary.load(find_vocabulary(source.collection)).fingerprint}
    files = [path for _, path in list_photos(source.images)] if source.images else []
    return {"photos": states_of(files)}


def _index(
    collection: Collection,
    photos: BenchmarkPhotos,
    made: MadeVocabulary | None,
    place: RunFolder,
    is_own: bool,
    workers: int,
    progress: Progress,
) -> list[dict[str, str]]:
    """Index the images, which train the vocabulary by default, and then the distractors; return the failures.

    A complete collection of the work folder (`is_own`) is not checked again: the key of its folder covers the photos.
    """
    if is_own and collection.opened.has_vocabulary and (noted := place.noted("failed")) is not None:
        return list(noted)
    failed = []
    for paths in (photos.images, photos.distractors):
        if paths:
            vocabulary = made.folder if made is not None and not collection.opened.has_vocabulary else None
            if made is not None and made.kept is None:
                vocabulary = made.folder  # refused if the collection has another
            failed += collection.add(paths, vocabulary=vocabulary, workers=workers, progress=progress).failed
    if not len(collection):
        raise _nothing_in(photos)
    if is_own:
        place.note("failed", failed)
    return failed


def run_queries(
    collection: Opened,
    queries: Sequence[GroundTruthQuery],
    folder: Path | None,
    options: SearchOptions,
    progress: Progress = silent,
) -> tuple[list[QueryScore], list[str]]:
    """Search for queries; return their scores, and the missing photos of the ground truth."""
    listed = list_photos([folder]) if folder is not None else []
    indexed = [(Path(row.path).parent, Path(row.path)) for row in collection.catalogue.read(all_indexed)]
    truth = as_called(plain_truth(list(queries)), [*indexed, *listed])
    query_files, known = ({stem_of(str(path)): path for _, path in places} for places in (listed, indexed))
    photos = BenchmarkPhotos((), (), (), (), (), {**query_files, **known}, truth)
    run = QueryRun(collection, photos, truth, options)
    with tempfile.TemporaryDirectory(prefix="cairn-") as scratch:
        answers = Answers(Path(scratch))
        run.ask(answers, Path(scratch), 1, progress)
        return run.scores(answers)[PLAIN], run.missing


def _check_early(path: Path, collection: Path | None, source: VocabularySource) -> dict[str, Any]:
    """Read a learnt similarity and describe it for the report; raises CairnError if it cannot fit.

    It may fit a vocabulary not yet made of the same photos: the engine checks that in the end.
    """
    similarity = SimilarityMatrix.load(path)
    folder = None
    if collection is not None and find_vocabulary(collection) != collection:
        folder = find_vocabulary(collection)
    elif source.collection is not None:
        folder = find_vocabulary(source.collection)
    if folder is not None and (folder.is_dir() or source.collection is not None):
        check_similarity(path, similarity, Vocabulary.load(folder))
    return {"file": str(path), **similarity.describe()}


def _nothing_in(photos: BenchmarkPhotos) -> CairnError:
    return CairnError(f"None of the photos in {', '.join(photos.folders[:3])} can be indexed.")
