"""Tables of retrieval figures: many sets, descriptors, vocabularies, seeds and engines, each measured once. Figures are
those of `eval.benchmark.run_benchmark`; features, vocabularies, collections and views are shared. Each measurement is
an incremental JSON file, so that a run can be resumed; it records the code version, and results of other versions are
kept and marked.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from eval.retrieval.kept import code_fingerprint
from eval.retrieval.photos import named_photos, ranking_of, stems_of
from eval.tables.asking import SharedQuery
from eval.tables.sets import PhotoSet, RetrievalSet
from eval.tables.staged import link_features, stage_photos
from index.arrays import fingerprint, load_json, save_json
from index.errors import CairnError
from index.parallel import run
from index.progress import Progress, silent
from index.segments.description import segment_bytes
from learning.labels.ground_truth import GroundTruthQuery, missing_photos
from learning.measures.precision import average_precision, mean_average_precision
from retrieval.catalogue.photos import all_indexed, counts_of_photos
from retrieval.catalogue.segment_rows import segments_in
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.extraction import Extractor
from retrieval.library.opening import make
from retrieval.search.answers import ask_with_file
from retrieval.search.engines.contract import load_engine
from retrieval.search.engines.registry import VerifiedPhotos, find_engine
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher

_TOGETHER = 256  # searches after which results are written


@dataclass(frozen=True)
class Measurement:
    """One measurement: a set, a search method, and a vocabulary trained on its own photos or another set's."""

    photos: RetrievalSet
    origin: PhotoSet  # set for training the vocabulary
    options: CollectionOptions  # descriptor, regions, signature, seed
    engine: str
    turns: int = 8
    expand: str = "none"
    files: bool = False  # use query files from outside the collection, rather than its own photos
    names: frozenset[str] | None = None  # names of the queries; None: all

    @cached_property
    def asked(self) -> list[str]:
        """Names of the queries, in the order of the set."""
        every = [query.name for query in self.photos.asked]
        return every if self.names is None else [name for name in every if name in self.names]

    @property
    def own(self) -> bool:
        """Whether the vocabulary is the set's own, rather than an independent one."""
        return self.origin == self.photos

    @cached_property
    def extractor(self) -> Extractor:
        """The extractor of features."""
        return Extractor(find_descriptor(self.options.descriptor), self.options.features)

    @cached_property
    def plain(self) -> CollectionOptions:
        """Options of a collection for most engines."""
        return replace(self.options, keep_descriptors=False)

    @cached_property
    def prepared(self) -> CollectionOptions:
        """Options of a collection for this engine, which may need more than `plain`."""
        return load_engine(self.engine).prepared(self.plain)

    @property
    def search(self) -> SearchOptions:
        """Options of the search."""
        return SearchOptions(engine=self.engine, turns=self.turns, expand=self.expand)

    @cached_property
    def settings(self) -> str:
        """Fingerprint of all options except the seed, with the descriptor by content instead of name; and the seed."""
        options = asdict(replace(self.plain, descriptor="", seed=0))
        return f"{fingerprint({}, {'extractor': self.extractor.fingerprint, **options})[:12]}-{self.options.seed}"

    def file(self, work: Path) -> Path:
        """File of its scores."""
        way = f"{self.engine}-{self.expand}-{self.turns}{'-files' if self.files else ''}"
        return work / "results" / self.settings / f"{self.photos.key}-by-{self.origin.key}-{way}.json"

    def describe(self) -> str:
        """Description for people."""
        words = "own" if self.own else f"{self.origin.name}'s"
        options = self.options
        scale = "" if options.features.measurement_scale is None else f" x{options.features.measurement_scale:.4g}"
        what = f"{Path(options.descriptor).name}, {options.features.regions.detector}{scale}"
        return f"{self.photos.name}, {what}, {words} words, seed {options.seed}, {self.engine}"


@dataclass
class MeasurementResult:
    """Results of a cell so far."""

    scores: dict[str, float] = field(default_factory=dict)  # average precision by the query's name
    cpu: dict[str, float] = field(default_factory=dict)  # seconds of processor time by the query's name
    about: dict[str, Any] = field(default_factory=dict)  # description of the measurement

    @property
    def mean(self) -> float:
        """Mean average precision, as in `run_benchmark`."""
        return mean_average_precision(list(self.scores.values()))

    @property
    def seconds(self) -> float:
        """Median processor time of a query, seconds."""
        return float(np.median(list(self.cpu.values())))

    def is_of(self, cell: Measurement) -> bool:
        """Whether it covers the whole cell."""
        return set(cell.asked) <= self.scores.keys()

    @property
    def is_stale(self) -> bool:
        """Whether it was measured by another version of the code."""
        return bool(self.scores) and self.about.get("code") != code_fingerprint()

    def by_object(self) -> dict[str, list[float]]:
        """Scores of the queries of each object (see `object_of`), by name."""
        groups = defaultdict(list)
        for name, score in sorted(self.scores.items()):
            groups[object_of(name)].append(score)
        return dict(groups)


def object_of(query: str) -> str:
    """Name of a query's object: that of the query without its number; places (``g_…``) count as one."""
    return "g_…" if query.startswith("g_") else re.sub(r"_\d+$", "", query)


def measure(
    cells: Sequence[Measurement], work: Path, *, workers: int = 1, again: bool = False, progress: Progress = silent
) -> list[MeasurementResult]:
    """Measure missing results, and those of other code if `again`; return all results in the order of the cells."""
    code_fingerprint()  # fingerprint at the start: the code may change during a long run
    todo = []
    for cell in cells:
        result = read_result(cell, work)
        if result.is_stale and (again or not result.is_of(cell)):
            cell.file(work).unlink()  # one cell has one code version
            todo.append(cell)
        elif not result.is_of(cell):
            todo.append(cell)
    # Cells of one collection share the views of each query; an engine that needs more has its own collection.
    groups: dict[tuple[str, str, str, bool, CollectionOptions], list[Measurement]] = defaultdict(list)
    for cell in todo:
        groups[cell.settings, cell.photos.key, cell.origin.key, cell.files, cell.prepared].append(cell)
    meter = _Meter(sum(len(_missing(cell, work)) for cell in todo), progress)
    for group in groups.values():
        cell = group[0]
        for photos, folder in ((cell.origin, origin_folder(cell, work)), (cell.photos, searched_folder(cell, work))):
            if not folder.is_dir():
                _stage(photos, todo, cell, work, workers, progress)
        _measure(group, work, workers, progress, meter)
    return [read_result(cell, work) for cell in cells]


def read_result(cell: Measurement, work: Path) -> MeasurementResult:
    """Read the results of a cell, which may be empty."""
    file = cell.file(work)
    if not file.is_file():
        return MeasurementResult()
    contents = load_json(file)
    return MeasurementResult(contents.pop("scores"), contents.pop("cpu_s"), contents)


def _missing(cell: Measurement, work: Path) -> set[str]:
    """Names of the queries without a score."""
    return set(cell.asked) - read_result(cell, work).scores.keys()


class _Meter:
    def __init__(self, total: int, tell: Progress) -> None:
        self._done, self._total, self._tell = 0, total, tell

    def add(self, count: int) -> None:
        self._done += count
        self._tell("queries", self._done, self._total)


def _stage(
    photos: PhotoSet, cells: Sequence[Measurement], first: Measurement, work: Path, workers: int, tell: Progress
) -> None:
    """Describe the photos of a set by all descriptors of its cells, which share the regions."""
    wanted = {first.extractor.fingerprint: first.extractor}
    for cell in cells:
        if photos in (cell.photos, cell.origin) and cell.options.image == first.options.image:
            wanted.setdefault(cell.extractor.fingerprint, cell.extractor)
    for done, total in stage_photos(work, photos, list(wanted.values()), first.options.image, workers):
        tell("extract", done, total)


def _measure(cells: Sequence[Measurement], work: Path, workers: int, tell: Progress, meter: _Meter) -> None:
    """Measure cells that differ only in the search method."""
    cell = cells[0]
    folder = collect(cell, work, workers, tell)
    about = _about(folder, cell)
    results = [read_result(one, work) for one in cells]
    missing = [_missing(one, work) for one in cells]
    jobs = []
    for query, path in cell.photos.pairs():
        ways = [place for place, names in enumerate(missing) if query.name in names]
        if ways:
            jobs.append((query, path, ways))
    for scores in _score_all(folder, cells, jobs, workers):
        for place, name, score, seconds in scores:
            results[place].scores[name], results[place].cpu[name] = score, seconds
        for place in {place for place, *_ in scores}:
            _write(cells[place], results[place], about, work)
        meter.add(len(scores))


def _write(cell: Measurement, result: MeasurementResult, about: dict[str, Any], work: Path) -> None:
    """Write the results of a cell so far, with queries in the order of the set."""
    names = [query.name for query in cell.photos.asked if query.name in result.scores]
    result.scores = {name: result.scores[name] for name in names}
    result.cpu = {name: result.cpu[name] for name in names}
    way = {"engine": cell.engine, "expand": cell.expand, "turns": cell.turns, "files": cell.files}
    whole = {"mAP": result.mean, "median_cpu_s": result.seconds} if result.is_of(cell) else {}
    size = round(sum(about["bytes"][part] for part in searched_parts(cell) if part in about["bytes"]), 2)
    result.about = {**about, **way, "bytes_a_feature": size, **whole}
    file = cell.file(work)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_json(file, {**result.about, "scores": result.scores, "cpu_s": result.cpu})


def searched_parts(cell: Measurement) -> list[str]:
    """Parts of a segment read by a cell's searches, as named by `segment_bytes`."""
    entry = find_engine(cell.engine)
    verifies = entry.verified is not VerifiedPhotos.NONE or cell.expand != "none"  # expansion needs verification
    parts = ["images", "words", "postings"]
    parts += ["geometry"] * verifies + ["signatures"] * entry.signed
    return parts + ["descriptor"] * load_engine(cell.engine).needs_descriptors


def origin_folder(cell: Measurement, work: Path) -> Path:
    """Folder of the collection with a cell's vocabulary."""
    return work / "collections" / cell.settings / f"{cell.origin.key}.cairn"


def searched_folder(cell: Measurement, work: Path) -> Path:
    """Folder of the collection searched by a cell, if possible that of its vocabulary."""
    if cell.own and cell.prepared == cell.plain:
        return origin_folder(cell, work)
    more = f"-{cell.engine}" if cell.prepared != cell.plain else ""
    return work / "collections" / cell.settings / f"{cell.photos.key}-by-{cell.origin.key}{more}.cairn"


def collect(cell: Measurement, work: Path, workers: int, tell: Progress) -> Path:
    """Index the photos of a cell, and those of its vocabulary, of staged features, unless done; return the folder."""
    own, final = origin_folder(cell, work), searched_folder(cell, work)
    _index(own, cell.origin, cell, cell.plain, work, workers, tell)
    if final != own:
        _index(final, cell.photos, cell, cell.prepared, work, workers, tell, own)
    return final


def _index(
    final: Path,
    photos: PhotoSet,
    cell: Measurement,
    options: CollectionOptions,
    work: Path,
    workers: int,
    tell: Progress,
    vocabulary: Path | None = None,
) -> None:
    if final.is_dir():
        return
    # In another folder, under the same name (recorded in vocabularies), until complete.
    making = work / "collections" / "unfinished" / cell.settings / final.name
    making.parent.mkdir(parents=True, exist_ok=True)
    final.parent.mkdir(parents=True, exist_ok=True)
    with make(making, options) as collection:
        link_features(work, photos, cell.extractor, cell.options.image, collection.opened)
        if not collection.add(photos.folders, vocabulary=vocabulary, workers=workers, progress=tell).images:
            raise CairnError(f"None of the photos of {photos.name} can be indexed.")
    making.rename(final)


def _about(folder: Path, cell: Measurement) -> dict[str, Any]:
    """Describe a measurement, without the search method."""
    with Collection.open(folder) as collection:
        stems = stems_of(collection.catalogue.read(all_indexed), named_photos(cell.photos.asked))
        vocabulary = collection.vocabulary
        sizes: dict[str, int] = defaultdict(int)
        for row in collection.catalogue.read(segments_in):
            for part, size in segment_bytes(folder / SEGMENTS / row.folder).items():
                sizes[part] += size
        features = max(collection.catalogue.read(counts_of_photos)["features"], 1)
        return {
            "code": code_fingerprint(),
            "set": cell.photos.name,
            "descriptor": collection.extractor.descriptor.name,
            "dim": collection.extractor.descriptor.dim,
            "features": asdict(cell.options.features),
            "signature": collection.options.signature,
            "seed": cell.options.seed,
            "vocabulary": {
                "from": cell.origin.name,
                "words": vocabulary.words,
                "trained_on": vocabulary.trained_on,
                "recall_at_1": vocabulary.recall_at_1,
            },
            "images": len(stems),
            "missing": missing_photos(cell.photos.asked, stems.values()),
            "bytes": {part: size / features for part, size in sizes.items()},
        }


Job = tuple[GroundTruthQuery, Path, list[int]]
"""A query, its photo, and the indices of its cells."""
Scores = list[tuple[int, str, float, float]]
"""Index of a cell, a query's name, its average precision, and the processor seconds."""


def _score_all(folder: Path, cells: Sequence[Measurement], jobs: Sequence[Job], workers: int) -> Iterator[Scores]:
    """Score queries on several processes, a few at a time, in any order."""
    # Opening a collection takes a tenth of a second, and a query of an engine that verifies all photos a minute.
    slow = any(find_engine(cell.engine).verified is VerifiedPhotos.ALL for cell in cells)
    size = 2 if slow else max(1, min(-(-_TOGETHER // len(cells)), len(jobs) // (4 * workers)))
    chunks = (partial(_score, folder, cells, jobs[start : start + size]) for start in range(0, len(jobs), size))
    yield from run(chunks, workers, ordered=False)


def _score(folder: Path, cells: Sequence[Measurement], jobs: Sequence[Job]) -> Scores:
    """Search for queries with the methods of cells of one collection, and score like `run_benchmark`."""
    scores: Scores = []
    with Collection.open(folder) as collection:
        stems = stems_of(collection.catalogue.read(all_indexed), named_photos(cells[0].photos.asked))
        searchers = [Searcher(collection, cell.search) for cell in cells]
        for query, path, ways in jobs:
            image = ask_with_file(collection, query.stem, path, query.box)
            if cells[0].files:
                image = replace(image, row=None)
            shared: dict[tuple[int, bool], SharedQuery] = {}  # by the data of a query that a search needs
            for place in ways:
                searcher = searchers[place]
                needs = searcher.options.signed, searcher.engine.needs_descriptors
                if needs not in shared:
                    shared[needs] = SharedQuery(searcher, image)
                answer, seconds = shared[needs].search(searcher)
                score = average_precision(ranking_of(answer, stems), query.positives, query.junk)
                scores.append((place, query.name, score, round(seconds, 5)))
    return scores


def percent(values: Sequence[float]) -> str:
    """Return the mean of figures in percent, with the sample standard deviation if there are several."""
    if not values:
        return ""
    mean = f"{100 * np.mean(values):.2f}"
    return f"{mean} ± {100 * np.std(values, ddof=1):.2f}" if len(values) > 1 else mean


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in markdown."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
