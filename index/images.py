"""The images of several segments as one: their numbers, words, other features and signatures."""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.messages import Message, said
from index.segments.segment import ImageFeatures, Segment


class IndexedImages:
    """The images of any number of segments of one vocabulary and descriptor, without those that were removed. `starts`
    (segments + 1,): first image of each segment among those of all, removed ones included; `numbers` (N,), ascending;
    `rows` (N,): their positions among those of all segments.
    """

    def __init__(self, segments: Sequence[Segment], words: int, removed: Collection[int] = frozenset()) -> None:
        self.segments = tuple(segments)
        self.words = words
        for thing in (said("vocabulary"), said("descriptor")):
            if len({getattr(segment, f"{thing}_fingerprint") for segment in self.segments}) > 1:
                raise CairnError(
                    "The segments were made with more than one {thing}: index the photos again with one.",
                    thing=Message(thing),
                )
        numbers = np.concatenate([np.empty(0, dtype=np.uint32), *(segment.image_numbers for segment in self.segments)])
        self._removed = np.isin(numbers, np.fromiter(removed, dtype=np.int64, count=len(removed)))
        order = np.argsort(numbers, kind="stable")
        self.rows = order[~self._removed[order]]
        self.numbers = numbers[self.rows]
        if (self.numbers[1:] == self.numbers[:-1]).any():
            raise CairnError("Two segments hold the same image: run {cairn check}, or index the photos again.")
        self.starts = np.concatenate([[0], np.cumsum([segment.images for segment in self.segments])]).astype(np.int64)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many features each image has, (N,), in the order of `numbers`."""
        counts = [np.diff(segment.offsets.astype(np.int64)) for segment in self.segments]
        return np.concatenate([np.zeros(0, np.int64), *counts])[self.rows]

    @cached_property
    def places(self) -> list[NDArray[np.int64]]:
        """Positions in `numbers` of each segment's images; -1 for those that were removed."""
        places = np.full(int(self.starts[-1]), -1)
        places[self.rows] = np.arange(len(self.rows))
        return np.split(places, self.starts[1:-1]) if self.segments else []

    def features(self, image_number: int) -> ImageFeatures:
        """The features of an image, as views of its segment. Raises KeyError if it does not exist or was removed."""
        return self.features_of([image_number])[0]

    def features_of(self, image_numbers: Sequence[int]) -> list[ImageFeatures]:
        """The features of some images, as by `features`, with their words decoded together. Raises KeyError."""
        features: dict[int, ImageFeatures] = {}
        for segment, which, positions in self._by_segment(image_numbers):
            known = segment.words_of(positions)
            self.refuse_unknown(known[1], segment)
            features.update(zip(which.tolist(), segment.some_images(positions, known), strict=True))
        return [features[one] for one in range(len(image_numbers))]

    def signatures(self, image_number: int) -> NDArray[np.uint8]:
        """The signatures (n, B) of the features of an image, in the order of `features`. Raises KeyError."""
        return self.signatures_of([image_number])[0]

    def signatures_of(self, image_numbers: Sequence[int]) -> list[NDArray[np.uint8]]:
        """The signatures of some images, as by `signatures`, in little more time. Raises KeyError."""
        signatures: dict[int, NDArray[np.uint8]] = {}
        for segment, which, positions in self._by_segment(image_numbers):
            signatures.update(zip(which.tolist(), segment.signatures_of(positions), strict=True))
        return [signatures[one] for one in range(len(image_numbers))]

    def feature_counts(self, image_numbers: Sequence[int]) -> NDArray[np.int64]:
        """Number of features (n,) of some images; nothing is decoded. Raises KeyError."""
        counts = np.empty(len(image_numbers), np.int64)
        for segment, which, positions in self._by_segment(image_numbers):
            counts[which] = segment.offsets[positions + 1] - segment.offsets[positions]
        return counts

    def _by_segment(
        self, image_numbers: Sequence[int]
    ) -> Iterator[tuple[Segment, NDArray[np.int64], NDArray[np.int64]]]:
        """Group images by segment: the segment, indices of its images, and positions in it. Raises KeyError."""
        requested = np.asarray(image_numbers, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.numbers, requested), max(len(self.numbers) - 1, 0))
        missing = self.numbers[at] != requested if len(self.numbers) else np.ones(len(requested), bool)
        if missing.any():
            raise KeyError(int(requested[missing.argmax()]))
        rows = self.rows[at]
        owners = np.searchsorted(self.starts, rows, side="right") - 1
        for k in np.unique(owners).tolist():
            which = np.flatnonzero(owners == k)
            yield self.segments[k], which, rows[which] - self.starts[k]

    def document_frequency(self) -> NDArray[np.int64]:
        """How many of the images have each word, (words,) int64."""
        frequency = np.zeros(self.words, dtype=np.int64)
        for segment in self.segments:
            frequency += segment.document_frequency(self.words)
        for words in self._removed_words():
            frequency[np.unique(words)] -= 1
        return frequency

    def feature_frequency(self) -> NDArray[np.float64]:
        """How many features of the images have each word, (words,) float64."""
        features = np.zeros(self.words)
        for segment in self.segments:
            features += segment.feature_frequency(self.words)
        for words in self._removed_words():
            np.subtract.at(features, words, 1.0)
        return features

    def _removed_words(self) -> Iterator[NDArray[np.integer]]:
        """The words of each removed image that is still in its segment."""
        for segment, start, stop in zip(self.segments, self.starts[:-1], self.starts[1:], strict=True):
            for i in np.flatnonzero(self._removed[start:stop]):
                words = segment.image(int(i)).words
                self.refuse_unknown(words, segment)
                yield words

    def refuse_unknown(self, words: NDArray[np.integer], segment: Segment) -> None:
        """Raise CairnError if words of a segment are not in the vocabulary, as in a damaged file."""
        if len(words) and (words.min() < 0 or words.max() >= self.words):
            raise CairnError("{folder} is damaged: run {cairn check}, then {cairn repair}.", folder=segment.folder)
