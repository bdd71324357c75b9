"""Sets of photos with queries and their answers, as tables are measured on."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from index.arrays import fingerprint, hash_file
from index.errors import CairnError
from learning.labels.ground_truth import Query, read_ground_truth
from retrieval.photos.listing import list_photos


@dataclass(frozen=True)
class RetrievalSet:
    """A set of photos with queries and their answers, in the layout of Oxford5K.

    Its queries are those that have positives: the others have no average precision.
    """

    name: str
    images: Path  # folder of the photos
    ground_truth: Path
    queries: Path | None = None  # folder of query photos that are not among the images

    @staticmethod
    def find(folder: Path) -> "RetrievalSet":
        """Find a set by the folder that holds ``images``, ``gt`` and, in some, ``queries``; CairnError without them."""
        for part in ("images", "gt"):
            if not (folder / part).is_dir():
                raise CairnError(f"{folder} is no retrieval set: it has no folder {part!r}.")
        queries = folder / "queries"
        return RetrievalSet(folder.name, folder / "images", folder / "gt", queries if queries.is_dir() else None)

    @cached_property
    def asked(self) -> list[Query]:
        """The queries that have positives; CairnError where there is none."""
        asked = [query for query in read_ground_truth(self.ground_truth) if query.positives]
        if not asked:
            raise CairnError(f"No query of {self.ground_truth} has a positive.")
        return asked

    @cached_property
    def photos(self) -> dict[Path, str]:
        """SHA-256 of each photo's content."""
        return {path: _sha256(path) for _, path in list_photos([self.images])}

    @cached_property
    def query_files(self) -> list[Path]:
        """The photo of each query; CairnError where one is in neither folder."""
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

    @cached_property
    def key(self) -> str:
        """The name and a fingerprint of the content: what is kept for one set is not taken for another's."""
        names = sorted((path.relative_to(self.images).as_posix(), key) for path, key in self.photos.items())
        queries = [[_sha256(path), query.name, query.stem, query.box] for query, path in self._pairs()]
        answers = [[sorted(query.good), sorted(query.ok), sorted(query.junk)] for query in self.asked]
        return f"{self.name}-{fingerprint({}, {'photos': names, 'queries': queries, 'answers': answers})[:8]}"

    def _pairs(self) -> list[tuple[Query, Path]]:
        return list(zip(self.asked, self.query_files, strict=True))


def _sha256(path: Path) -> str:
    """SHA-256 as indexing takes it; of the name alone where the file cannot be read, which indexing will report."""
    try:
        return hash_file(path)
    except OSError:
        return hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).hexdigest()
