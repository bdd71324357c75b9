"""The augmentation of a collection: features that photos borrow of those that show the same, in files of their own.

The folder `augmentation` has segments as photos have them, without geometry: the image numbers are those of the photos
that borrow, and the notes say of whom. `augmentation.json` names the segments, and is replaced whole; where it is, the
collection is to have an augmentation. All of it can be made again from the links between photos.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import check_format, fingerprint, hash_file, load_json, save_json
from index.borrowed import Borrowed
from index.errors import CairnError
from index.segments.description import META, SIGNATURE, verify_segment
from index.segments.segment import Segment
from index.segments.writing import write_segment
from retrieval.collection.layout import AUGMENTATION

MANIFEST = "augmentation.json"
_FORMAT = 1
_LOOKS = 5  # how often the files are looked at again that are replaced while they are read
_SOURCE = np.dtype([("photo", "<u4"), ("source", "<u4")])


@dataclass(frozen=True)
class Basis:
    """What borrowed features are made with: where any of it is another, they are of no use."""

    vocabulary: str  # fingerprint
    descriptor: str  # fingerprint
    signature: str  # kind, by its name


@dataclass(frozen=True)
class Loan:
    """What one photo borrows.

    Attributes
    ----------
    photo : int
        Number of the photo.
    sources : tuple of int
        Numbers of the photos that it borrows from, the best linked first; it need not borrow something of each.
    words : ndarray, shape (n,), integer
    signatures : ndarray, shape (n, B), uint8, or None
        Where features have signatures.
    """

    photo: int
    sources: tuple[int, ...]
    words: NDArray[np.integer]
    signatures: NDArray[np.uint8] | None


@dataclass(frozen=True)
class Augmentation:
    """An opened augmentation.

    Attributes
    ----------
    basis : Basis
    rules : str
        By which rules features were borrowed.
    key : str
        Differs from that of any other augmentation.
    segments : tuple of Segment
        Of two that have one photo, the later one counts.
    sources : tuple of ndarray of `photo` and `source`
        Of each segment, which photos borrow from which.
    """

    basis: Basis
    rules: str
    key: str
    segments: tuple[Segment, ...]
    sources: tuple[NDArray[Any], ...]

    def borrowed(self, image_numbers: NDArray[np.integer]) -> Borrowed:
        """What counts of it, given the numbers of the photos that are in the collection.

        A photo that has borrowed from one that was removed since borrows nothing.
        """
        counting: list[NDArray[np.bool_]] = []
        later = np.zeros(0, np.int64)
        for segment, sources in zip(reversed(self.segments), reversed(self.sources), strict=True):
            numbers = segment.image_numbers.astype(np.int64)
            short = sources["photo"][~np.isin(sources["source"], image_numbers)]
            counting.append(np.isin(numbers, image_numbers) & ~np.isin(numbers, short) & ~np.isin(numbers, later))
            later = np.concatenate([later, numbers])
        return Borrowed(self.segments, tuple(reversed(counting)))

    def sources_of(self, image_numbers: NDArray[np.integer]) -> dict[int, tuple[int, ...]]:
        """Of whom each photo borrows, of those that count."""
        found: dict[int, list[int]] = {}
        borrowed = self.borrowed(image_numbers)
        for segment, sources, counting in zip(self.segments, self.sources, borrowed.counting, strict=True):
            numbers = segment.image_numbers[counting]
            found.update((number, []) for number in numbers.tolist())
            for photo, source in sources[np.isin(sources["photo"], numbers)].tolist():
                found[photo].append(source)
        return {photo: tuple(several) for photo, several in found.items()}


def is_augmented(folder: Path) -> bool:
    """Whether the collection in a folder is to have an augmentation."""
    return (folder / AUGMENTATION / MANIFEST).is_file()


def open_augmentation(folder: Path, basis: Basis) -> Augmentation | None:
    """Open the augmentation of a collection.

    Parameters
    ----------
    folder : Path
        Of the collection.
    basis : Basis
        What features of the collection are made with.

    Returns
    -------
    Augmentation or None
        None where there is none, or it is of another basis.

    Raises
    ------
    CairnError
        It is damaged.
    """
    for left in reversed(range(_LOOKS)):
        kept = read_manifest(folder)
        if kept is None or kept["basis"] != asdict(basis):
            return None
        try:
            segments = tuple(_open_segment(folder, name, digest) for name, digest in kept["segments"].items())
            sources = tuple(_read_sources(segment) for segment in segments)
        except (CairnError, FileNotFoundError) as error:
            # Segments may have been replaced meanwhile.
            if left and read_manifest(folder) != kept:
                continue
            raise CairnError(f"{folder / AUGMENTATION} is damaged: run cairn repair, then cairn group.") from error
        return Augmentation(basis, kept["rules"], kept["sha256"], segments, sources)
    raise CairnError(f"{folder / AUGMENTATION} changes faster than it can be read: try again.")


def augmentation_key(folder: Path, basis: Basis) -> str | None:
    """What `Augmentation.key` would be; None where there is no augmentation of a basis, or its list is damaged."""
    try:
        kept = read_manifest(folder)
    except CairnError:
        return None
    return str(kept["sha256"]) if kept is not None and kept["basis"] == asdict(basis) and kept["segments"] else None


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read the list of an augmentation's segments; None where there is none.

    Returns
    -------
    dict or None
        `basis`, `rules`, `segments` (their folders, and the SHA-256 of the description of each), `sha256`.

    Raises
    ------
    CairnError
        It is damaged, or of a later version.
    """
    path = folder / AUGMENTATION / MANIFEST
    if not path.is_file():
        return None
    kept = load_json(path)
    try:
        check_format(path, kept["format"], _FORMAT)
        if kept["sha256"] != _checksum(kept) or not all(name == Path(name).name for name in kept["segments"]):
            raise ValueError("it is not what was written")
    except (TypeError, KeyError, ValueError) as error:
        raise CairnError(f"{path} is damaged: run cairn repair, then cairn group.") from error
    return dict(kept)


def write_manifest(folder: Path, basis: Basis, rules: str, segments: Iterable[Segment]) -> None:
    """Name the segments of an augmentation, all or none; what it no longer names is removed."""
    parent = folder / AUGMENTATION
    parent.mkdir(exist_ok=True)
    named = {segment.folder.name: hash_file(segment.folder / META) for segment in segments}
    kept: dict[str, Any] = {"format": _FORMAT, "basis": asdict(basis), "rules": rules, "segments": named}
    save_json(parent / MANIFEST, {**kept, "sha256": _checksum(kept)})
    for path in parent.iterdir():
        if path.is_dir() and path.name not in named:
            shutil.rmtree(path, ignore_errors=True)


def empty_augmentation(folder: Path) -> bool:
    """Forget what photos borrow, of a collection that has an augmentation: the next `cairn group` finds it anew.

    Gives whether it has one.
    """
    there = is_augmented(folder)
    if there:
        write_manifest(folder, Basis("", "", ""), "", [])
    return there


def remove_augmentation(folder: Path) -> None:
    """Remove the augmentation of a collection, if it has one."""
    (folder / AUGMENTATION / MANIFEST).unlink(missing_ok=True)  # first: without it the rest counts for nothing
    shutil.rmtree(folder / AUGMENTATION, ignore_errors=True)


def write_loans(folder: Path, basis: Basis, loans: Sequence[Loan]) -> Segment:
    """Write what photos borrow as a segment, which counts for nothing before `write_manifest` names it.

    Parameters
    ----------
    folder : Path
        Of the collection.
    basis : Basis
    loans : sequence of Loan
        By ascending number of the photo; at least one.
    """
    parent = folder / AUGMENTATION
    parent.mkdir(exist_ok=True)
    taken = [int(path.name) for path in parent.iterdir() if path.name.isdecimal()]
    sources = np.array([(loan.photo, source) for loan in loans for source in loan.sources], _SOURCE)
    signatures = [loan.signatures for loan in loans if loan.signatures is not None]
    return write_segment(
        parent / f"{max(taken, default=0) + 1:06d}",
        image_numbers=np.array([loan.photo for loan in loans], np.uint32),
        words=[loan.words for loan in loans],
        columns={SIGNATURE: signatures} if signatures else {},
        vocabulary_fingerprint=basis.vocabulary,
        descriptor_fingerprint=basis.descriptor,
        notes=sources.tobytes(),
    )


def read_loans(augmentation: Augmentation, image_numbers: NDArray[np.integer], which: Iterable[int]) -> list[Loan]:
    """What photos borrow that counts, of some segments, by ascending number of the photo."""
    counting = augmentation.borrowed(image_numbers).counting
    every = augmentation.sources_of(image_numbers)
    loans = []
    for segment, counts in ((augmentation.segments[one], counting[one]) for one in which):
        positions = np.flatnonzero(counts)
        signatures = segment.signatures_of(positions) if segment.signatures is not None else [None] * len(positions)
        images = segment.some_images(positions)
        numbers = segment.image_numbers[positions].tolist()
        loans += [
            Loan(number, every[number], image.words.astype(np.uint32), some)
            for number, image, some in zip(numbers, images, signatures, strict=True)
        ]
    return sorted(loans, key=lambda loan: loan.photo)


def merge_loans(folder: Path, augmentation: Augmentation, image_numbers: NDArray[np.integer], batch: int) -> bool:
    """Merge small segments of an augmentation, and leave out what no longer counts; whether there was any to do.

    Parameters
    ----------
    folder : Path
        Of the collection.
    augmentation : Augmentation
    image_numbers : ndarray, shape (N,), integer
        Of the photos of the collection.
    batch : int
        Photos of a segment.

    Raises
    ------
    CairnError
        A segment that is to be written again is damaged.
    """
    counting = augmentation.borrowed(image_numbers).counting
    whole = [bool(counts.all()) for counts in counting]
    small = [which for which, counts in enumerate(counting) if counts.sum() <= batch // 2]
    again = {which for which, is_whole in enumerate(whole) if not is_whole} | set(small if len(small) > 1 else [])
    if not again:
        return False
    for which in again:
        if augmentation.segments[which].verify():
            raise CairnError(f"{augmentation.segments[which].folder} is damaged: run cairn repair, then cairn group.")
    loans = read_loans(augmentation, image_numbers, sorted(again))
    merged = [
        write_loans(folder, augmentation.basis, loans[start : start + batch]) for start in range(0, len(loans), batch)
    ]
    stay = [segment for which, segment in enumerate(augmentation.segments) if which not in again]
    write_manifest(folder, augmentation.basis, augmentation.rules, [*stay, *merged])
    return True


@dataclass(frozen=True)
class AugmentationState:
    """What is in the folder of an augmentation."""

    files: list[Path]  # that belong to it
    damaged: list[str]  # paths in the collection of files that are not what was written
    others: list[str]  # names of what else is there


def look_at_augmentation(folder: Path) -> AugmentationState:
    """Read all files of the augmentation of a collection again, if it has one, of whatever words."""
    parent = folder / AUGMENTATION
    if not parent.is_dir():
        return AugmentationState([], [], [])
    try:
        kept = read_manifest(folder)
    except CairnError:
        return AugmentationState([parent / MANIFEST], [f"{AUGMENTATION}/{MANIFEST}"], [])
    named: Mapping[str, str] = kept["segments"] if kept is not None else {}
    files, damaged = [parent / MANIFEST] if kept is not None else [], []
    for name, digest in named.items():
        try:
            segment = _open_segment(folder, name, digest)
            _read_sources(segment)
            bad = segment.verify()
        except (CairnError, OSError):
            bad = verify_segment(parent / name) or [META]
        damaged += [f"{AUGMENTATION}/{name}/{file}" for file in bad]
        files += sorted((parent / name).glob("*"))
    others = sorted(path.name for path in parent.iterdir() if path.name not in {MANIFEST, *named})
    return AugmentationState(files, damaged, others)


def _open_segment(folder: Path, name: str, digest: str) -> Segment:
    """Open a segment of an augmentation whose description has a checksum."""
    path = folder / AUGMENTATION / name
    if hash_file(path / META) != digest:
        raise CairnError(f"{path} is damaged: run cairn repair, then cairn group.")
    return Segment.open(path)


def _read_sources(segment: Segment) -> NDArray[Any]:
    """Which photos of a segment borrow from which, by its notes."""
    notes = segment.notes
    if len(notes) % _SOURCE.itemsize:
        raise CairnError(f"{segment.folder} is damaged: run cairn repair, then cairn group.")
    return np.frombuffer(notes, _SOURCE)


def _checksum(kept: Mapping[str, Any]) -> str:
    """Of what a manifest says."""
    return fingerprint(
        {}, {key: json.dumps(kept[key], sort_keys=False) for key in ("format", "basis", "rules", "segments")}
    )
