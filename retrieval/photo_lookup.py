"""Which photo of a collection is meant by what people call it in their tables."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class PhotoLookup:
    """The photos of a collection by their names, paths and file names; each list is made when it is first needed."""

    places: Sequence[tuple[int, str, str]]  # number, name, path

    def find(self, called: str) -> int | str:
        """A photo's number by its name, path or file name, exactly, but for case, or without extension; or why not."""
        for index, key in ((self._names, called), (self._paths, called)):
            if len(index.get(key, ())) == 1:
                return index[key][0]
        loose = _loose(called)
        for among in (self._loose_names, self._loose_paths, self._bare_names, self._files, self._stems):
            numbers = among.get(loose, ())
            if len(numbers) == 1:
                return numbers[0]
            if numbers:
                return f"{len(numbers)} photos are called so"
        return "no photo is called so"

    @cached_property
    def _names(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: name)

    @cached_property
    def _paths(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: path)

    @cached_property
    def _loose_names(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: _loose(name))

    @cached_property
    def _loose_paths(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: _loose(path))

    @cached_property
    def _bare_names(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: _bare(_loose(name)))

    @cached_property
    def _files(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: _loose(path).rpartition("/")[2])

    @cached_property
    def _stems(self) -> dict[str, list[int]]:
        return self._by(lambda name, path: _bare(_loose(path).rpartition("/")[2]))

    def _by(self, called: Callable[[str, str], str]) -> dict[str, list[int]]:
        index: dict[str, list[int]] = {}
        for number, name, path in self.places:
            index.setdefault(called(name, path), []).append(number)
        return index


def _loose(name: str) -> str:
    """A name whatever its case, how its letters are composed, and which slashes part its folders."""
    return unicodedata.normalize("NFC", name).casefold().replace("\\", "/")


def _bare(name: str) -> str:
    """A name without its extension."""
    bare, dot, extension = name.rpartition(".")
    return bare if dot and "/" not in extension else name
