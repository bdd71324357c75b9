"""The augmentation of a collection: features that photos borrow from others that show the same, in separate files.

The folder `augmentation` has segments like those of photos, without geometry: image numbers are those of the borrowing
photos, and the notes name the photos that they borrow from. `augmentation.json` lists the segments, and is replaced as
a whole; if it exists, the collection is to have an augmentation. Everything can be made again from the links between
photos.
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
from index.errors import CairnError, LaterVersion
from index.files.names import is_plain_name
from index.segments.description import META, SIGNATURE, verify_segment
from index.segments.segment import Segment
from index.segments.writing import write_segment
from retrieval.collection.layout import AUGMENTATION

MANIFEST = "augmentation.json"
_FORMAT = 1
_LOOKS = 5  # attempts to read files that may be replaced meanwhile
_SOURCE = np.dtype([("photo", "<u4"), ("source", "<u4")])


@dataclass(frozen=True)
class Basis:
    """Inputs that borrowed features depend on: if any of them changes, they are invalid."""

    vocabulary: str  # fingerprint
    descriptor: str  # fingerprint
    signature: str  # kind, by its name


@dataclass(frozen=True)
class Loan:
    """Features that one photo borrows."""

    photo: int  # number of the photo
    # numbers of the photos that it may borrow from, the best linked first
    sources: tuple[int, ...]
    words: NDArray[np.integer]  # (n,)
    signatures: NDArray[np.uint8] | None  # (n, B) uint8: for features with signatures


@dataclass(frozen=True)
class Augmentation:
    """An opened augmentation."""

    basis: Basis
    rules: str  # rules of borrowing
    key: str  # unique to this augmentation
    segments: tuple[Segment, ...]  # if several contain a photo, the last one counts
    sources: tuple[NDArray[Any], ...]  # for each segment, which photos borrow from which

    def borrowed(self, image_numbers: NDArray[np.integer]) -> Borrowed:
        """Return the borrowed features whose sources are all among the photos of the collection."""
        there = np.zeros(int(image_numbers.max(initial=0)) + 2, bool)  # the last element stands for all larger numbers
        there[image_numbers] = True
        later = np.zeros_like(there)
        counting: list[NDArray[np.bool_]] = []
        for segment, sources in zip(reversed(self.segments), reversed(self.sources), strict=True):
            numbers = np.minimum(segment.image_numbers, len(there) - 1)
            photos, lenders = (np.minimum(sources[side], len(there) - 1) for side in ("photo", "source"))
            counts = there & ~later
            counts[photos[~there[lenders]]] = False
            counting.append(counts[numbers])
            later[numbers] = True
        return Borrowed(self.segments, tuple(reversed(counting)))

    def sources_of(self, image_numbers: NDArray[np.integer]) -> dict[int, tuple[int, ...]]:
        """The photos that each photo borrows from."""
        counting = self.borrowed(image_numbers).counting
        sources: dict[int, tuple[int, ...]] = {}
        for which, counts in enumerate(counting):
            sources |= self._sources_in(which, counts)
        return sources

    def _sources_in(self, which: int, counting: NDArray[np.bool_]) -> dict[int, tuple[int, ...]]:
        """The photos that some photos of a segment borrow from."""
        numbers, sources = self.segments[which].image_numbers[counting], self.sources[which]
        by_photo: dict[int, list[int]] = {number: [] for number in numbers.tolist()}
        for photo, source in sources[np.isin(sources["photo"], numbers)].tolist():
            by_photo[photo].append(source)
        return {photo: tuple(several) for photo, several in by_photo.items()}

    def loans(self, which: int, counting: NDArray[np.bool_]) -> list[Loan]:
        """Borrowed features of some photos of a segment, by ascending number. `counting` (images of the segment,) bool:
        whether each photo is wanted.
        """
        segment, sources = self.segments[which], self._sources_in(which, counting)
        positions = np.flatnonzero(counting)
        signatures = segment.signatures_of(positions) if segment.signatures is not None else [None] * len(positions)
        numbers = segment.image_numbers[positions].tolist()
        return [
            Loan(number, sources[number], image.words.astype(np.uint32), some)
            for number, image, some in zip(numbers, segment.some_images(positions), signatures, strict=True)
        ]


def is_augmented(folder: Path) -> bool:
    """Whether the collection in a folder is to have an augmentation."""
    return (folder / AUGMENTATION / MANIFEST).is_file()


def open_augmentation(folder: Path, basis: Basis) -> Augmentation | None:
    """Open the augmentation of a collection; None if it is missing, of another basis or of a later version."""
    for attempts in reversed(range(_LOOKS)):
        try:
            manifest = read_manifest(folder)
        except LaterVersion:
            return None
        if manifest is None or manifest["basis"] != asdict(basis):
            return None
        try:
            segments = tuple(_open_segment(folder, name, digest) for name, digest in manifest["segments"].items())
            sources = tuple(_read_sources(segment) for segment in segments)
        except LaterVersion:
            return None
        except (CairnError, FileNotFoundError) as error:
            # Segments may have been replaced meanwhile.
            if attempts and read_manifest(folder) != manifest:
                continue
            raise CairnError(
                "{augmentation} is damaged: run {cairn repair}, then {cairn group}.", augmentation=folder / AUGMENTATION
            ) from error
        return Augmentation(basis, manifest["rules"], manifest["sha256"], segments, sources)
    raise CairnError("{path} changes faster than it can be read: try again.", path=folder / AUGMENTATION)


def augmentation_key(folder: Path, basis: Basis) -> str | None:
    """`Augmentation.key` of a collection's augmentation; None if it is missing, of another basis or damaged."""
    try:
        manifest = read_manifest(folder)
    except CairnError:
        return None
    return (
        str(manifest["sha256"])
        if manifest is not None and manifest["basis"] == asdict(basis) and manifest["segments"]
        else None
    )


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read the manifest of an augmentation, None if there is no augmentation: `basis`, `rules`, `segments` (their
    folders, and the SHA-256 of the description of each), and `sha256` of the other entries.

    Raises LaterVersion if a later version wrote it; its `sha256` is valid even then.
    """
    path = folder / AUGMENTATION / MANIFEST
    if not path.is_file():
        return None
    manifest = load_json(path)
    try:
        if manifest["sha256"] != _checksum(manifest):
            raise ValueError("it is not what was written")
        check_format(path, manifest["format"], _FORMAT)
        if not all(map(is_plain_name, manifest["segments"])):
            raise ValueError("it is not what was written")
    except (TypeError, KeyError, ValueError) as error:
        raise CairnError("{path} is damaged: run {cairn repair}, then {cairn group}.", path=path) from error
    return dict(manifest)


def write_manifest(folder: Path, basis: Basis, rules: str, segments: Iterable[Segment]) -> None:
    """Write the manifest of an augmentation atomically, and remove files that it no longer names."""
    parent = folder / AUGMENTATION
    parent.mkdir(exist_ok=True)
    named = {segment.folder.name: hash_file(segment.folder / META) for segment in segments}
    manifest: dict[str, Any] = {"format": _FORMAT, "basis": asdict(basis), "rules": rules, "segments": named}
    save_json(parent / MANIFEST, {**manifest, "sha256": _checksum(manifest)})
    for path in parent.iterdir():
        if path.is_dir() and path.name not in named:
            shutil.rmtree(path, ignore_errors=True)


def empty_augmentation(folder: Path) -> None:
    """Empty the augmentation of a collection, for the next `cairn group`; call it with `lock_links` held."""
    if is_augmented(folder):
        write_manifest(folder, Basis("", "", ""), "", [])


def remove_augmentation(folder: Path) -> None:
    """Remove the augmentation of a collection, if it has one."""
    (folder / AUGMENTATION / MANIFEST).unlink(missing_ok=True)  # first: without it the rest is ignored
    shutil.rmtree(folder / AUGMENTATION, ignore_errors=True)


def write_loans(folder: Path, basis: Basis, loans: Sequence[Loan]) -> Segment:
    """Write borrowed features, by ascending photo, as a segment, which is ignored until `write_manifest` names it."""
    parent = folder / AUGMENTATION
    parent.mkdir(exist_ok=True)
    taken = [int(path.name) for path in parent.iterdir() if path.name.isdecimal()]
    sources = np.array([(loan.photo, source) for loan in loans for source in loan.sources], _SOURCE)
    signed = [loan.signatures for loan in loans if loan.signatures is not None]
    # Photos that borrow nothing have no entry.
    signatures = [loan.signatures if loan.signatures is not None else signed[0][:0] for loan in loans] if signed else []
    return write_segment(
        parent / f"{max(taken, default=0) + 1:06d}",
        image_numbers=np.array([loan.photo for loan in loans], np.uint32),
        words=[loan.words for loan in loans],
        columns={SIGNATURE: signatures} if signatures else {},
        vocabulary_fingerprint=basis.vocabulary,
        descriptor_fingerprint=basis.descriptor,
        notes=sources.tobytes(),
    )


def merge_loans(
    folder: Path, augmentation: Augmentation, image_numbers: NDArray[np.integer], batch: int, *, idle: float = 0.0
) -> None:
    """Merge small segments of an augmentation, and drop invalid borrowed features.

    `image_numbers` (N,): of the photos of the collection. `batch`: most photos of a merged segment. `idle`: largest
    part of invalid photos in a segment that is not rewritten for that alone.
    """
    counting = augmentation.borrowed(image_numbers).counting
    again = {which for which, counts in enumerate(counting) if not counts.all() and counts.mean() < 1 - idle}
    small = {which for which, counts in enumerate(counting) if counts.sum() <= batch // 2}
    again |= small if len(small) > 1 else set()
    for which in sorted(again):
        if augmentation.segments[which].verify():
            raise CairnError(
                "{folder} is damaged: run {cairn repair}, then {cairn group}.",
                folder=augmentation.segments[which].folder,
            )
    merged: list[Segment] = []
    loans: list[Loan] = []

    def write() -> None:
        if loans:
            merged.append(write_loans(folder, augmentation.basis, sorted(loans, key=lambda loan: loan.photo)))
            loans.clear()

    for which in sorted(again):
        if len(loans) + int(counting[which].sum()) > batch:
            write()
        loans += augmentation.loans(which, counting[which])
    write()
    if again:
        stay = [segment for which, segment in enumerate(augmentation.segments) if which not in again]
        write_manifest(folder, augmentation.basis, augmentation.rules, [*stay, *merged])


@dataclass(frozen=True)
class AugmentationState:
    """Contents of the folder of an augmentation."""

    files: list[Path]  # its files
    damaged: list[str]  # paths, in the collection, of damaged files
    others: list[str]  # names of other files and folders


def look_at_augmentation(folder: Path) -> AugmentationState:
    """Check all files of a collection's augmentation, of any vocabulary, unless a later version wrote it."""
    parent = folder / AUGMENTATION
    if not parent.is_dir():
        return AugmentationState([], [], [])
    try:
        manifest = read_manifest(folder)
    except LaterVersion:
        return AugmentationState([], [], [])
    except CairnError:
        return AugmentationState([parent / MANIFEST], [f"{AUGMENTATION}/{MANIFEST}"], [])
    named: Mapping[str, str] = manifest["segments"] if manifest is not None else {}
    files, damaged = [parent / MANIFEST] if manifest is not None else [], []
    for name, digest in named.items():
        try:
            segment = _open_segment(folder, name, digest)
            _read_sources(segment)
            bad = segment.verify()
        except LaterVersion:
            continue
        except (CairnError, OSError):
            bad = verify_segment(parent / name) or [META]
        damaged += [f"{AUGMENTATION}/{name}/{file}" for file in bad]
        files += sorted((parent / name).glob("*"))
    others = sorted(path.name for path in parent.iterdir() if path.name not in {MANIFEST, *named})
    return AugmentationState(files, damaged, others)


def _open_segment(folder: Path, name: str, digest: str) -> Segment:
    """Open a segment of an augmentation whose description has this checksum."""
    path = folder / AUGMENTATION / name
    if hash_file(path / META) != digest:
        raise CairnError("{path} is damaged: run {cairn repair}, then {cairn group}.", path=path)
    return Segment.open(path)


def _read_sources(segment: Segment) -> NDArray[Any]:
    """Read which photos of a segment borrow from which, from its notes."""
    notes = segment.notes
    if len(notes) % _SOURCE.itemsize:
        raise CairnError("{folder} is damaged: run {cairn repair}, then {cairn group}.", folder=segment.folder)
    return np.frombuffer(notes, _SOURCE)


def _checksum(manifest: Mapping[str, Any]) -> str:
    """Checksum of the entries of a manifest, whatever its format."""
    return fingerprint({}, {key: json.dumps(value) for key, value in manifest.items() if key != "sha256"})
