"""Rows of photos that were read lately, for as long as nothing is written to the catalogue."""

from retrieval.catalogue.schema import ImageRow

_MOST = 4096  # a few megabytes


class SeenPhotos:
    """Remembers rows of indexed photos; several threads may use it."""

    def __init__(self) -> None:
        self._seen: tuple[int | None, dict[int, ImageRow]] = None, {}  # the revision, and the rows as of it

    def rows_at(self, revision: int) -> dict[int, ImageRow]:
        """The rows that were read at a revision of the catalogue, by number, to be added to.

        None of those that were read before something was written; and from time to time none at all, so that they do
        not become too many.
        """
        at, rows = self._seen
        if at != revision or len(rows) > _MOST:
            rows = {}
            self._seen = revision, rows
        return rows
