"""Train a new vocabulary for a collection that has outgrown its own, while searches go on with the old one."""

import hashlib
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import load_array, load_json, publish_folder, save_array, save_json
from index.attributes import some_of
from index.clustering.sources import FileSource
from index.errors import CairnError
from index.hamming.kinds import full_name, parse_signature
from index.hamming.sources import make_source
from index.messages import Message, said
from index.progress import Progress, Timed, silent
from index.reports import Report, rounded
from index.segments.segment import ImageFeatures, Segment
from index.text import printable
from index.vocabulary import Vocabulary, VocabularyOptions, default_words
from retrieval.catalogue.changes import Rewritten, quantisation_errors, replace_segments
from retrieval.catalogue.failures import Failure, keep_failures
from retrieval.catalogue.photos import all_indexed, count_indexed
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import segments_and_tombstones
from retrieval.catalogue.settings import reserve_numbers
from retrieval.collection.augmentation import empty_augmentation, is_augmented
from retrieval.collection.collection import Collection
from retrieval.collection.layout import (
    OPTIONS,
    RETRAINING,
    SEGMENTS,
    SIGNATURE_KEY,
    TRAINED_KEY,
    VOCABULARY,
    VOCABULARY_KEY,
)
from retrieval.collection.locking import CollectionLocked, lock_links
from retrieval.collection.options import FORMAT, options_format, write_options
from retrieval.collection.sealing import changed, seal
from retrieval.collection.segment_writing import sign, write_photos
from retrieval.collection.segments import check_sound, open_segment, segment_row
from retrieval.collection.stale_files import remove_leftovers
from retrieval.collection.vocabulary_descriptor import files_of, kept_files, write_files
from retrieval.descriptors.foreign import is_foreign
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.encoding import encode_geometry
from retrieval.features.extraction import Extractor
from retrieval.features.staging import Staging, stage_all
from retrieval.foreign.computed import make_extractor
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.metadata.pages import file_of, hash_photo
from retrieval.photos.listing import lies_below

SUCCESSOR = {"faiss": "ivf"}
"""Replaces the default search of earlier versions."""


@dataclass(frozen=True)
class Retrained(Report):
    """Result of `Collection.retrain`."""

    images: Annotated[int, "Photos of the collection."]
    words: Annotated[dict[str, int], "Visual words, before and after."]
    quantisation_error: Annotated[
        dict[str, float], "Mean squared distance of features to their words, before and after."
    ]
    dropped: Annotated[list[dict[str, str]], "Name and reason of dropped photos."]
    augmentation_emptied: Annotated[bool, "Whether borrowed features were deleted: group again to renew them."]
    seconds: Annotated[dict[str, float], "Time of the steps."]


def retrain(
    collection: Collection,
    options: RetrainOptions | None = None,
    *,
    workers: int = 1,
    progress: Progress = silent,
) -> Retrained:
    """Train a new vocabulary on the current photos of a collection, and reassign the words of all features. Descriptors
    are those stored in the collection; without them, or if the descriptor changes, they are extracted from the photos.
    Searches go on with the old vocabulary until one transaction switches to the new one. An interrupted run is resumed
    by another with the same options.
    """
    options = options or RetrainOptions()
    start = time.perf_counter()
    with collection.locked(), changed(collection):
        remove_leftovers(collection)
        collection.forget()
        retraining = _Retraining(collection, options, workers, progress)
        retraining.run()
        remove_leftovers(collection)
        is_emptied = is_augmented(collection.folder)
        # If another process computes borrowed features now, they are left: with the earlier vocabulary they are
        # ignored.
        with suppress(CollectionLocked), lock_links(collection.folder):
            empty_augmentation(collection.folder)
        shutil.rmtree(collection.folder / RETRAINING, ignore_errors=True)
    return Retrained(
        images=collection.catalogue.read(count_indexed),
        words=dict(zip(("before", "after"), retraining.words, strict=True)),
        quantisation_error={"before": round(retraining.error[0], 6), "after": round(retraining.error[1], 6)},
        dropped=retraining.dropped,
        augmentation_emptied=is_emptied,
        seconds=rounded(retraining.seconds | {"total": time.perf_counter() - start}),
    )


def reassign(
    collection: Collection, vocabulary: Vocabulary, staged: Path, *, following: int = 0, workers: int = 1
) -> None:
    """Replace the vocabulary of a collection by another one, and reassign the words of all features, in one
    transaction. The caller holds the lock. `staged` is a folder with features of its photos, whose files may be gone;
    `following` photos that the vocabulary was trained on are added next. Raises CairnError if features are neither
    staged nor can be extracted again.
    """
    shutil.rmtree(collection.folder / RETRAINING, ignore_errors=True)
    retraining = _Retraining(collection, RetrainOptions(), workers, silent, following)
    retraining.run(vocabulary, staged)
    shutil.rmtree(collection.folder / RETRAINING, ignore_errors=True)


class _Retraining(Timed):
    # Before and after: visual words, and the mean squared distance of all features to their words.
    words: tuple[int, int]
    error: tuple[float, float]
    dropped: list[dict[str, str]]  # name and reason of photos

    def __init__(
        self,
        collection: Collection,
        options: RetrainOptions,
        workers: int,
        tell: Progress,
        following: int = 0,
    ) -> None:
        self.collection = collection
        self.options = options
        self.workers = workers
        self.tell = tell
        self.seconds = {"extract": 0.0, "vocabulary": 0.0, "assign": 0.0}
        self.following = following
        self.folder = collection.folder / RETRAINING
        self.rows, self.removed = collection.catalogue.read(segments_and_tombstones)
        self.extractor, self.brought = _described_by(collection, options.descriptor)
        self.is_new = self.extractor.fingerprint != collection.extractor.fingerprint
        self.segments = [
            # Without checking their vocabulary: that may be what is damaged.
            open_segment(
                collection.folder / SEGMENTS / row.folder, descriptor_fingerprint=collection.extractor.fingerprint
            )
            for row in self.rows
        ]
        self.signature = parse_signature(options.signature) if options.signature else collection.signature
        self.images = {row.number: row for row in collection.catalogue.read(all_indexed)}
        self.done = 0

    def run(self, vocabulary: Vocabulary | None = None, staged: Path | None = None) -> None:
        """Retrain, or take a vocabulary that was trained elsewhere, and features that were staged there."""
        # Results of an earlier run are valid while the collection has the vocabulary that it had then.
        before = self.collection.vocabulary_folder.name
        plan = {
            **asdict(self.options),
            "descriptor": self.extractor.descriptor.fingerprint,  # wherever its file lies
            "extractor": self.extractor.fingerprint,
            "before": before,
            "signature": full_name(self.signature),
        }
        if not (self.folder / "plan.json").is_file() or load_json(self.folder / "plan.json") != plan:
            shutil.rmtree(self.folder, ignore_errors=True)
            (self.folder / SEGMENTS).mkdir(parents=True)
            save_json(self.folder / "plan.json", plan)
        self.staging = Staging(self.folder / "features", self.extractor, self.collection.options.image)
        if vocabulary is not None:
            vocabulary.save(self.folder / VOCABULARY)
        if staged is not None:
            for number in self.images:
                self.staging.take(staged / self.staging.folder.name, self._key(number))
        check_sound(segment for segment in self.segments if self._keeps(segment))
        if not self.extractor.is_ready and not all(map(self._keeps, self.segments)):
            raise CairnError(
                "{folder} stores no descriptors, and its features come from another program: give them again with "
                "{--features}.",
                folder=self.collection.folder,
            )
        self.unreadable = self._find_unreadable()
        self._refuse_unreadable()
        with self.timed("vocabulary"):
            vocabulary = self._vocabulary()
        self._refuse_unreadable()
        errors = []
        for row, segment in zip(self.rows, self.segments, strict=True):
            errors.append(self._rewrite(row, segment, vocabulary))
        self._refuse_unreadable()
        self._switch_over(vocabulary, errors)

    def _keeps(self, segment: Segment) -> bool:
        """Whether a segment stores the descriptors that words are assigned by."""
        return "descriptor" in segment.columns and not self.is_new

    def _find_unreadable(self) -> dict[int, Message]:
        """Reasons, by number, why features of photos are not available."""
        reasons: dict[int, Message] = {}
        for segment in self.segments:
            if not self._keeps(segment):
                for number in self._live(segment):
                    if self._is_staged(number):
                        continue
                    path = self.images[number].path
                    try:
                        there = file_of(path).is_file()
                    except OSError as error:
                        _refuse_forbidden(path, error)
                        there = False
                    if not there:
                        reasons[number] = Message(said("{path} is no longer there"), path=path)
        return reasons

    def _refuse_unreadable(self) -> None:
        if self.unreadable and not self.options.drop_missing:
            number, reason = next(iter(self.unreadable.items()))
            why = Message(
                said("which another descriptor needs")
                if self.is_new
                else said("and the collection keeps no descriptors")
            )
            raise CairnError(
                "{unreadable} photos cannot be read again, such as {number} ({reason}), {why}: bring them back, or run "
                "{cairn index} with the folder where they are now, or leave them out with {--drop-missing}.",
                unreadable=len(self.unreadable),
                number=repr(self.images[number].name),
                reason=reason,
                why=why,
            )

    def _live(self, segment: Segment) -> list[int]:
        """Numbers of the photos of a segment that are in the collection."""
        return [number for number in segment.image_numbers.tolist() if number in self.images]

    def _vocabulary(self) -> Vocabulary:
        """Train the vocabulary on a random sample of the photos, or load that of an earlier run."""
        folder = self.folder / VOCABULARY
        if folder.is_dir():
            return Vocabulary.load(folder)
        rng = np.random.default_rng(self.options.seed)
        # One photo of each content, as when a collection is made.
        contents = {row.sha256 or number: number for number, row in sorted(self.images.items(), reverse=True)}
        showing = [
            number
            for number in sorted(contents.values())
            if self.images[number].features and number not in self.unreadable
        ]
        made_with, folder_of = self.collection.options, self.collection.options.sample_from
        if folder_of is not None:
            showing = [number for number in showing if lies_below(Path(self.images[number].path), folder_of)]
            if not showing:
                raise CairnError(
                    "The vocabulary is made from photos in {folder_of}, and none of the collection's is there: run "
                    "{cairn index} with the folder where they are now.",
                    folder_of=folder_of,
                )
        many = made_with.sample if self.options.sample is None else self.options.sample
        sample = {showing[i] for i in rng.permutation(len(showing))[: many or None]}
        paths: list[Path] = []
        for segment in self.segments:
            chosen = [number for number in self._live(segment) if number in sample]
            paths += self._descriptors(segment, chosen)
            self.tell("extract", len(paths), len(sample))
        if not paths:
            raise CairnError("No photo of the collection has any features to compute a vocabulary from.")
        features = sum(self.images[n].features for n in (self.images if folder_of is None else showing))
        trained = Vocabulary.train(
            FileSource(paths),
            VocabularyOptions(
                words=self.options.words or default_words(features),
                iterations=self.options.iterations or made_with.iterations,
                backend=self.options.search or SUCCESSOR.get(made_with.search, made_with.search),
                seed=self.options.seed,
            ),
            descriptor=self.extractor.fingerprint,
            trained_on=f"{len(paths)} photos of {printable(self.collection.folder.name)}",
            progress=lambda done, of: self.tell("vocabulary", done, of),
        )
        trained.save(folder)
        return trained

    def _descriptors(self, segment: Segment, numbers: list[int]) -> list[Path]:
        """Files of the descriptors of some photos of a segment."""
        if not numbers:
            return []
        if not self._keeps(segment):
            return [self.staging.descriptors(key) for _, key in self._stage(numbers)]
        positions = np.searchsorted(segment.image_numbers, numbers).tolist()
        paths = []
        for number, position in zip(numbers, positions, strict=True):
            paths.append(self.staging.folder / f"{number}.npy")
            save_array(paths[-1], np.asarray(segment.image(position).columns["descriptor"]))
        return paths

    def _stage(self, numbers: list[int]) -> list[tuple[int, str]]:
        """Extract photos again; return the numbers and keys of unchanged ones."""
        photos = []
        for number in numbers:
            row = self.images[number]
            if self._is_staged(number):
                photos.append((number, Path(row.path), self._key(number)))
                continue
            try:
                same = hash_photo(row.path) == row.sha256
            except OSError as error:
                _refuse_forbidden(row.path, error)
                self.unreadable[number] = Message(said("the file cannot be read ({reason})"), reason=error.strerror)
                continue
            if same and row.sha256 is not None:
                photos.append((number, Path(row.path), self._key(number)))
            else:
                self.unreadable[number] = Message(said("the file has changed since it was indexed: run cairn index"))
        with self.timed("extract"):
            staged = list(stage_all(self.staging, [(path, key) for _, path, key in photos], self.workers))
        good = []
        for (number, _, key), one in zip(photos, staged, strict=True):
            if one.reason:
                self.unreadable[number] = Message(one.reason)
            elif self.staging.extractor.reads_files and one.features != self.images[number].features:
                self.unreadable[number] = Message(said("its features are others than those that were indexed"))
            else:
                good.append((number, key))
        return good

    def _is_staged(self, number: int) -> bool:
        """Whether the features of a photo are staged: they are kept by content, whatever its file is now."""
        return not self.extractor.reads_files and self.staging.has(self._key(number))

    def _key(self, number: int) -> str:
        row = self.images[number]
        return self.staging.key(Path(row.path), str(row.sha256))

    def _rewrite(self, row: SegmentRow, segment: Segment, vocabulary: Vocabulary) -> NDArray[np.float64]:
        """Write a segment with new words, unless an earlier run did; return the quantisation errors of its photos."""
        folder = self.folder / SEGMENTS / row.folder
        errors = folder.with_name(f"{row.folder}.npy")
        if folder.is_dir():
            known = open_segment(folder)
            wanted = [number for number in self._live(segment) if number not in self.unreadable]
            if known.vocabulary_fingerprint == vocabulary.fingerprint and known.image_numbers.tolist() == wanted:
                return load_array(errors)
            shutil.rmtree(folder)
        start = time.perf_counter()
        seed = self.collection.options.seed
        source = make_source(self.signature, vocabulary.centres, seed) if self.signature else None
        images, features, found = [], [], []
        for number, rows, column in self._features(segment):
            words = vocabulary.assign(rows)
            found.append(vocabulary.error_of(rows, words))
            images.append(_with_error(self.images[number], found[-1]))
            features.append(ImageFeatures(words, column | sign(source, rows, words), self._elongation(number)))
            self.done += 1
            self.tell("index", self.done, len(self.images))
        self.seconds["assign"] += time.perf_counter() - start
        if images:
            save_array(errors, np.array(found))
            made_with = {"vocabulary": vocabulary.fingerprint, "descriptor": self.extractor.fingerprint}
            write_photos(self.collection, images, features, folder=folder, **made_with)
        return np.array(found)

    def _elongation(self, number: int) -> float:
        """Elongation of a photo of the collection."""
        row = self.images[number]
        return self.collection.options.image.elongation(row.width or 1, row.height or 1)

    def _features(self, segment: Segment) -> Iterator[tuple[int, NDArray[np.float32], dict[str, NDArray[Any]]]]:
        """Number, float32 descriptors and columns of each photo of a segment that is in the collection."""
        live = [number for number in self._live(segment) if number not in self.unreadable]
        if self._keeps(segment):
            for number, position in zip(live, np.searchsorted(segment.image_numbers, live).tolist(), strict=True):
                columns = segment.image(position).columns
                yield number, columns["descriptor"].astype(np.float32), columns
            return
        for number, key in self._stage(live):
            features = self.staging.read(key)
            row = self.images[number]
            side = max(row.width or 1, row.height or 1)
            column = encode_geometry(features, side, upright=self.collection.options.features.upright)
            if "descriptor" in segment.columns:
                column["descriptor"] = features.descriptors
            yield number, features.descriptors.astype(np.float32), column
        self.staging.discard(map(self._key, live))

    def _switch_over(self, vocabulary: Vocabulary, errors: list[NDArray[np.float64]]) -> None:
        """Move the new vocabulary and segments into place, and commit them: all or nothing."""
        catalogue, target = self.collection.catalogue, self.collection.folder
        words = _words(self.collection)
        taken = [path.name for path in target.glob(f"{VOCABULARY}*")]
        place = 1 + max((int(name[-6:]) for name in taken if name[-6:].isdecimal()), default=1)
        name = f"{VOCABULARY}-{place:06d}"
        # A copy: it took longest to make, and must not be lost if the process is killed now.
        temporary = target / f".{name}.{hashlib.sha256(vocabulary.fingerprint.encode()).hexdigest()[:8]}.tmp"
        temporary.mkdir()
        for path in (self.folder / VOCABULARY).iterdir():
            shutil.copyfile(path, temporary / path.name)
        write_files(temporary, self.brought)
        publish_folder(temporary, target / name)
        new = []
        for row, error in zip(self.rows, errors, strict=True):
            if len(error):
                final = target / SEGMENTS / catalogue.next_folder(target / SEGMENTS)
                publish_folder(self.folder / SEGMENTS / row.folder, final)
                segment = open_segment(final, vocabulary_fingerprint=vocabulary.fingerprint)
                new.append(Rewritten(segment_row(segment), segment.image_numbers, error))
        if self.signature is not None and options_format(target / OPTIONS) < FORMAT:
            # Earlier versions, which do not know signatures, must refuse the collection.
            write_options(target / OPTIONS, self.collection.options)
            seal(self.collection)
        before = catalogue.read(quantisation_errors, 0)[1][1]
        with catalogue.writing() as session:
            replace_segments(
                session,
                [row.id for row in self.rows],
                new,
                {
                    VOCABULARY_KEY: name,
                    TRAINED_KEY: str(reserve_numbers(session, 0) + self.following),
                    SIGNATURE_KEY: full_name(self.signature),
                },
                leave_out=list(self.unreadable),
            )
            failures = [Failure(self.images[number].path, str(reason)) for number, reason in self.unreadable.items()]
            keep_failures(session, failures)
        self.dropped = [
            {"name": self.images[number].name or "", "reason": str(reason)}
            for number, reason in self.unreadable.items()
        ]
        self.words = (words, vocabulary.words)
        self.error = (before, catalogue.read(quantisation_errors, 0)[1][1])


def _described_by(collection: Collection, wanted: str) -> tuple[Extractor, dict[str, bytes]]:
    """Return the extractor to use from now on, and the files that record it in the vocabulary's folder."""
    if not wanted:
        return collection.extractor, kept_files(collection.vocabulary_folder)
    if collection.extractor.is_foreign:
        raise CairnError(
            "{folder} has features from another program, which Cairn cannot describe again: create another "
            "collection with that descriptor.",
            folder=collection.folder,
        )
    if is_foreign(wanted):
        raise CairnError(
            "{wanted} is a descriptor of another program: create another collection with {--features}.", wanted=wanted
        )
    return make_extractor(find_descriptor(wanted), collection.options.features), files_of(wanted)


def _refuse_forbidden(path: str, error: OSError) -> None:
    """Raise CairnError if a photo may not be read: it must not be dropped as a missing one."""
    if isinstance(error, PermissionError):
        raise CairnError(
            "{path} cannot be read ({value}): make the file and its folder readable, or remove the photo with "
            "{cairn remove}.",
            path=path,
            value=error.strerror,
        ) from error


def _words(collection: Collection) -> int:
    """Size of the vocabulary in use; 0 if it cannot be read, which may be the reason for retraining."""
    try:
        return collection.vocabulary.words
    except CairnError:
        return 0


def _with_error(row: ImageRow, error: float) -> ImageRow:
    """A copy of a row with a new quantisation error."""
    of_file = some_of(row, "number", "path", "name", "sha256", "size", "mtime_ns")
    return ImageRow(**of_file, **some_of(row, "width", "height", "features", "date_added"), quantisation_error=error)
