"""Look up photos of a collection by the names that people use, in tables and on the command line."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from index.errors import CairnError
from index.text import bare_name, loose_name
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.photos import photo_of_name, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.pages import stem_of

_EXACT_WAYS = 3  # exact ways to name a photo: by its name, path or file name


class PhotoNotFound(CairnError):
    """There is no such photo, neither in the collection nor as a file."""

    _kind = "missing"


@dataclass(frozen=True)
class PhotoLookup:
    """The photos of a collection by name, path and file name; each index is made at first use."""

    places: Sequence[tuple[int, str, str]]  # number, name, path
    near: Sequence[Path] = ()  # folders that paths may begin in, in addition to the working folder

    def find(self, called: str) -> int | str:
        """Number of a photo by name, path or file name: exact, ignoring case, or without extension; or a reason."""
        numbers = self.find_all(called)
        if len(numbers) == 1:
            return numbers[0]
        return f"{len(numbers)} photos are called so" if numbers else "no photo is called so"

    def find_all(self, called: str) -> Sequence[int]:
        """Numbers of the photos with this name; several if the best interpretation is ambiguous."""
        if exact := self.find_exactly(called):
            return exact
        loose = loose_name(called)
        for among in (self._loose_names, self._loose_paths, self._bare_names, self._files, self._stems):
            if loose in among:
                return among[loose]
        return ()

    def find_exactly(self, called: str) -> Sequence[int]:
        """The number of the only photo of exactly this name, path or file name without extension; otherwise empty."""
        ways = ((self._names, (called,)), (self._paths, self._paths_of(called)), (self._exact_stems, (called,)))
        for index, keys in ways:
            for key in keys:
                if len(index.get(key, ())) == 1:
                    return index[key]
        return ()

    def find_stems(self, stem: str) -> Sequence[int]:
        """Numbers of the photos with this file name without extension; else those of `find_all`."""
        return self._exact_stems.get(stem) or self.find_all(stem)

    def _paths_of(self, called: str) -> Iterator[str]:
        yield called
        if self.near and "\0" not in called:
            for path in (Path(called), *(folder / called for folder in self.near)):
                yield os.path.abspath(path)  # noqa: PTH100 (links stay links)
                yield os.path.realpath(path)

    @cached_property
    def _exact_stems(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: stem_of(path))

    @cached_property
    def _names(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: name)

    @cached_property
    def _paths(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: path)

    @cached_property
    def _loose_names(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: loose_name(name))

    @cached_property
    def _loose_paths(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: loose_name(path))

    @cached_property
    def _bare_names(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: bare_name(loose_name(name)))

    @cached_property
    def _files(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: loose_name(path).rpartition("/")[2])

    @cached_property
    def _stems(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: bare_name(loose_name(path).rpartition("/")[2]))

    def _by(self, called: Callable[[str, str], str]) -> dict[str, list[int]]:
        index: dict[str, list[int]] = {}
        for number, name, path in self.places:
            index.setdefault(called(name, path), []).append(number)
        return index


def photo_called(catalogue: Catalogue, called: str) -> ImageRow | None:
    """Find a photo by its name, else by its path or file name, as in tables; raises CairnError if several have it."""
    row = catalogue.read(photo_of_name, called)
    if row is not None:
        return row
    matches = _called_so(catalogue, called)
    if len(matches) > 1:
        names = " and ".join(repr(name) for _, name in matches[:2])
        more = f" and {len(matches) - 2} more" if len(matches) > 2 else ""
        raise CairnError(f"{len(matches)} photos are called {called!r}, {names}{more}: give the whole name of one.")
    return catalogue.read(rows_of, [number for number, _ in matches])[0] if matches else None


def _called_so(catalogue: Catalogue, called: str) -> Sequence[tuple[int, str]]:
    """Numbers and names of the photos that `PhotoLookup.find_all` would find, without making an index."""
    loose = loose_name(called)
    ways: list[list[tuple[int, str]]] = [[] for _ in range(_EXACT_WAYS + 5)]
    for number, name, path in catalogue.places():
        by_name, by_path = loose_name(name), loose_name(path)
        file = by_path.rpartition("/")[2]
        keys = (by_name, by_path, bare_name(by_name), file, bare_name(file))
        is_so = (name == called, path == called, stem_of(path) == called, *(key == loose for key in keys))
        for way, so in zip(ways, is_so, strict=True):
            if so:
                way.append((number, name))
    exact, others = ways[:_EXACT_WAYS], ways[_EXACT_WAYS:]
    return next((way for way in exact if len(way) == 1), next((way for way in others if way), []))
