"""Train the vocabulary of a collection on new photos: the final one, or a small one of the first photos alone.

If many photos are added to a new collection, thousands are extracted before the final vocabulary can be trained. So
that somebody who waits can search, the first of them may be added with a vocabulary of their own: it is in the folder
`EARLY`, until the final one replaces it, and the words of these photos, in one transaction.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from index.arrays import load_json
from index.errors import CairnError
from index.progress import Progress, Step, silent
from index.text import printable
from index.vocabulary import Vocabulary, VocabularyOptions, default_words
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.segment_rows import segments_in
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import EARLY, RETRAINING, STAGING, VOCABULARY, VOCABULARY_KEY
from retrieval.features.staging import Staged, Staging
from retrieval.indexing.preparing import Preparer
from retrieval.indexing.report import FoundFile, IndexReport, record_failures
from retrieval.metadata.pages import hash_photo
from retrieval.photos.listing import lies_below

FIRST = 200
"""Photos that are added first, with words of their own."""

FEWEST = 500
"""New photos that are worth it: adding the first ones twice takes about ten seconds of a core."""

_ITERATIONS = 3  # of k-means
_FEWER_WORDS = 4  # times, than a collection of these photos alone would have: they are used for minutes
_FEATURELESS = "it shows nothing to make a vocabulary from: index it with photos that do"
_TEXT_ALONE = "it shows nothing but text, which is left out: index it with photos that show more"


def train_vocabulary(
    collection: Collection,
    preparer: Preparer,
    files: Sequence[FoundFile],
    report: IndexReport,
    extracted: Callable[[FoundFile, Staged], None],
    tell: Progress,
) -> Vocabulary | None:
    """Train a vocabulary on a random sample of the photos, or of those below the folder `sample_from`, streamed from
    disk; None if no photo has features. All are then recorded as failed, and added by the next run that adds photos
    with features.
    """
    options = collection.options
    rng = np.random.default_rng(options.seed)
    among = files
    if options.sample_from is not None:
        among = [file for file in files if lies_below(file.path, options.sample_from)]
        if not among:
            raise CairnError(
                "None of the {count} photos to be indexed lies in {folder}, from which the "
                "vocabulary is to be made: index that folder first, or with the others.",
                count=len(files),
                folder=options.sample_from,
            )
    chosen = np.sort(rng.permutation(len(among))[: options.sample or None])
    sample = [among[number] for number in chosen]
    staged = []
    start = time.perf_counter()
    for file, one in zip(sample, preparer.stage(sample), strict=True):
        staged.append(one)
        extracted(file, one)
    spent = time.perf_counter() - start
    report.seconds["extract"] += spent
    report.seconds["vocabulary"] -= spent

    described = [(file, one) for file, one in zip(sample, staged, strict=True) if one.features]
    features = sum(one.features for one in staged)
    if not features:
        reasons = [one.reason or (_TEXT_ALONE if one.remarks.text else _FEATURELESS) for one in staged]
        record_failures(collection, [file.failure(why) for file, why in zip(sample, reasons, strict=True)], report)
        if len(sample) < len(files):
            raise CairnError(
                "None of {count} photos has any features to compute a vocabulary from: first index some that do.",
                count=len(sample),
            )
        return None
    expected = features * len(among) / len(sample)
    words = options.words or default_words(int(expected))
    where = f"{len(described)} photos of {printable(collection.folder.name)}"
    return _train(
        collection, preparer, described, words, options.iterations, where, lambda done, of: tell("vocabulary", done, of)
    )


def make_early_vocabulary(
    collection: Collection,
    preparer: Preparer,
    files: Sequence[FoundFile],
    extracted: Callable[[FoundFile, Staged], None],
) -> bool:
    """Train a small vocabulary on the first photos, and keep it as `EARLY`; False if none of them has features."""
    good = []
    for file, one in zip(files, preparer.stage(files), strict=True):
        extracted(file, one)
        if one.features:
            good.append((file, one))
    if not good:
        return False
    words = default_words(sum(one.features for _, one in good) // _FEWER_WORDS)
    iterations = min(_ITERATIONS, collection.options.iterations)
    where = f"the first {len(good)} photos of {printable(collection.folder.name)}"
    vocabulary = _train(collection, preparer, good, words, iterations, where, silent)
    # Named first: without the folder the collection has no vocabulary.
    collection.catalogue.write(keep_setting, VOCABULARY_KEY, EARLY)
    vocabulary.save(collection.vocabulary_folder)
    return True


def _train(
    collection: Collection,
    preparer: Preparer,
    described: Sequence[tuple[FoundFile, Staged]],
    words: int,
    iterations: int,
    where: str,
    tell: Step,
) -> Vocabulary:
    made_with = collection.options
    options = VocabularyOptions(words=words, iterations=iterations, backend=made_with.search, seed=made_with.seed)
    return preparer.train([file for file, _ in described], [one for _, one in described], options, where, tell)


def remove_early_remains(collection: Collection) -> None:
    """Remove what a run left that was killed before photos had the early words, or after they had the final ones."""
    is_early = collection.has_early_words
    if is_early and not collection.catalogue.read(segments_in):
        shutil.rmtree(collection.vocabulary_folder, ignore_errors=True)
        collection.catalogue.write(keep_setting, VOCABULARY_KEY, VOCABULARY)
        collection.forget()
    plan = collection.folder / RETRAINING / "plan.json"
    with suppress(CairnError, AttributeError):
        if not is_early and plan.is_file() and load_json(plan).get("before") == EARLY:
            shutil.rmtree(plan.parent, ignore_errors=True)


def added_files(collection: Collection) -> list[FoundFile]:
    """The files of the photos of a collection, by number.

    Raises CairnError if a photo's features are not staged and its file is not what was indexed.
    """
    staging = Staging(collection.folder / STAGING, collection.extractor, collection.options.image)
    files = []
    for row in collection.catalogue.read(all_indexed):
        path, content = Path(row.path), row.sha256 or ""
        if not staging.has(staging.key(path, content)) and not _is_unchanged(path, content):
            raise CairnError(
                "The photo {name} was added with provisional words, and its file is gone or has changed: bring it "
                "back, or run {cairn retrain --drop-missing}.",
                name=repr(row.name),
            )
        files.append(FoundFile(path, row.name or "", row.size or 0, row.mtime_ns or 0, content))
    return files


def _is_unchanged(path: Path, content: str) -> bool:
    try:
        return hash_photo(path) == content
    except (CairnError, OSError):
        return False
