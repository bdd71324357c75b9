"""Whether a learnt descriptor is better than another on held-out image pairs, in plain words.

The model was chosen among one or two dozen by the same pairs, so a little of its advantage may be luck.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.clustering.sources import ArraySource
from index.vocabulary import Vocabulary, VocabularyOptions
from learning.latent.described_patches import describe_mined
from learning.latent.models import Held
from learning.latent.nearest import find_nearest
from learning.measures.differences import beyond_chance, mean_and_error
from retrieval.descriptors.contract import Descriptor

_FEWEST = 2  # least image pairs for a verdict


@dataclass(frozen=True)
class Figures:
    """Performance of a descriptor for each image pair: arrays (K,) in the order of the pairs."""

    recall: NDArray[np.float64]  # share of the features whose nearest candidate is a positive (equation 15)
    matched: NDArray[np.float64]  # share of the features with a positive of the same visual word
    wrong: NDArray[np.float64]  # mean number of negatives with a feature's word
    right: NDArray[np.float64]  # share of positives among all candidates with a feature's word


@dataclass(frozen=True)
class Verdict:
    """A learnt descriptor and another, on the same held-out features."""

    name: str  # of the latter
    features: int
    words: int  # size of the vocabularies
    learnt: Figures
    other: Figures

    def difference(self, what: str) -> tuple[float, float]:
        """Mean difference of a field of `Figures` over image pairs, and its standard error."""
        return mean_and_error(self._differences(what))

    def better(self, what: str) -> int:
        """1 if the learnt descriptor is significantly better in a field of `Figures`, -1 if worse, else 0."""
        return beyond_chance(self._differences(what))

    def _differences(self, what: str) -> NDArray[np.float64]:
        return np.asarray(getattr(self.learnt, what) - getattr(self.other, what))

    @property
    def outcome(self) -> str:
        """One of better, worse, same, mixed."""
        signs = {self.better("recall"), self.better("right")} - {0}
        if len(signs) == 2:
            return "mixed"
        return {1: "better", -1: "worse"}[signs.pop()] if signs else "same"

    @property
    def sentence(self) -> str:
        """Advice for the user."""
        if len(self.learnt.recall) < _FEWEST:
            return f"One image pair held out cannot say whether the descriptor is better than {self.name}: mine more."
        return {
            "better": f"The learnt descriptor is better than {self.name} on image pairs held out: index with it.",
            "worse": f"The learnt descriptor is worse than {self.name} on image pairs held out: stay with "
            f"{self.name}, or mine more pairs and learn again.",
            "same": f"The learnt descriptor is neither better nor worse than {self.name} on image pairs held out: "
            "there is no reason to index again.",
            "mixed": f"The learnt descriptor is {'better' if self.better('recall') > 0 else 'worse'} than {self.name} "
            f"at nearest neighbours and {'better' if self.better('right') > 0 else 'worse'} as visual words, on image "
            "pairs held out: "
            + ("searches go by words, so index with it." if self.better("right") > 0 else f"stay with {self.name}."),
        }[self.outcome]

    @property
    def details(self) -> list[str]:
        """Its figures, in sentences."""
        one, two = self.learnt, self.other
        mean, error = self.difference("recall")
        margin = f" ± {100 * error:.1f}" if np.isfinite(error) else ""
        return [
            f"Of {self.features:,} features of {len(one.recall)} image pairs, the nearest neighbour is right for "
            f"{100 * one.recall.mean():.1f}%, with {self.name} for {100 * two.recall.mean():.1f}% "
            f"(difference {100 * mean:+.1f}{margin} points).",
            f"With {self.words:,} visual words, {100 * one.matched.mean():.1f}% share the word of a match, with "
            f"{self.name} {100 * two.matched.mean():.1f}%; and that of {one.wrong.mean():.1f} wrong features of the "
            f"other photo, with {self.name} {two.wrong.mean():.1f}.",
        ]

    def as_json(self) -> dict[str, object]:
        """Return the figures, as shares."""
        return {
            "outcome": self.outcome,
            "pairs": len(self.learnt.recall),
            "features": self.features,
            "words": self.words,
            **{
                who: {
                    "recall": round(float(figures.recall.mean()), 6),
                    "same_word": round(float(figures.matched.mean()), 6),
                    "wrong_with_word": round(float(figures.wrong.mean()), 6),
                    "right_of_word": round(float(figures.right.mean()), 6),
                }
                for who, figures in (("learnt", self.learnt), (self.name, self.other))
            },
        }


def compare(held: Held, learnt: Descriptor, other: Descriptor, *, workers: int = 1, seed: int = 0) -> Verdict:
    """Compare two descriptors on held-out features, by nearest neighbours and as words of 30 patches each."""
    figures = []
    words = 0
    for descriptor in (learnt, other):
        described = describe_mined(held.matches, held.candidates, descriptor.describe, workers=workers)
        nearest = find_nearest(held.matches, held.features, described, workers=workers)
        vocabulary = Vocabulary.train(ArraySource(described.rows), VocabularyOptions(seed=seed))
        words = vocabulary.words
        of = np.concatenate(
            [
                vocabulary.assign(described.rows[at : at + 65_536].astype(np.float32))
                for at in range(0, len(described.rows), 65_536)
            ]
        )
        figures.append(_figures(held, nearest.positive < nearest.negative, of))
    return Verdict(other.name, len(held.features), words, figures[0], figures[1])


def _figures(held: Held, right: NDArray[np.bool_], words: NDArray[np.int32]) -> Figures:
    """Average over the features of each image pair; ``words`` (W,): of the candidates."""
    matches, rows = held.matches, []
    pair_of = matches.pair[held.features]
    for pair in np.unique(pair_of):
        chosen = pair_of == pair
        features = held.features[chosen]
        targets = matches.targets(int(pair))
        own = words[np.searchsorted(held.candidates, matches.reference[features])]
        counts = np.bincount(words[np.searchsorted(held.candidates, targets)], minlength=int(words.max()) + 1)
        positive = _sharing(matches.positives, features, own, words, held.candidates)
        ambiguous = _sharing(matches.ambiguous, features, own, words, held.candidates)
        wrong = counts[own] - positive - ambiguous
        share = positive.sum() / max(1, positive.sum() + wrong.sum())
        rows.append((right[chosen].mean(), (positive > 0).mean(), wrong.mean(), share))
    return Figures(*np.array(rows, np.float64).T)


def _sharing(
    of: Callable[[int], NDArray[np.int32]],
    features: NDArray[np.int64],
    own: NDArray[np.int32],
    words: NDArray[np.int32],
    candidates: NDArray[np.integer],
) -> NDArray[np.int64]:
    """Number (F,) of each feature's patches of a kind with its word."""
    counts = [
        np.count_nonzero(words[np.searchsorted(candidates, of(x))] == word)
        for x, word in zip(features.tolist(), own.tolist(), strict=True)
    ]
    return np.array(counts, np.int64)
