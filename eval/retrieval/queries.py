"""Searches of a collection for the queries of a benchmark, by the protocols of its ground truth."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.protocols.scoring import QueryScore, score_ranking
from eval.protocols.truth import PLAIN, BenchmarkQuery, Truth
from eval.retrieval.asking import SearchTask, ask_all, cut_out
from eval.retrieval.kept import Answers, folder_name, key_of
from eval.retrieval.photos import BenchmarkPhotos, states_of, stems_of
from index.errors import CairnError
from index.progress import Progress
from index.similarity import SimilarityMatrix
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.layout import AUGMENTATION, GLOBAL
from retrieval.search.engines.contract import settle
from retrieval.search.engines.registry import VerifiedPhotos, find_engine
from retrieval.search.options import SearchOptions

_NONE: NDArray[np.uint32] = np.zeros(0, np.uint32)


class QueryRun:
    """The queries of a benchmark in a collection. `single_ranking`: one ranking is scored by all protocols; otherwise,
    with verification or query expansion, each protocol has its own search without its junk.
    """

    def __init__(
        self,
        collection: Collection,
        photos: BenchmarkPhotos,
        truth: Truth,
        search: SearchOptions,
        single_ranking: bool = False,
    ) -> None:
        self._collection, self._search = collection, search
        self._cuts: dict[str, Path] = {}
        self.rows = collection.catalogue.read(all_indexed)
        distractors = {str(path) for path in photos.distractor_files}
        self.distractors = sum(row.path in distractors for row in self.rows)
        self._names = stems_of(self.rows, truth.named | (truth.database or frozenset()), distractors, truth.name_of)
        self._numbers = {name: number for number, name in self._names.items()}
        self._paths = {truth.name_of(row.path): Path(row.path) for row in self.rows if row.path not in distractors}
        self._paths.update(photos.queries)
        listed = (truth.database or frozenset()).union(*(query.named for query in truth.queries))
        self.missing = sorted(listed - set(self._names.values()))
        self._truth, self.left_out = truth.answerable(self._numbers.keys())
        self.engine = settle(search, collection).engine
        # Verification and query expansion depend on the rest of the database.
        depends = find_engine(self.engine).verified is VerifiedPhotos.BEST or search.expand != "none"
        self._apart = depends and not single_ranking and truth.protocols != (PLAIN,)
        self.jobs = {
            self._job(query, protocol): (query, protocol) for query in self._truth.queries for protocol in query.labels
        }

    def _job(self, query: BenchmarkQuery, protocol: str) -> str:
        return f"{query.name}/{protocol}" if self._apart else query.name

    @property
    def key(self) -> str:
        """Key of the answers, by options, queries and photos."""
        search = asdict(self._search)
        if self._search.similarity is not None:
            search["similarity"] = SimilarityMatrix.load(self._search.similarity).describe()
        queries = [(query.name, query.box, *self._junk_of(query)) for query in self._truth.queries]
        files = [self._path(query) for query in self._truth.queries]
        folder = self._collection.folder
        borrowed = sorted([*(folder / AUGMENTATION).rglob("*"), *folder.glob(GLOBAL)])
        return key_of(
            {
                "content": self._collection.content.key,
                "numbers": sorted(self._names),
                "options": {**asdict(self._collection.options), "descriptor": ""},
                "features": self._collection.features_fingerprint,
                "search": {**search, "engine": self.engine},
                "queries": queries,
                "files": states_of(files),
                "borrowed": states_of(borrowed),
                "cropped": self._truth.cropped,
            }
        )

    def _junk_of(self, query: BenchmarkQuery) -> list[list[str]]:
        return [sorted(labels.junk) for labels in query.labels.values()] if self._apart else []

    def _path(self, query: BenchmarkQuery) -> Path:
        if query.stem not in self._paths:
            raise no_photo_of(query)
        return self._paths[query.stem]

    def ask(self, answers: Answers, scratch: Path, workers: int, progress: Progress) -> None:
        """Search for queries without answers, and store the answers."""
        todo = [self._prepared(job, scratch) for job in self.jobs if job not in answers]
        done = len(self.jobs) - len(todo)
        progress("queries", done, len(self.jobs))
        for answered in ask_all(self._collection, self._search, todo, workers):
            answers.add(answered)
            done += 1
            progress("queries", done, len(self.jobs))

    def _prepared(self, job: str, scratch: Path) -> SearchTask:
        query, protocol = self.jobs[job]
        path, box = self._path(query), query.box
        without = _NONE
        if self._apart:
            junk = query.labels[protocol].junk & self._numbers.keys()
            without = np.array(sorted(self._numbers[name] for name in junk), np.uint32)
        if not self._truth.cropped or box is None:
            return SearchTask(job, path, box, without)
        if query.name not in self._cuts:  # again in each run: the photo may have changed
            # The folder is hidden: a work folder may lie in one of photos.
            cut = scratch / ".cuts" / f"{folder_name(query.stem)}-{key_of({'query': query.name})[:8]}.png"
            cut.parent.mkdir(exist_ok=True)
            assert box is not None  # of Revisited: all queries have a box
            cut_out(path, box, cut)
            self._cuts[query.name] = cut
        return SearchTask(job, self._cuts[query.name], None, without)

    def scores(self, answers: Answers) -> dict[str, list[QueryScore]]:
        """Score the answers by each protocol."""
        scores: dict[str, list[QueryScore]] = {protocol: [] for protocol in self._truth.protocols}
        for query in self._truth.queries:
            for protocol in query.labels:
                numbers, seconds = answers.read(self._job(query, protocol))
                ranking = [self._names[number] for number in numbers.tolist()]
                scores[protocol].append(score_ranking(query, protocol, ranking, seconds, self._truth))
        return {protocol: rows for protocol, rows in scores.items() if rows}


def no_photo_of(query: BenchmarkQuery) -> CairnError:
    """The error of a query without a photo."""
    return CairnError(
        f"The photo {query.stem!r} of the query {query.name!r} is neither among the images nor the queries."
    )
