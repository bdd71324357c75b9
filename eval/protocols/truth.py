"""Queries and positives of a retrieval benchmark, in one form for all ground truths."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eval.protocols.google_landmarks import DEPTH, USAGES, RetrievalQuery, read_retrieval
from eval.protocols.revisited import Revisited, read_revisited
from index.errors import CairnError
from index.extensions import extensions
from index.text import shown
from learning.labels.ground_truth import GroundTruthQuery, read_ground_truth
from retrieval.metadata.pages import stem_of
from retrieval.photos.listing import list_photos

PLAIN = ""
"""Name of the only protocol of Oxford5K, Paris6K and sets in the same layout."""
REVISITED = ("easy", "medium", "hard")
"""Names of the protocols of Revisited."""
REFERENCE = "Reference"
"""The folder of the photos that are searched in Stanford Mobile Visual Search."""
CUTOFFS = (1, 5, 10)
"""The k of Revisited's mean precisions at k."""


@dataclass(frozen=True)
class QueryLabels:
    """Positives and ignored photos of a query, by stems."""

    positives: frozenset[str]
    junk: frozenset[str]


@dataclass(frozen=True)
class BenchmarkQuery:
    """One query."""

    name: str
    stem: str  # its photo
    box: tuple[float, float, float, float] | None  # x0, y0, x1, y1 in pixels of the photo; None: all of it
    labels: Mapping[str, QueryLabels]  # by protocol; only those with a positive

    @property
    def named(self) -> frozenset[str]:
        """All photos in the protocols, without its own."""
        return frozenset().union(*(one.positives | one.junk for one in self.labels.values()))


@dataclass(frozen=True)
class Truth:
    """A ground truth, with the queries that have a positive in any protocol."""

    queries: tuple[BenchmarkQuery, ...]  # those with a positive in any protocol
    protocols: tuple[str, ...] = (PLAIN,)  # names: `PLAIN` alone, `REVISITED`, or the parts of Google Landmarks
    cutoffs: tuple[int, ...] = ()  # the k of reported mean precisions at k
    database: frozenset[str] | None = None  # stems of the photos of the database; None: all
    # whether a query is a crop of the photo, rather than the photo's features in the box
    cropped: bool = False
    depth: int | None = None  # number of photos of a ranking that count, for `average_precision_at`
    folders: int = 0  # number of the folders above a photo that belong to its name

    @property
    def named(self) -> frozenset[str]:
        """All photos named by its queries."""
        return frozenset(query.stem for query in self.queries).union(*(query.named for query in self.queries))

    def name_of(self, photo: str | Path) -> str:
        """The name of a photo, by its path: its stem, with the folders that belong to its name."""
        path = Path(photo)
        return "/".join((*path.parts[-1 - self.folders : -1], stem_of(str(photo))))

    def of(self, queries: tuple[BenchmarkQuery, ...]) -> "Truth":
        """The ground truth restricted to some queries."""
        return replace(self, queries=queries)

    def called(self, names: Mapping[str, str]) -> "Truth":
        """The ground truth with some photos renamed."""

        def renamed(photos: frozenset[str]) -> frozenset[str]:
            return frozenset(names.get(photo, photo) for photo in photos)

        queries = []
        for query in self.queries:
            labels = {
                name: QueryLabels(renamed(one.positives), renamed(one.junk)) for name, one in query.labels.items()
            }
            for one in labels.values():
                if both := one.positives & one.junk:
                    raise CairnError(
                        f"The photo {shown(min(both))} is to be found by the query {shown(query.name)} and is its "
                        "junk: keep one of them."
                    )
            queries.append(replace(query, stem=names.get(query.stem, query.stem), labels=labels))
        database = renamed(self.database) if self.database is not None else None
        return replace(self, queries=tuple(queries), database=database)

    def answerable(self, photos: Set[str]) -> tuple["Truth", list[str]]:
        """Leave out queries without positives among the photos (stems); also return the names of these."""
        queries, left_out = [], []
        for query in self.queries:
            labels = {name: one for name, one in query.labels.items() if one.positives & photos}
            left_out += [f"{query.name}/{name}" if name else query.name for name in query.labels if name not in labels]
            if labels:
                queries.append(replace(query, labels=labels))
        if self.queries and not queries:
            wanted = min(frozenset().union(*(one.positives for one in self.queries[0].labels.values())))
            raise CairnError(
                f"No query can be scored: none of the photos that should be found, such as {shown(wanted)}, is among "
                "the images; give the photos of this ground truth."
            )
        return self.of(tuple(queries)), left_out


def read_truth(path: Path) -> Truth:
    """Read a ground truth: a folder in the layout of Oxford5K, a file ``gnd_*.pkl`` of Revisited,
    ``retrieval_solution_*.csv`` of Google Landmarks, the folders of Stanford Mobile Visual Search, or a format of an
    extension.
    """
    path = Path(path)
    truth = read_by_extension(path)
    if truth is not None:
        return truth
    if path.suffix.lower() == ".csv":
        return landmarks_truth(read_retrieval(path))
    if path.is_file():
        return revisited_truth(read_revisited(path))
    if categories := categories_of(path):
        return references_truth(categories)
    return plain_truth(read_ground_truth(path))


def read_by_extension(path: Path) -> Truth | None:
    """Read a ground truth in a format of an extension; None if no extension recognises it.

    The extension returns, for each query by name, ``photo`` (the name of its file without the extension), optionally
    ``box`` (x0, y0, x1, y1 in pixels), and the names of photos in ``good``, ``ok`` or ``junk``.
    """
    for extension in extensions("protocol"):
        protocol = extension.load()
        if protocol.recognises(path):
            return _truth_of(extension.name, protocol.read(path))
    return None


def _truth_of(name: str, queries: Mapping[str, Mapping[str, Any]]) -> Truth:
    benchmark_queries = []
    for query, entry in queries.items():
        positives, junk = (
            frozenset(str(photo) for key in keys for photo in entry.get(key, ()))
            for keys in (("good", "ok"), ("junk",))
        )
        box = entry.get("box")
        if "photo" not in entry or (box is not None and np.shape(box) != (4,)) or positives & junk:
            raise CairnError(
                f"What the protocol {name} says of the query {shown(query)} cannot be used: it needs a photo, its box "
                "is four numbers or left out, and no photo is both to be found and junk."
            )
        within = None if box is None else (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
        if positives:
            labels = {PLAIN: QueryLabels(positives, junk)}
            benchmark_queries.append(BenchmarkQuery(query, str(entry["photo"]), within, labels))
    return Truth(tuple(benchmark_queries))


def plain_truth(queries: list[GroundTruthQuery]) -> Truth:
    """Oxford5K's protocol: good and ok photos are positives."""
    return Truth(
        tuple(
            BenchmarkQuery(query.name, query.stem, query.box, {PLAIN: QueryLabels(query.positives, query.junk)})
            for query in queries
            if query.positives
        )
    )


def landmarks_truth(queries: list[RetrievalQuery]) -> Truth:
    """The public and the private part of Google Landmarks v2, the first 100 photos of a ranking."""
    benchmark_queries = [
        BenchmarkQuery(one.photo, one.photo, None, {one.usage: QueryLabels(one.positives, frozenset())})
        for one in queries
    ]
    there = {one.usage for one in queries}
    return Truth(tuple(benchmark_queries), tuple(usage for usage in USAGES if usage in there), depth=DEPTH)


def categories_of(folder: Path) -> list[Path]:
    """Categories of Stanford Mobile Visual Search: folders with a folder ``Reference``, or the folder itself."""
    return [folder] if (folder / REFERENCE).is_dir() else sorted(one.parent for one in folder.glob(f"*/{REFERENCE}/"))


def references_truth(categories: Sequence[Path]) -> Truth:
    """Stanford Mobile Visual Search: each photo in another folder of a category than ``Reference``, such as ``Droid``,
    searches the references of all categories for that with its name. The precision at one is reported too.
    """
    queries, database = [], set()
    for category in categories:
        names: dict[str, set[str]] = {}
        for _, path in list_photos([category]):
            if path.parent.parent == category:
                names.setdefault(path.parent.name, set()).add(path.stem)
        known = names.pop(REFERENCE, set())
        database |= {f"{category.name}/{REFERENCE}/{stem}" for stem in known}
        for folder, stem in sorted((folder, stem) for folder, stems in names.items() for stem in stems & known):
            name = f"{category.name}/{folder}/{stem}"
            right = QueryLabels(frozenset({f"{category.name}/{REFERENCE}/{stem}"}), frozenset())
            queries.append(BenchmarkQuery(name, name, None, {category.name: right}))
    kinds = tuple(category.name for category in categories)
    return Truth(tuple(queries), kinds, cutoffs=(1,), database=frozenset(database), folders=2)


def one_right_answer(truth: Truth, query_prefix: str, searched: str) -> Truth:
    """A part of Stanford Mobile Visual Search in one folder: photos of one camera are queries for those of another, by
    prefixes of names, with one photo for each building. Precision at one, the share of queries with a right first
    photo, is reported too.
    """
    queries = []
    for query in truth.queries:
        labels = {
            name: QueryLabels(*(frozenset(one for one in photos if one.startswith(searched)) for photos in both))
            for name, both in ((name, (of.positives, of.junk)) for name, of in query.labels.items())
        }
        if query.stem.startswith(query_prefix) and all(one.positives for one in labels.values()):
            queries.append(replace(query, labels=labels))
    if not queries:
        raise CairnError(f"No query of the ground truth is of a photo {query_prefix}… that is to find one {searched}….")
    database = frozenset().union(*(one.positives | one.junk for query in queries for one in query.labels.values()))
    return replace(truth, queries=tuple(queries), cutoffs=(1,), database=database)


def revisited_truth(revisited: Revisited) -> Truth:
    """The three protocols of Revisited (Radenović et al., CVPR 2018, section 3.3).

    Easy: hard photos are junk. Medium: easy and hard are positives. Hard: easy photos are junk.
    """
    queries = []
    known: dict[str, int] = {}
    for one in revisited.queries:
        labels = {
            "easy": QueryLabels(one.easy, one.junk | one.hard),
            "medium": QueryLabels(one.easy | one.hard, one.junk),
            "hard": QueryLabels(one.hard, one.junk | one.easy),
        }
        labels = {name: label for name, label in labels.items() if label.positives}
        number = known[one.stem] = known.get(one.stem, 0) + 1
        if labels:
            queries.append(BenchmarkQuery(f"{one.stem}{f' ({number})' * (number > 1)}", one.stem, one.box, labels))
    return Truth(tuple(queries), REVISITED, CUTOFFS, frozenset(revisited.database), cropped=True)
