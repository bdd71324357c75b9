"""Tables of retrieval figures: many descriptors, vocabularies, seeds and engines on a few sets, each measured once.

Every figure is that of `eval.benchmark.run_benchmark` with the same options; what is saved is the work that several of
them have in common. Each measurement is one JSON file in the work folder, written as it grows, so that a run that was
interrupted goes on where it stopped.
"""

import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from eval.benchmark import ranking_of, stems_of
from eval.tables.sets import RetrievalSet
from eval.tables.staged import link_features, load_described, query_folder, stage_set
from index.arrays import fingerprint, load_json, save_json
from index.errors import CairnError
from index.parallel import run
from learning.labels.ground_truth import Query, missing_photos
from learning.measures.precision import average_precision, mean_average_precision
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.extraction import Extractor
from retrieval.indexing.adding import index_photos
from retrieval.search.engines.contract import load_engine
from retrieval.search.engines.registry import Verified, find_engine
from retrieval.search.options import SearchOptions
from retrieval.search.query import quantise_query
from retrieval.search.searcher import Searcher

Tell = Callable[[str], None]
"""Told what is being done, a line at a time."""


@dataclass(frozen=True)
class Cell:
    """One measurement: a set searched by one engine, with a vocabulary made from its own photos or another set's."""

    photos: RetrievalSet
    origin: RetrievalSet  # whose photos the vocabulary is made from
    options: CollectionOptions  # descriptor, regions, seed
    engine: str
    turns: int = 8

    @property
    def own(self) -> bool:
        """Whether the vocabulary is the set's own, rather than an independent one."""
        return self.origin == self.photos

    @cached_property
    def extractor(self) -> Extractor:
        """Turns photos into features."""
        return Extractor(find_descriptor(self.options.descriptor), self.options.features)

    @cached_property
    def plain(self) -> CollectionOptions:
        """Options of a collection that most engines can search."""
        return replace(self.options, keep_descriptors=False)

    @cached_property
    def prepared(self) -> CollectionOptions:
        """Options of a collection that the engine can search: it may need more than is plain."""
        return load_engine(self.engine).prepared(self.plain)

    @cached_property
    def settings(self) -> str:
        """Fingerprint of all options but the seed, by the descriptor's content and not its name, and the seed."""
        named = asdict(replace(self.plain, descriptor="", seed=0))
        return f"{fingerprint({}, {'extractor': self.extractor.fingerprint, **named})[:12]}-{self.options.seed}"

    def file(self, work: Path) -> Path:
        """Where its scores are kept."""
        name = f"{self.photos.key}-by-{self.origin.key}-{self.engine}-{self.turns}.json"
        return work / "results" / self.settings / name

    def describe(self) -> str:
        """What it is, for people to read."""
        words = "own" if self.own else f"{self.origin.name}'s"
        options = self.options
        scale = "" if options.features.measurement_scale is None else f" x{options.features.measurement_scale:.4g}"
        what = f"{Path(options.descriptor).name}, {options.features.regions.detector}{scale}"
        return f"{self.photos.name}, {what}, {words} words, seed {options.seed}, {self.engine}"


@dataclass
class Result:
    """The scores of a measurement, as far as it has come."""

    scores: dict[str, float] = field(default_factory=dict)  # average precision by the query's name
    about: dict[str, Any] = field(default_factory=dict)  # what was measured

    @property
    def mean(self) -> float:
        """Mean average precision, as `run_benchmark` gives it."""
        return mean_average_precision(list(self.scores.values()))

    def by_object(self) -> dict[str, list[float]]:
        """Scores of the queries of each object (see `object_of`), by name."""
        groups = defaultdict(list)
        for name, score in sorted(self.scores.items()):
            groups[object_of(name)].append(score)
        return dict(groups)


def object_of(query: str) -> str:
    """Name of a query's object: the query's without its number; places that have one query each (``g_…``) are one."""
    return "g_…" if query.startswith("g_") else re.sub(r"_\d+$", "", query)


def measure(cells: Sequence[Cell], work: Path, *, workers: int = 1, tell: Tell = lambda line: None) -> list[Result]:
    """Measure what has not been measured yet.

    Parameters
    ----------
    cells : sequence of Cell
        What to measure.
    work : Path
        Folder where features, collections and results are kept; made where it is missing.
    workers : int
        Processes; the result does not depend on it.
    tell : callable, optional
        Told what is being done.

    Returns
    -------
    list of Result
        Of each cell, in the order given.

    Raises
    ------
    CairnError
        A set or a descriptor is missing, a query's photo cannot be read, or no photo can be indexed.
    """
    open_cells = [cell for cell in cells if not _complete(cell, work)]
    _stage(open_cells, work, workers, tell)
    # Engines that search the same collection quantise each query once; one that needs more has one of its own.
    groups: dict[tuple[str, str, str, int, str], list[Cell]] = defaultdict(list)
    for cell in open_cells:
        own = cell.engine if cell.prepared != cell.plain else ""
        groups[cell.settings, cell.photos.key, cell.origin.key, cell.turns, own].append(cell)
    for group in groups.values():
        _measure(group, work, workers, tell)
    return [_read(cell, work) for cell in cells]


def _read(cell: Cell, work: Path) -> Result:
    """Read the scores that there are."""
    file = cell.file(work)
    if not file.is_file():
        return Result()
    kept = load_json(file)
    return Result(kept.pop("scores"), kept)


def _complete(cell: Cell, work: Path) -> bool:
    return {query.name for query in cell.photos.asked} <= _read(cell, work).scores.keys()


def _stage(cells: Sequence[Cell], work: Path, workers: int, tell: Tell) -> None:
    """Describe all photos and queries, those of one set at a time, by all descriptors at once."""
    wanted: dict[tuple[str, str, int], dict[str, Cell]] = defaultdict(dict)
    sets = {photos.key: photos for cell in cells for photos in (cell.photos, cell.origin)}
    for cell in cells:
        for photos in (cell.photos, cell.origin):
            group = wanted[photos.key, str(cell.options.image), cell.turns]
            group.setdefault(cell.extractor.fingerprint, cell)
    for (key, _, turns), group in wanted.items():
        of = list(group.values())
        extractors = [cell.extractor for cell in of]
        tell(f"{sets[key].name}: features of photos and queries, {len(extractors)} descriptors")
        for done, total in stage_set(work, sets[key], extractors, of[0].options.image, turns, workers):
            if done % 100 == 0 or done == total:
                tell(f"{sets[key].name}: {done} of {total} described")


def _measure(cells: Sequence[Cell], work: Path, workers: int, tell: Tell) -> None:
    """Measure cells that differ in the engine alone."""
    cell = cells[0]
    tell(f"{cell.describe()}: indexing")
    own = index_set(cell.origin, cell, work, workers)
    plain = cell.own and cell.prepared == cell.plain
    folder = own if plain else index_set(cell.photos, cell, work, workers, own)
    results = [_read(one, work) for one in cells]
    about = _about(folder, cell)
    needed = {query.name for query in cell.photos.asked}
    queries = [
        (query, path)
        for query, path in zip(cell.photos.asked, cell.photos.query_files, strict=True)
        if any(query.name not in result.scores for result in results)
    ]
    described = query_folder(work, cell.photos, cell.extractor, cell.options.image, cell.turns)
    engines = [SearchOptions(engine=one.engine, turns=one.turns) for one in cells]
    for scores in _score_all(folder, engines, described, queries, workers):
        for one, result, score in zip(cells, results, scores, strict=True):
            result.scores.update(score)
            ordered = {
                query.name: result.scores[query.name] for query in one.photos.asked if query.name in result.scores
            }
            result.scores = ordered
            result.about = {**about, "engine": one.engine, "mAP": result.mean if ordered.keys() == needed else None}
            one.file(work).parent.mkdir(parents=True, exist_ok=True)
            save_json(one.file(work), {**result.about, "scores": ordered})
    for one, result in zip(cells, results, strict=True):
        tell(f"{one.describe()}: mAP {100 * result.mean:.2f}")
    if not plain:  # needed once only; a set's own collection is where vocabularies are taken from
        _remove(folder, work)


def index_set(photos: RetrievalSet, cell: Cell, work: Path, workers: int, vocabulary: Path | None = None) -> Path:
    """Index a set of photos unless it is there, with another collection's vocabulary or its own; give its folder."""
    more = vocabulary is not None and cell.prepared != cell.plain
    name = photos.key if vocabulary is None else f"{photos.key}-by-{cell.origin.key}{f'-{cell.engine}' if more else ''}"
    final = work / "collections" / cell.settings / f"{name}.cairn"
    if final.is_dir():
        return final
    # Elsewhere under the same name, which vocabularies note down, until it is whole.
    making = work / "collections" / "unfinished" / cell.settings / final.name
    making.parent.mkdir(parents=True, exist_ok=True)
    final.parent.mkdir(parents=True, exist_ok=True)
    with Collection.create(making, cell.prepared if more else cell.plain) as collection:
        link_features(work, photos, cell.extractor, cell.options.image, collection)
        index_photos(collection, [photos.images], vocabulary=vocabulary, workers=workers)
        if not collection.catalogue.counts()["indexed"]:
            raise CairnError(f"None of the photos in {photos.images} can be indexed.")
    making.rename(final)
    return final


def _remove(folder: Path, work: Path) -> None:
    """Remove a collection, so that what a run that is stopped meanwhile leaves is not taken for a whole one."""
    gone = work / "collections" / "unfinished" / "removed"
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone)


def _about(folder: Path, cell: Cell) -> dict[str, Any]:
    """Say what is measured, as far as the engine has no part in it."""
    with Collection.open(folder) as collection:
        stems = [Path(row.path).stem for row in collection.catalogue.images()]
        vocabulary = collection.vocabulary
        return {
            "set": cell.photos.name,
            "descriptor": collection.extractor.descriptor.name,
            "dim": collection.extractor.descriptor.dim,
            "features": asdict(cell.options.features),
            "seed": cell.options.seed,
            "turns": cell.turns,
            "vocabulary": {
                "from": cell.origin.name,
                "words": vocabulary.words,
                "trained_on": vocabulary.trained_on,
                "recall_at_1": vocabulary.recall_at_1,
            },
            "images": len(stems),
            "missing": missing_photos(cell.photos.asked, stems),
        }


Scores = list[dict[str, float]]
"""By engine: the average precision of some queries, by name."""


def _score_all(
    folder: Path, engines: list[SearchOptions], described: Path, queries: list[tuple[Query, Path]], workers: int
) -> Iterator[Scores]:
    """Score queries on several processes, a few at a time, in any order."""
    # To open a collection takes a second, and a query of an engine that verifies all photos a minute.
    slow = any(find_engine(options.engine).verified is Verified.ALL for options in engines)
    size = 2 if slow else max(1, min(16, len(queries) // (4 * workers)))
    jobs = (
        partial(_score, folder, engines, described, queries[start : start + size])
        for start in range(0, len(queries), size)
    )
    yield from run(jobs, workers, ordered=False)


def _score(folder: Path, engines: list[SearchOptions], described: Path, queries: list[tuple[Query, Path]]) -> Scores:
    """Search for described queries with each engine, and score the rankings as `run_benchmark` does."""
    found: Scores = [{} for _ in engines]
    with Collection.open(folder) as collection:
        stems = stems_of(collection.catalogue.images())
        searches = [Searcher(collection, options) for options in engines]
        for query, photo in queries:
            asked = quantise_query(
                load_described(described / f"{query.name}.npz", photo),
                collection.vocabulary,
                source=collection.signatures,
                signed=max(options.signed for options in engines),
            )
            for search, scores in zip(searches, found, strict=True):
                ranking = ranking_of(search.search(asked.views, region=asked.region), stems)
                scores[query.name] = average_precision(ranking, query.positives, query.junk)
    return found


def percent(values: Sequence[float]) -> str:
    """Give the mean of figures in percent, with their sample standard deviation where there are several."""
    if not values:
        return ""
    mean = f"{100 * np.mean(values):.2f}"
    return f"{mean} ± {100 * np.std(values, ddof=1):.2f}" if len(values) > 1 else mean


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Give a table in markdown."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
