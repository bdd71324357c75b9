"""Labels from a user's files: ground truth in the layout of Oxford5K, a folder for each object, or a table."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from index.errors import CairnError
from index.text import shown
from learning.labels.ground_truth import GroundTruthQuery, read_ground_truth
from learning.labels.labels import Labels, ObjectLabels
from retrieval.catalogue.photo_lookup import PhotoLookup
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.tables.reading import open_csv
from retrieval.photos.listing import list_photos

_GROUND_TRUTH = re.compile(r".+_(query|good|ok|junk)\.txt", re.DOTALL)
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}


def read_labels(source: Path, rows: Sequence[ImageRow], skip_missing: bool = False) -> Labels:
    """Read labels of the photos of a collection, its catalogue's `rows`; photos not in the source are background."""
    source = Path(source)
    if source.is_dir():
        oxford = any(_GROUND_TRUTH.fullmatch(path.name) for path in _entries(source))
        labels = (_read_oxford if oxford else _read_folder)(source, rows, skip_missing)
    elif source.exists():
        labels = _read_table(source, rows, skip_missing)
    else:
        raise CairnError(f"There are no labels at {str(source)!r}; check the name.")
    if all(len(labelled.positives) < 2 for labelled in labels.objects):
        others = " except the query photos" if labels.asked else ""
        raise CairnError(
            f"No object of {source} has two photos in the collection{others}, and pairs are what is learnt from: label "
            "more photos."
        )
    return labels


class _Photos:
    def __init__(self, source: Path, rows: Iterable[ImageRow]) -> None:
        self.source = source
        self._paths = {row.number: row.path for row in rows}
        places = [(row.number, row.name or "", row.path) for row in rows]
        self._lookup = PhotoLookup(places, near=(source.parent,))
        self._missing: dict[str, None] = {}  # in order of detection

    def by_stem(self, stem: str) -> int | None:
        """Return the photo with a stem; raises CairnError if several have it."""
        return self._only(stem, self._lookup.find_stems(stem))

    def by_any(self, called: str) -> int | None:
        """Return the photo of a name, path or stem, as `PhotoLookup` does; raises CairnError if several have it."""
        return self._only(called, self._lookup.find_all(called))

    def has(self, called: str) -> bool:
        """Return whether a photo has exactly this name, path or stem: titles of columns may resemble one."""
        return bool(self._lookup.find_exactly(called))

    def _only(self, called: str, numbers: Sequence[int]) -> int | None:
        if len(numbers) > 1:
            one, other = (self._paths[number] for number in numbers[:2])
            raise CairnError(
                f"{shown(called)} in {self.source} stands for {len(numbers)} photos of the collection, such as {one} "
                f"and {other}: keep one of them, or label them by their names in a table."
            )
        return numbers[0] if numbers else None

    def miss(self, called: str) -> None:
        """Record a photo that the collection lacks."""
        self._missing[called] = None

    def refuse_missing(self, skip: bool) -> None:
        """Raise CairnError if photos are missing, unless they are to be skipped."""
        if skip or not self._missing:
            return
        first, others = next(iter(self._missing)), len(self._missing) - 1
        also = f" and {others} more of {self.source} are" if others else f" of {self.source} is"
        raise CairnError(
            "The photo {first}{also} not in the collection: index what is missing, or leave it out with "
            "{--skip-missing}.",
            first=shown(first),
            also=also,
        )


class _Assigned:
    """Labels assigned to photos; the empty label is background."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._labels: dict[int, str] = {}

    def give(self, number: int, label: str, called: str) -> None:
        """Label a photo; raises CairnError if it has another label already."""
        before = self._labels.setdefault(number, label)
        if before != label:
            one, other = (shown(name) if name else "as background" for name in (before, label))
            raise CairnError(
                f"The photo {shown(called)} of {self._source} is labelled {one} and {other}: keep one of them."
            )

    def labels(self) -> Labels:
        photos: defaultdict[str, set[int]] = defaultdict(set)
        for number, label in self._labels.items():
            photos[label].add(number)
        return Labels(tuple(ObjectLabels(label, frozenset(photos[label])) for label in sorted(photos) if label))


# Ground truth in the layout of Oxford5K


def _read_oxford(source: Path, rows: Sequence[ImageRow], skip_missing: bool) -> Labels:
    photos = _Photos(source, rows)

    def numbers(stems: Iterable[str]) -> frozenset[int]:
        numbers_found = set()
        for stem in sorted(stems):
            number = photos.by_stem(stem)
            if number is None:
                photos.miss(stem)
            else:
                numbers_found.add(number)
        return frozenset(numbers_found)

    queries = read_ground_truth(source)
    query_stems = {query.stem for query in queries}
    objects = []
    for name, group in _objects(queries, query_stems):
        positives = numbers(set[str]().union(*(query.positives for query in group)) - query_stems)
        junk = numbers(set[str]().union(*(query.junk for query in group)) - query_stems)
        objects.append(ObjectLabels(name, positives, junk - positives))
    photos.refuse_missing(skip_missing)
    # Query photos may be files outside the collection, which do not count as missing.
    return Labels(tuple(objects), numbers(query_stems))


def _objects(queries: Sequence[GroundTruthQuery], query_stems: set[str]) -> list[tuple[str, list[GroundTruthQuery]]]:
    """Group queries that show the same object, and name each group.

    Their names differ only in the number at the end, and their positives overlap, directly or through other queries of
    the group. Query photos are ignored.
    """
    alike: defaultdict[str, list[list[GroundTruthQuery]]] = defaultdict(list)
    for query in queries:
        groups = alike[re.sub(r"_\d+\Z", "", query.name)]
        positives = query.positives - query_stems
        joined = [group for group in groups if any(positives & other.positives for other in group)]
        groups[:] = [group for group in groups if group not in joined]
        groups.append([*(other for group in joined for other in group), query])
    named = [
        (name if len(groups) == 1 else min(query.name for query in group), group)
        for name, groups in alike.items()
        for group in groups
    ]
    return sorted(named, key=lambda pair: pair[0])


# A folder for each object


def _read_folder(source: Path, rows: Sequence[ImageRow], skip_missing: bool) -> Labels:
    folders = [path for path in _entries(source) if path.is_dir() and not path.name.startswith(".")]
    for folder in folders:
        if any(_GROUND_TRUTH.fullmatch(path.name) for path in _entries(folder)):
            raise CairnError(f"{source} holds no labels, but its subfolder {folder.name} does: name that one.")
    photos, assigned = _Photos(source, rows), _Assigned(source)
    numbers = {os.path.realpath(row.path): row.number for row in rows}
    listed = {folder: [path for _, path in list_photos([folder])] for folder in folders}
    if not any(listed.values()):
        raise CairnError(
            f"{source} holds no labels: it should have a subfolder of photos for each object, or ground truth in files "
            "such as NAME_query.txt."
        )
    for folder, paths in listed.items():
        numbers_found = [numbers.get(os.path.realpath(path)) for path in paths]
        if paths and not skip_missing and all(number is None for number in numbers_found):
            raise CairnError(
                "No photo of the subfolder {folder} of {source} is in the collection: index them from there, or leave "
                "them out with {--skip-missing}.",
                folder=repr(folder.name),
                source=source,
            )
        for path, number in zip(paths, numbers_found, strict=True):
            called = path.relative_to(source).as_posix()
            if number is None:
                photos.miss(called)
            else:
                assigned.give(number, folder.name, called)
    photos.refuse_missing(skip_missing)
    return assigned.labels()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise CairnError(f"The folder {str(folder)!r} cannot be read: {error.strerror}.") from None


# A table


def _read_table(source: Path, rows: Sequence[ImageRow], skip_missing: bool) -> Labels:
    photos, assigned = _Photos(source, rows), _Assigned(source)
    lines = _read_lines(source)
    if lines and _is_title(lines, photos):
        del lines[0]
    if not lines:
        raise CairnError(f"{source} holds no labels: a line should be a photo and its label.")
    for called, label in lines:
        number = photos.by_any(called)
        if number is None:
            photos.miss(called)
        else:
            assigned.give(number, label, called)
    photos.refuse_missing(skip_missing)
    return assigned.labels()


def _is_title(lines: Sequence[tuple[str, str]], photos: _Photos) -> bool:
    """Return whether the first line holds column titles: it could not name a photo, and no other line has its label."""
    called, label = lines[0]
    if Path(called).suffix or photos.has(called):
        return False
    return bool(label) and all(label != other for _, other in lines[1:])


def _read_lines(source: Path) -> list[tuple[str, str]]:
    file = open_csv(source)
    if file.encoding != "utf-8-sig":
        raise CairnError(f"{source} is not text in UTF-8: save the table as CSV in UTF-8.")
    lines = []
    for line, fields in file.records():
        cells = [field.strip() for field in fields]
        if "\0" in "".join(cells):
            raise CairnError(f"{source} is not text, there are null characters in it: save the table as CSV in UTF-8.")
        if not any(cells):
            continue
        if len(cells) < 2 or not cells[0]:
            raise CairnError(
                f"{source}, line {line}: expected a photo and its label with {_DELIMITERS[file.delimiter]} between "
                f"them, found {shown(file.delimiter.join(fields))}."
            )
        lines.append((cells[0], cells[1]))
    return lines
