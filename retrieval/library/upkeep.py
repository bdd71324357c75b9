"""Care of a collection: removing and moving photos, copies, compaction, training again."""

import os
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.docstrings import completed
from index.errors import CairnError
from index.extensions import named
from index.options.arguments import takes_options
from index.options.declaration import build
from index.parallel import processes
from retrieval.catalogue.photos import count_indexed
from retrieval.catalogue.schema import FILE
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.library.health import back_up, check
from retrieval.library.opened import OpenCollection, Paths, name_of, paths_of
from retrieval.library.paragraphs import SHARED
from retrieval.library.progress import INDEXING, Telling, telling
from retrieval.library.reports import Removed

# Modules for images and searching are imported lazily, as `cairn info` does not need them.
if TYPE_CHECKING:
    from retrieval.indexing.compaction import Compacted
    from retrieval.indexing.describing import DescribedGlobally
    from retrieval.indexing.retraining import Retrained
    from retrieval.indexing.roots import MovedRoot, Root
    from retrieval.integrity.backup_files import BackedUp
    from retrieval.integrity.report import Check
    from retrieval.library.given import InCollection


@completed(SHARED)
class Upkeep(OpenCollection):
    """Changes of a collection as a whole, which are methods of `Collection`."""

    def remove(
        self,
        names: "str | InCollection | Iterable[str | InCollection]" = (),
        *,
        missing: bool = False,
        gone: Paths = (),
        folder: str | os.PathLike[str] | None = None,
        for_good: bool = False,
        dry_run: bool = False,
    ) -> Removed:
        """Remove photos from the collection; their files stay.

        Parameters
        ----------
        names : str, Photo, Result, or iterable of them
            Photos of the collection; objects count by their names.
        missing : bool
            Also photos whose files were missing at the last run, and still are.
        gone : path-like or iterable of them
            Folders that are gone for good. Otherwise `missing` is refused if an indexed folder is missing or empty, as
            its drive may not be connected.
        folder : path-like, optional
            Also photos whose names lie in this folder, or below it.
        for_good : bool
            Exclude them when their folders are indexed again.
        dry_run : bool
            Change nothing.

        Raises
        ------
        PhotoNotFound
            There is no photo of one of the names; then nothing is removed.
        CairnError
            There is no collection in the folder, no photo is named, or a folder of missing photos is absent.
        """
        from retrieval.indexing.removal import remove_photos

        some = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
        called = []
        for one in some:
            name = name_of(one)
            if name is None:
                raise CairnError(f"Photos are removed by their names, not by {one!r:.80}.")
            called.append(name)
        folder = os.fspath(folder) if folder is not None else None
        with self._lock:
            removed = remove_photos(
                self.opened,
                called,
                missing=missing,
                gone=paths_of(gone),
                folder=folder,
                for_good=for_good,
                dry_run=dry_run,
            )
            return Removed(removed, for_good, dry_run, self.opened.catalogue.read(count_indexed))

    def roots(self) -> "list[Root]":
        """List the folders that photos were indexed with, in order."""
        from retrieval.indexing.roots import list_roots

        return list_roots(self.opened)

    def move_root(
        self, old: str | os.PathLike[str], new: str | os.PathLike[str], *, progress: Telling = None
    ) -> "MovedRoot":
        """Record that a folder of photos was moved; files of other sizes or times are read and compared.

        Parameters
        ----------
        old, new : path-like
            The old folder, or one above or below it, and the new one.
        {progress}

        Raises
        ------
        CairnError
            No photo lies below the old folder, the new one does not exist, or has none of the photos.
        """
        from retrieval.indexing.roots import move_root

        with self._lock, telling(progress, {"look": "Looking for photos"}) as tell:
            return move_root(self.opened, Path(old), Path(new), tell)

    def name_from(self, folder: str | os.PathLike[str]) -> dict[str, str]:
        """Name the photos below a folder by their paths relative to it, as if it had been indexed first.

        Parameters
        ----------
        folder : path-like
            One that photos were indexed with, or one above or below it.

        Returns
        -------
        dict of str to str
            The new names by the old ones.

        Raises
        ------
        CairnError
            No photo lies below the folder.
        """
        from retrieval.indexing.roots import name_from

        with self._lock:
            return name_from(self.opened, Path(folder))

    def backup(self, target: str | os.PathLike[str], *, link: bool = False, progress: Telling = None) -> "BackedUp":
        """Copy the collection to another folder, or update a copy there, and verify the whole copy.

        Other processes may change the collection meanwhile: the copy is of one moment. It is a collection itself, whose
        catalogue is an SQLite file in its folder. A call that is stopped leaves an earlier copy whole.

        Parameters
        ----------
        target : path-like
            A new or empty folder, or an earlier, unchanged backup of this collection.
        link : bool
            Link files that never change instead of copying them: this needs no space, but damage affects both.
        {progress}

        Raises
        ------
        CollectionLocked
            Another process is making this backup.
        CairnError
            The folder has other files, the collection is damaged, or the disk is full.
        """
        with self._lock:
            return back_up(self.opened, target, link=link, progress=progress)

    def compact(self, *, progress: Telling = None) -> "Compacted":
        """Merge small segments, and free the space of removed photos.

        Parameters
        ----------
        {progress}

        {raises_locked}
        """
        from retrieval.indexing.compaction import compact

        with self._lock, telling(progress, {"compact": "Compacting (features)"}) as tell:
            return compact(self.opened, progress=tell)

    @takes_options(RetrainOptions)
    def retrain(
        self,
        *,
        features: str | os.PathLike[str] | None = None,
        workers: int = 0,
        progress: Telling = None,
        **options: Any,
    ) -> "Retrained":
        """Train a new vocabulary on the current photos of the collection; searches go on meanwhile.

        Parameters
        ----------
        {features}
        {workers}
        {progress}
        {options}

        {raises_locked}
        CairnError
            Photos cannot be read, and must not be dropped.
        """
        from retrieval.indexing.described import use_features_again
        from retrieval.indexing.retraining import retrain

        how = build(RetrainOptions, options)
        with self._lock, self.opened.other_features() if features is not None else nullcontext():
            if features is not None:
                use_features_again(self.opened, Path(features))
            with telling(progress, INDEXING) as tell:
                return retrain(self.opened, how, workers=processes(workers), progress=tell)

    def check(self, *, progress: Telling = None) -> "Check":
        """Verify every file of the collection, and report damage; changes nothing.

        Parameters
        ----------
        {progress}
        """
        catalogue = self.opened.catalogue
        address = None
        if catalogue.file != self.folder / FILE:
            address = catalogue.address.render_as_string(hide_password=False)
        return check(self.folder, catalogue=address, progress=progress)

    def add_global_descriptors(self, source: Any, *, workers: int = 0, progress: Telling = None) -> "DescribedGlobally":
        """Add global descriptors to photos: one vector per photo, of what it looks like as a whole.

        ``search(..., global_descriptors="fused")`` then uses them.

        Parameters
        ----------
        source : str, path-like or global descriptor
            Name of an extension of the kind ``global_descriptor``, or an object that keeps its contract: it describes
            photos that lack a row, and `add` those that come. Or a file, whose rows replace all others: an .npz of
            ``names`` (N,) and ``vectors`` (N, D), or an .npy (N, D) with the names in a text file of its name.
        {workers}
        {progress}

        {raises_locked}
        CairnError
            There is no such extension or file, or none of its names is that of a photo.
        """
        from retrieval.foreign.global_descriptors import KIND
        from retrieval.indexing.describing import describe_photos

        with self._lock, telling(progress, INDEXING) as tell:
            place = os.fspath(source) if isinstance(source, os.PathLike) else named(KIND, source)
            return describe_photos(self.opened, place, processes(workers), tell)

    def remove_global_descriptors(self) -> None:
        """Remove the global descriptors that `add_global_descriptors` gave.

        {raises_locked}
        """
        from retrieval.indexing.describing import drop_global

        with self._lock:
            drop_global(self.opened)
