"""Which pages of multi-page files, and frames of films, are photos of their own."""

import contextlib
import json
import os
from collections.abc import Collection as Collection_
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from index.errors import CairnError
from index.text import printable
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.photos import KnownPhotos
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import PAGES_KEY
from retrieval.indexing.report import FoundFile, IndexReport
from retrieval.metadata.pages import file_of, is_film, page_content, page_mark, page_path, split_page
from retrieval.photos.decoding import other_frames, other_pages
from retrieval.photos.listing import PAGED_SUFFIXES
from retrieval.photos.tiff import MOST_PAGES


class FilePages:
    """The pages of multi-page files, each of which is a photo: see `retrieval.metadata.pages`. Pages of an unchanged
    file are known. Such a file is opened again only if one of its pages could not be read, or if no run has searched
    its folder for pages, as earlier versions took one page of each file. `every`: seconds between the frames of a film,
    which are its pages; 0: by its shots. A film is read again if this changes.
    """

    def __init__(
        self,
        collection: Collection,
        paths: Sequence[Path],
        again: bool,
        known: KnownPhotos,
        most: int | None,
        every: float,
    ) -> None:
        self._every, self._films, self._keys = every, dict[str, float](), dict[str, str]()
        self._catalogue, self._again, self._known, self._most = collection.catalogue, again, known, most or MOST_PAGES
        self._has_pages = not collection.extractor.reads_files  # other programs describe files
        self._there: dict[str, set[int]] = {}  # by file: its pages, except the one that has the name of the file
        failed = (split_page(failure.path) for failure in self._catalogue.read(failures_in))
        self._failed = {file for file, page in failed if page is not None}
        self._before = {"folders": set[str](), "files": set[str]()}
        self._cut: dict[str, int] = {}  # files whose pages were not all taken, and the limit
        with contextlib.suppress(ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            stored = json.loads(self._catalogue.setting(PAGES_KEY) or "{}")
            self._before = {key: {str(one) for one in stored.get(key, ())} for key in self._before}
            self._cut = {str(file): int(most) for file, most in stored.get("cut", {}).items()}
            self._films = {str(film): float(every) for film, every in stored.get("films", {}).items()}
        self._cut_before, self._films_before = dict(self._cut), dict(self._films)
        self._now = {os.path.realpath(path) for path in paths if path.is_dir()}

    def may_be_more(self, root: Path, file: Path) -> bool:
        """Whether an unchanged file may have pages that are not in the collection."""
        if not self._has_pages or file.suffix.lower() not in PAGED_SUFFIXES:
            return False
        looked = self._films.get(str(file)) == self._every if is_film(file) else str(root) in self._before["folders"]
        is_known = looked and str(file) not in self._before["files"]
        return self._again or file in self._failed or not is_known or self._cut.get(str(file), self._most) < self._most

    def of(self, file: FoundFile, report: IndexReport) -> list[FoundFile]:
        """List the photos of a file; the one that has its name comes last. Raises CairnError for a damaged film."""
        if not self._has_pages or file.path.suffix.lower() not in PAGED_SUFFIXES:
            return [file]
        try:
            numbers = self._frames(file, report) if is_film(file.path) else other_pages(file.path)
        except CairnError:
            if is_film(file.path):
                raise
            return [file]  # reported when it is read
        numbers = [number for number in numbers if not os.path.lexists(page_path(file.path, number))]
        self._there[str(file.path)] = set(numbers)
        self._cut.pop(str(file.path), None)
        if len(numbers) >= self._most:
            self._cut[str(file.path)] = self._most
            after = numbers[self._most - 1 :]
            known = [number for number in after if str(page_path(file.path, number)) in self._known]
            if is_film(file.path):  # damage of other files is found when they are read
                report.pages_left += len(after) - len(known)
            numbers = [*numbers[: self._most - 1], *known]
        pages = [
            replace(
                file,
                path=page_path(file.path, number),
                name=f"{file.name}{page_mark(file.path, number)}",
                key=page_content(file.key, number),
            )
            for number in numbers
        ]
        return [*pages, replace(file, others=len(pages))]

    def _frames(self, film: FoundFile, report: IndexReport) -> list[int]:
        path = str(film.path)
        self._keys[path] = film.key
        times, missing = other_frames(film.path, self._every)
        self._films[path] = self._every
        if missing:
            reason = f"the last {max(1, round(100 * missing))}% of the film are missing"
            report.remarks.append({"path": printable(path), "reason": reason})
        return times

    def lack(self, path: str) -> bool:
        """Whether a photo is a page of an examined file that does not have this page."""
        file, page = split_page(path)
        if str(file) in self._keys:  # a film has a frame at any time
            before = self._known.get(path)
            content = page_content(self._keys[str(file)], page)
            return page is not None and (before is None or before.sha256 != content)
        return page is not None and page not in self._there.get(str(file), {page})

    def keep(self, new: Iterable[FoundFile], sound: Collection_[str]) -> None:
        """Store which folders were searched for pages, and unchanged files with new pages."""
        pending = {str(file_of(file.path)) for file in new} & {*sound}
        pending |= self._before["files"] - self._there.keys()
        now = {"folders": self._before["folders"] | self._now, "files": pending}
        if (now, self._cut, self._films) != (self._before, self._cut_before, self._films_before):
            listed = {key: sorted(some) for key, some in now.items()}
            text = json.dumps({**listed, "cut": self._cut, "films": self._films})
            self._catalogue.write(keep_setting, PAGES_KEY, text)
