"""Runs the queries of the panel, and stores their results, and the views of each query, which cost most and depend on
no option of search.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eval.panel.parts import PanelPart, PanelQuery
from eval.retrieval.kept import code_fingerprint
from eval.retrieval.photos import ranking_of, stems_of
from eval.tables.retrieval import Measurement, collect
from eval.tables.staged import stage_photos
from index.archive import open_archive
from index.arrays import fingerprint, load_json, reading, save_arrays, save_json
from index.errors import CairnError
from index.hamming.kinds import DEFAULT as SIGNATURE
from index.hamming.voting import SignedFeatures
from index.parallel import run
from index.progress import Progress, silent
from learning.measures.precision import average_precision
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.regions.geometry import Frames
from retrieval.search.answers import ask_with_file, make_query
from retrieval.search.options import SearchOptions
from retrieval.search.probability import contrast
from retrieval.search.query import Query
from retrieval.search.searcher import Searcher
from retrieval.search.views import PlacedViews, View

_TOGETHER = 8  # queries per process at a time
_SIGNED = "signatures-sp"  # collections and views have the data for this engine, and so for any but raw
_WEIGHED = 200  # photos of an answer to record
_TOLD = 0.05  # least probability of recorded photos


_WARM: set[str] = set()  # parts searched by this process


@dataclass(frozen=True)
class QueryOutcome:
    """Result of one query."""

    kind: str
    scene: str
    score: float  # average precision
    positives: int  # number of positives
    photos: list[tuple[float, int, bool]]  # probability, inliers, right: of photos that are not junk, best first
    weighed: list[
        tuple[float | None, float, bool]
    ]  # log odds by geometry (None: no map), contrast, right: more of them
    turned: bool  # whether it was turned
    seconds: float  # processor time that the query would take alone


ViewRows = dict[str, NDArray[Any]]
"""Columns of the features of some views, and a row for each view: see `_rows_of`."""


class KeptViews(PlacedViews):
    """The views of a query stored by `save_views`, read on first use. `full`: returns the row of the view at a turn
    described fully; `seconds`: processor time of making the views used.
    """

    def __init__(self, rows: ViewRows, turns: int, full: Callable[[float], ViewRows]) -> None:
        self._rows = rows
        self._full = full
        step, rest = divmod(len(rows["turns"]), turns)
        if rest:
            raise CairnError(
                f"The panel keeps {len(rows['turns'])} turns of a query: choose a part of them, not {turns}."
            )
        self._places = range(0, len(rows["turns"]), step)
        self._made: dict[int, View] = {}
        self.seconds = 0.0

    def __len__(self) -> int:
        return len(self._places)

    def made(self, place: int) -> View:
        """As `PlacedViews.made`."""
        if place not in self._made:
            self._made[place] = self._read(self._rows, self._places[place])
        return self._made[place]

    def complete(self, place: int) -> bool:
        """As `PlacedViews.complete`."""
        start = time.process_time()
        rows = self._full(float(self._rows["turns"][self._places[place]]))
        self.seconds -= time.process_time() - start  # a query would have its photo at hand
        self._made[place] = self._read(rows, 0)
        return True

    def _read(self, rows: ViewRows, which: int) -> View:
        ends = np.cumsum(rows["counts"])
        some = slice(int(ends[which] - rows["counts"][which]), int(ends[which]))
        words = rows["words"][some]
        signed = rows["signed_words"][some], rows["signatures"][some]
        known = signed[0][0] != -2 if len(words) else np.zeros(1, bool)
        self.seconds += float(rows["seconds"][which])
        return View(
            float(rows["turns"][which]),
            Frames(rows["centres"][some], rows["linear"][some]),
            np.zeros((len(words), 0), np.float16),
            words,
            words,
            None,
            SignedFeatures(signed[0][:, known], signed[1][:, known]),
            elongation=float(rows["elongation"]),
        )


def save_views(path: Path, query: Query, nearest: int, upright: float) -> None:
    """Make and store all views of a query, and the processor seconds of each: `upright` for the first."""
    seconds, views = [upright], [query.views[0]]
    for place in range(1, len(query.views)):
        start = time.process_time()
        views.append(query.views[place])
        seconds.append(time.process_time() - start)
    save_arrays(path, _rows_of(views, nearest, seconds) | {"region": query.region})


def _rows_of(views: Sequence[View], nearest: int, seconds: Sequence[float]) -> ViewRows:
    """The features of some views in columns, one after another."""
    columns: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("centres", "linear", "words", "signed_words", "signatures")
    }
    counts, turns = [], []
    for view in views:
        assert view.signed is not None
        missing = nearest - view.signed.words.shape[1]  # rotated views have one word a feature
        counts.append(len(view.words))
        turns.append(view.turn)
        columns["centres"].append(view.frames.centres)
        columns["linear"].append(view.frames.linear)
        columns["words"].append(view.words)
        columns["signed_words"].append(np.pad(view.signed.words, ((0, 0), (0, missing)), constant_values=-2))
        columns["signatures"].append(np.pad(view.signed.signatures, ((0, 0), (0, missing), (0, 0))))
    rows: dict[str, Any] = {name: np.concatenate(parts) for name, parts in columns.items()}
    rows |= {"seconds": np.array(seconds), "counts": np.array(counts), "turns": np.array(turns)}
    return rows | {"elongation": np.array(views[0].elongation)}


def prepare(part: PanelPart, work: Path, options: CollectionOptions, workers: int, tell: Progress) -> tuple[Path, Path]:
    """Index the photos of a part and describe its queries, unless already done; return the folders of the collection
    and the views.
    """
    cell = Measurement(part.photos, part.photos, options, _SIGNED)
    for done, total in stage_photos(work, part.photos, [cell.extractor], options.image, workers):
        tell("extract", done, total)
    folder = collect(cell, work, workers, tell)
    views = work / "views" / cell.settings / part.photos.key
    views.mkdir(parents=True, exist_ok=True)
    missing = [query for query in part.queries if not (views / f"{query.name}.npz").exists()]
    chunks = [missing[start : start + _TOGETHER] for start in range(0, len(missing), _TOGETHER)]
    jobs = [partial(_describe, folder, views, chunk) for chunk in chunks]
    for done, _ in enumerate(run(jobs, workers, ordered=False), start=1):
        tell("describe", min(done * _TOGETHER, len(missing)), len(missing))
    return folder, views


def _describe(folder: Path, views: Path, queries: Sequence[PanelQuery]) -> None:
    with Collection.open(folder) as collection:
        searcher = Searcher(collection, SearchOptions(engine=_SIGNED))
        for query in queries:
            with _file_of(query, views) as path:
                start = time.process_time()
                query_views = make_query(searcher, ask_with_file(collection, query.name, path, query.box))
                upright = time.process_time() - start
                save_views(views / f"{query.name}.npz", query_views, searcher.options.voting.nearest, upright)


@contextmanager
def _file_of(query: PanelQuery, folder: Path) -> Iterator[Path]:
    """The file of a query's photo, turned if the query is."""
    if not query.turn:
        yield query.path
        return
    path = folder / f"{query.name}.png"
    with Image.open(query.path) as photo:
        photo.convert("RGB").rotate(query.turn, expand=True).save(path)
    yield path
    path.unlink()


def _full_view(searcher: Searcher, folder: Path, query: PanelQuery, turn: float) -> ViewRows:
    """The view of a query at a turn, described fully; stored on first use."""
    path = folder / f"{query.name}-{round(np.degrees(turn))}.npz"
    if not path.exists():
        with _file_of(query, folder) as photo:
            made = make_query(searcher, ask_with_file(searcher.collection, query.name, photo, query.box)).views
            place = next(one for one in range(len(made)) if np.isclose(made[one].turn, turn))
            assert isinstance(made, PlacedViews)
            made.made(len(made) - 1)  # the photo is read for other turns anyway: that is not counted
            start = time.process_time()
            made.complete(place)
            seconds = time.process_time() - start
        save_arrays(path, _rows_of([made[place]], searcher.options.voting.nearest, [seconds]))
    return _read_rows(path)


def _read_rows(path: Path) -> ViewRows:
    with reading(path, "views of a query", "describing them again"), open_archive(path) as archive:
        return archive.arrays()


def measure(
    parts: Sequence[PanelPart],
    work: Path,
    search: SearchOptions,
    *,
    collection: CollectionOptions | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> dict[str, QueryOutcome]:
    """Run all queries of the panel, and store their results by part and query; a stopped run can be resumed."""
    options = collection or CollectionOptions(signature=SIGNATURE)
    settings = {"search": asdict(search), "collection": asdict(options), "code": code_fingerprint()}
    key = fingerprint({}, settings)[:16]
    outcomes: dict[str, QueryOutcome] = {}
    for part in parts:
        folder, views = prepare(part, work, options, workers, progress)
        file = work / "found" / f"{key}-{part.photos.key}.json"
        known = load_found(file) if file.is_file() else {}
        missing = [query for query in part.queries if f"{part.photos.name}/{query.name}" not in known]
        chunks = [missing[start : start + _TOGETHER] for start in range(0, len(missing), _TOGETHER)]
        jobs = [partial(_ask, folder, views, part.photos.name, chunk, search) for chunk in chunks]
        for some in run(jobs, workers, ordered=False):
            known |= some
            save_found(file, known)
            progress("queries", len(known), len(part.queries))
        wanted = (f"{part.photos.name}/{query.name}" for query in part.queries)
        outcomes |= {name: known[name] for name in wanted}
    return outcomes


def _ask(
    folder: Path, views: Path, name: str, queries: Sequence[PanelQuery], search: SearchOptions
) -> dict[str, QueryOutcome]:
    with Collection.open(folder) as collection:
        searcher = Searcher(collection, search)
        labelled = {stem for query in queries for stem in (*query.positives, *query.junk)}
        stems = stems_of(collection.catalogue.read(all_indexed), labelled)
        if name not in _WARM:  # warm up: loading is not charged to any query
            _WARM.add(name)
            _ask_one(searcher, stems, views, queries[0])
        return {f"{name}/{query.name}": _ask_one(searcher, stems, views, query) for query in queries}


def _ask_one(searcher: Searcher, stems: dict[int, str], folder: Path, query: PanelQuery) -> QueryOutcome:
    rows = _read_rows(folder / f"{query.name}.npz")
    views = KeptViews(rows, searcher.options.turns, partial(_full_view, searcher, folder, query))
    start = time.process_time()
    answer = searcher.search(views, region=rows["region"])
    seconds = time.process_time() - start + views.seconds
    photos, weighed = [], []
    for hit in answer.hits[:_WEIGHED]:
        if hit.score <= 0 or stems[hit.number] in query.junk:
            continue
        right, odds = stems[hit.number] in query.positives, hit.verification.log_odds
        stands_out = round(contrast(hit.score, answer.hits.ground), 3)
        weighed.append((round(odds, 3) if np.isfinite(odds) else None, stands_out, right))
        if hit.probability >= _TOLD:
            photos.append((hit.probability, hit.verification.inliers, right))
    score = average_precision(ranking_of(answer, stems), query.positives, query.junk)
    return QueryOutcome(
        query.kind, query.scene, score, len(query.positives), photos, weighed, answer.turned, round(seconds, 4)
    )


def save_found(path: Path, outcomes: dict[str, QueryOutcome]) -> None:
    """Write results of queries as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_json(path, {name: asdict(one) for name, one in outcomes.items()})


def load_found(path: Path) -> dict[str, QueryOutcome]:
    """Read results written by `save_found`."""
    contents = load_json(path)
    return {
        name: QueryOutcome(
            **{**one, "photos": list(map(tuple, one["photos"])), "weighed": list(map(tuple, one["weighed"]))}
        )
        for name, one in contents.items()
    }
