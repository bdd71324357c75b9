"""Photos that moved, found again by their content."""

from collections.abc import Sequence
from pathlib import Path

from retrieval.catalogue.schema import ImageRow
from retrieval.metadata.pages import hash_photo, page_path, split_page
from retrieval.photos.listing import list_photos


class PhotoFinder:
    """Finds photos by their content, at their paths or elsewhere."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._by_size: dict[int, list[Path]] | None = None
        self._hashes: dict[Path, str | None] = {}

    def find(self, row: ImageRow) -> Path | None:
        """Path of the photo that was indexed; None if it is not found."""
        if row.sha256 is None:
            return None
        own = Path(row.path)
        if self._hash(own) == row.sha256:
            return own
        page = split_page(own)[1]
        places = (page_path(path, page) for path in self._of_size(row.size))
        return next((path for path in places if self._hash(path) == row.sha256), None)

    def _of_size(self, size: int | None) -> list[Path]:
        if self._by_size is None:
            self._by_size = {}
            for root, path in list_photos(self._folders):
                real = root.resolve() / path.relative_to(root)
                if real.is_file():
                    self._by_size.setdefault(real.stat().st_size, []).append(real)
        if size is None:
            return [path for paths in self._by_size.values() for path in paths]
        return self._by_size.get(size, [])

    def _hash(self, path: Path) -> str | None:
        if path not in self._hashes:
            try:
                self._hashes[path] = hash_photo(path)
            except OSError:
                self._hashes[path] = None
        return self._hashes[path]
