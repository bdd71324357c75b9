"""Sets of photos with queries and answers, for tables."""

import csv
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from index.arrays import fingerprint, hash_file
from index.errors import CairnError
from learning.labels.ground_truth import GroundTruthQuery, read_ground_truth
from retrieval.photos.listing import list_photos
from retrieval.search.query import shrunk_box

T = TypeVar("T")

HARD = "hard"
"""Name of a set composed of others: see `find_set`."""
_DISTRACTORS = ("paintings/images", "matching")  # folders of the database of `HARD`
SOLID = "solid"
"""Name of the set of statues and other solid objects, seen from all sides: see `find_set`."""
_SOLID_KINDS = ("olsson", "monument", "turtle", "front", "fox")  # of the groups of unlabelled photos
_SAME = {"front:front": "turtle:turtle"}  # groups that show the same as others
_ASKED_OF_A_GROUP = 5  # most query photos of a group
_WHOLE = (0.0, 0.0, 1e6, 1e6)  # a box around any photo: it is clipped to it


@dataclass(frozen=True)
class PhotoSet:
    """A set of photos, for training a vocabulary."""

    name: str
    folders: tuple[Path, ...]  # of the photos

    @cached_property
    def photos(self) -> dict[Path, str]:
        """SHA-256 of each photo's content."""
        return {path: _sha256(path) for _, path in list_photos(self.folders)}

    @cached_property
    def key(self) -> str:
        """The name and a fingerprint of the content, so that stored results of sets are not confused."""
        return f"{self.name}-{fingerprint({}, self._content())[:8]}"

    def _content(self) -> dict[str, object]:
        """Everything that a measurement could depend on."""
        listing = list_photos(self.folders)
        return {"photos": sorted((path.relative_to(root).as_posix(), self.photos[path]) for root, path in listing)}


@dataclass(frozen=True)
class RetrievalSet(PhotoSet):
    """A set of photos with queries and their answers, in the layout of Oxford5K, without queries without positives."""

    ground_truth: Path
    queries: Path | None = None  # folder of query photos outside the images
    box: float = 1.0  # size of the query relative to its box, in width and height, about its centre

    @staticmethod
    def find(folder: Path) -> "RetrievalSet":
        """Find a set by the folder that holds ``images``, ``gt`` and, in some, ``queries``; CairnError without them."""
        for part in ("images", "gt"):
            if not (folder / part).is_dir():
                raise CairnError(f"{folder} is no retrieval set: it has no folder {part!r}.")
        queries = folder / "queries"
        return RetrievalSet(folder.name, (folder / "images",), folder / "gt", queries if queries.is_dir() else None)

    @property
    def images(self) -> Path:
        """Folder of the photos of the ground truth."""
        return self.folders[0]

    @cached_property
    def asked(self) -> list[GroundTruthQuery]:
        """The queries with positives; raises CairnError if there are no such queries."""
        queries = [shrunk(query, self.box) for query in read_ground_truth(self.ground_truth) if query.positives]
        if not queries:
            raise CairnError(f"No query of {self.ground_truth} has a positive.")
        return queries

    @cached_property
    def query_files(self) -> list[Path]:
        """The photo of each query; raises CairnError if one is in neither folder."""
        paths: dict[str, Path] = {}
        for folder in (self.images, self.queries):
            for _, path in list_photos([folder] if folder is not None else []):
                paths.setdefault(path.stem, path)
        lost = [query for query in self.asked if query.stem not in paths]
        if lost:
            raise CairnError(
                f"The photo {lost[0].stem!r} of the query {lost[0].name!r} is neither among the images nor the queries."
            )
        return [paths[query.stem] for query in self.asked]

    def pairs(self) -> Iterator[tuple[GroundTruthQuery, Path]]:
        """Each query and its photo."""
        return zip(self.asked, self.query_files, strict=True)

    def _content(self) -> dict[str, object]:
        queries = [[_sha256(path), query.name, query.stem, query.box] for query, path in self.pairs()]
        answers = [[sorted(query.good), sorted(query.ok), sorted(query.junk)] for query in self.asked]
        return {**super()._content(), "queries": queries, "answers": answers}


@dataclass(frozen=True)
class GroupedSet(RetrievalSet):
    """A set whose answers are groups of photos, in a table of tab-separated columns folder, file and group.

    `ground_truth` is the table. Queries are whole photos, spread over each group; positives are the others of the
    group.
    """

    kinds: tuple[str, ...] = ()  # prefixes, up to a colon, of the names of groups with queries; empty: all

    @cached_property
    def asked(self) -> list[GroundTruthQuery]:
        """A few photos of each group of at least two; raises CairnError if there are no such groups."""
        groups: dict[str, list[str]] = defaultdict(list)
        for name, stems in read_groups(self.ground_truth, self.images.name).items():
            if not self.kinds or name.split(":")[0] in self.kinds:
                groups[_SAME.get(name, name)] += stems
        queries = []
        for name, stems in sorted(groups.items()):
            others = sorted(stems)
            for number, own in enumerate(spread(others) if len(stems) > 1 else []):
                positives = frozenset(others) - {own}
                queries.append(
                    GroundTruthQuery(f"{name}_{number + 1}", own, _WHOLE, positives, frozenset(), frozenset([own]))
                )
        if not queries:
            raise CairnError(f"{self.ground_truth} names no group of two photos.")
        return queries


def spread(members: Sequence[T]) -> list[T]:
    """The query photos of a group: a few, evenly spread."""
    few = min(len(members), _ASKED_OF_A_GROUP)
    return [members[number * len(members) // few] for number in range(few)]


def read_groups(table: Path, folder: str) -> dict[str, list[str]]:
    """Stems of the photos of a folder by group, from a table as for `GroupedSet`."""
    groups: dict[str, list[str]] = defaultdict(list)
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["folder"] == folder:
                groups[row["group"]].append(Path(row["file"]).stem)
    return dict(groups)


def shrunk(query: GroundTruthQuery, part: float) -> GroundTruthQuery:
    """Shrink a query's box to a part of its width and height about its centre."""
    return replace(query, box=shrunk_box(query.box, part))


def find_set(root: Path, name: str) -> RetrievalSet:
    """Find a set below a folder of sets, by the name of its folder; raises CairnError if it is not found.

    The set `HARD` is landmarks, each box shrunk to half its width and height, among the photos of other sets. It shows
    what rotated queries gain, and what they cost upright photos, where the easier sets are solved. The set `SOLID` has
    groups of unlabelled photos of non-planar objects, among all of them and the distractors.
    """
    if name == SOLID:
        return _find_solid(root)
    if name != HARD:
        return RetrievalSet.find(root / name)
    landmarks = RetrievalSet.find(root / "landmarks")
    distractors = tuple(root / folder for folder in _DISTRACTORS)
    return replace(landmarks, name=HARD, folders=(*landmarks.folders, *distractors), box=0.5)


def _find_solid(root: Path) -> GroupedSet:
    """The set `SOLID`; raises CairnError if its photos are missing."""
    folders = tuple(root / folder for folder in ("unlabelled", "distractors"))
    table = folders[0] / "groups.tsv"
    for path in (*folders, table):
        if not path.exists():
            raise CairnError(f"The set {SOLID!r} needs {path}.")
    return GroupedSet(SOLID, folders, table, kinds=_SOLID_KINDS)


def find_photos(root: Path, name: str) -> PhotoSet:
    """Find photos below a folder of sets: those of a set, or all of a folder; raises CairnError without photos."""
    if name in (HARD, SOLID) or (root / name / "gt").is_dir():
        return find_set(root, name)
    if not (root / name).is_dir():
        raise CairnError(f"There is no folder {name!r} in {root}.")
    return PhotoSet(name, (root / name,))


def _sha256(path: Path) -> str:
    """SHA-256 as in indexing; of the name if the file cannot be read, which indexing will report."""
    try:
        return hash_file(path)
    except OSError:
        return hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).hexdigest()
