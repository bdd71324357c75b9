"""Photos of a collection that show the same: pairs, groups, books, and what is written of them."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from index.docstrings import completed
from index.errors import CairnError
from index.options.declaration import whole
from index.parallel import processes
from retrieval.collection.collection import CollectionChanged
from retrieval.library.opened import LOOKS
from retrieval.library.paragraphs import SHARED
from retrieval.library.progress import Telling, telling
from retrieval.library.queries import PhotoQueries

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.library.answers import Answer
    from retrieval.library.groups import Groups
    from retrieval.library.pairs import Pairs
    from retrieval.library.shared_books import SharedBooks


@completed(SHARED)
class PhotoLinks(PhotoQueries):
    """Links between photos, which methods of `Collection` find and write."""

    def pairs(
        self,
        top: int = 20,
        *,
        verified: bool = False,
        inliers: int = 15,
        workers: int = 0,
        progress: Telling = None,
    ) -> "Pairs":
        """Pair each photo with the most similar ones, for structure from motion, without reading photos again.

        Hidden photos are left out, and so are pairs marked as no match.

        Parameters
        ----------
        top : int
            Photos that each photo is paired with, at most.
        verified : bool
            Pair photos only with those verified by geometry, the most inliers first; otherwise by the best scores.
        inliers : int
            Fewest verified matches of a pair, with `verified`.
        {cluster_workers}
        {progress}

        Returns
        -------
        Pairs
            Each pair once.

        Raises
        ------
        CairnError
            The collection has no photos yet, or a number is out of range.
        """
        from retrieval.groups.pairs import PairOptions, choose_pairs
        from retrieval.library.pairs import TITLES, Pairs

        options = PairOptions(whole("top", top), verified, whole("inliers", inliers))

        def choose() -> "Pairs":
            with telling(progress, TITLES) as tell:
                asker = self._cluster.asker(self.opened) if self._cluster is not None else None
                result = choose_pairs(self.opened, options, workers=processes(workers), asker=asker, progress=tell)
                return Pairs(lambda: self.opened, self._lock, result)

        with self._lock:
            return self._steadily(choose)

    def group(
        self,
        inliers: int = 20,
        *,
        augment: bool | None = None,
        workers: int = 0,
        progress: Telling = None,
    ) -> "Groups":
        """Find and store groups of photos that show the same, and near duplicates among them.

        Only photos that were added since the last call are searched for; a call that was interrupted is picked up.

        Parameters
        ----------
        inliers : int
            Smallest number of verified matches that links two photos.
        augment : bool, optional
            Let linked photos borrow features from each other, so that searches find more; by default as in the last
            call.
        {cluster_workers}
        {progress}

        Returns
        -------
        Groups
            Empty if no photos are linked.

        Raises
        ------
        CollectionLocked
            Another process is grouping.
        CairnError
            The collection has no photos yet.
        """
        from retrieval.groups.groups import GroupOptions, group_photos
        from retrieval.library.groups import make_groups

        options = GroupOptions(inliers=whole("inliers", inliers), augment=augment)
        titles = {
            "verify": "Verifying (photos)",
            "look": "Comparing looks (photos)",
            "borrow": "Borrowing (photos)",
        }
        with self._lock, telling(progress, titles) as tell:
            asker = self._cluster.asker(self.opened) if self._cluster is not None else None
            result = group_photos(self.opened, options, workers=processes(workers), asker=asker, progress=tell)
        try:
            return make_groups(self.opened, result)
        except KeyError:  # a photo was removed meanwhile
            return self.groups()

    def groups(self) -> "Groups":
        """Return the groups that `group` found last; photos that were removed since are left out.

        Raises
        ------
        NotGrouped
            The collection was never grouped.
        """
        from retrieval.groups.groups import read_groups
        from retrieval.library.groups import make_groups

        for _ in range(LOOKS):
            with self._lock, suppress(KeyError):  # if another process removes a photo meanwhile
                return make_groups(self.opened, read_groups(self.opened))
        raise CollectionChanged("{folder} changes faster than its groups can be read: try again.", folder=self.folder)

    def shared_books(
        self,
        *,
        category: str | None = None,
        out: str | os.PathLike[str] | None = None,
        pages: str | os.PathLike[str] | None = None,
    ) -> "SharedBooks":
        """List books that share pictures, by the groups of the last `group`, and by finds of saved searches.

        Parameters
        ----------
        category : str, optional
            Count only finds of saved searches in this category.
        out : path-like, optional
            Write a table (CSV) here, with a row and a column for each book: numbers of pictures that two books share.
        pages : path-like, optional
            Write a table (CSV) here, with a row for each pair of matching pages.

        Raises
        ------
        CairnError
            A table cannot be written.
        """
        from retrieval.library.motifs import save_rows
        from retrieval.library.shared_books import shared_books

        shared = shared_books(self.opened, category)
        for path, rows in ((out, shared.matrix), (pages, shared.page_rows)):
            if path is not None:
                save_rows(Path(path), rows())
        return shared

    def save_annotations(
        self, path: str | os.PathLike[str], *, answer: "Answer | None" = None, progress: Telling = None
    ) -> int:
        """Write the matches within groups, or the results of a search, as W3C Web Annotations (JSON-LD) or TEI (.xml).

        Each pair of photos that geometry links is one: a region of each (``FragmentSelector``), the probability that
        they show the same, and the map between them. A photo that came by IIIF is named by its canvas.

        Parameters
        ----------
        path : path-like
            Output file; one that ends in ``.xml`` is TEI: a zone for each region, and a link for each pair.
        answer : Answer, optional
            Of a search of this collection, in place of the groups: results that are found, or likely, each from the
            query's box, or all of it, to its region in the photo.
        {progress}

        Returns
        -------
        int
            How many annotations it has.

        Raises
        ------
        NotGrouped
            The collection was never grouped.
        CairnError
            It cannot be written there.
        """
        from index.arrays import save_bytes, save_json
        from retrieval.library.annotations import annotation_page, answer_page, pairs_of_groups
        from retrieval.library.tei import matches_text

        if answer is not None:
            page = answer_page(answer, lambda name: self.photo(name) if name in self else None)
        else:
            with telling(progress, {"annotate": "Comparing (pairs)"}) as tell:
                # Links were found upright.
                compare = partial(self.match, turns=1)
                page = annotation_page(pairs_of_groups(self.opened.catalogue, self.groups()), compare, tell)
        try:
            if Path(path).suffix.lower() == ".xml":
                save_bytes(Path(path), matches_text(page).encode())
            else:
                save_json(Path(path), page)
        except OSError as error:
            raise CairnError(f"{os.fspath(path)} cannot be written ({error.strerror}): choose another name.") from None
        return len(page["items"])
