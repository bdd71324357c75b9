"""Drift: how well a collection's vocabulary fits its photos, and when retraining is worthwhile."""

from dataclasses import dataclass
from typing import Literal

from index.vocabulary import default_words
from retrieval.catalogue.changes import quantisation_errors
from retrieval.catalogue.photos import counts_of_photos
from retrieval.collection.collection import Collection
from retrieval.collection.layout import TRAINED_KEY

# Features of new photos lie farther from the words than those of the training photos, the more so the fewer these were.
# Measured with rootSIFT on photos of landmarks and paintings: 1.17 to 1.21 times as far if the vocabulary serves as
# well as one trained on the new photos, 1.26 if it costs 4 points of mAP, 1.37 if it was trained on ten photos
# (docs/measurements/lifetime.md).
MOST = 1.25
FEWEST = 20  # photos added before they are evaluated
OUTGROWN = 2  # ratio of the number of words that suits the features to the actual number

Fit = Literal["good", "poor", "outgrown", "unknown"]
"""Whether the vocabulary fits: poor and outgrown ask for a new one; unknown where too few photos were added to tell."""


@dataclass(frozen=True)
class Drift:
    """Mean squared distances of features to their words, over photos."""

    trained: tuple[int, float]  # photos that the vocabulary was trained on, and their error
    added: tuple[int, float]  # photos that were added later, or with a vocabulary of another collection
    ratio: float | None  # of the two errors; None if they cannot be compared
    fit: Fit
    advice: str  # one sentence


def measure_drift(collection: Collection) -> Drift:
    """Compare the quantisation error of added photos with that of the photos that the vocabulary was trained on."""
    vocabulary, catalogue = collection.vocabulary_facts, collection.catalogue
    since = catalogue.setting(TRAINED_KEY) or "0"
    trained, added = catalogue.read(quantisation_errors, int(since) if since.isdecimal() else 0)
    # If those photos are another collection's, or were removed, the error that the vocabulary recorded is used.
    base = trained[1] if trained[0] else vocabulary.quantisation_error
    ratio = added[1] / base if added[0] and base > 0 else None
    fit: Fit
    if collection.has_early_words:
        fit, advice = "unknown", "The words are those of the first photos, until the indexing of all has ended."
    elif ratio is not None and ratio > MOST and added[0] >= FEWEST:
        fit = "poor"
        advice = f"The vocabulary does not fit the {added[0]} photos that were added: cairn retrain makes a new one."
    elif (
        not collection.options.words
        and (wanted := default_words(catalogue.read(counts_of_photos)["features"])) >= OUTGROWN * vocabulary.words
    ):
        fit = "outgrown"
        advice = (
            f"The collection has outgrown its {vocabulary.words} words, {wanted} would suit it: cairn retrain makes a "
            "new vocabulary."
        )
    elif ratio is None or added[0] < FEWEST:
        fit, advice = "unknown", "Too few photos were added to tell whether the vocabulary fits them."
    else:
        fit, advice = "good", "The vocabulary fits what was added."
    return Drift((trained[0], base), added, ratio, fit, advice)


def describe_drift(drift: Drift) -> dict[str, object]:
    """Describe drift for `cairn info --json`."""
    return {
        "trained": {"images": drift.trained[0], "quantisation_error": round(drift.trained[1], 6)},
        "added": {"images": drift.added[0], "quantisation_error": round(drift.added[1], 6)},
        "ratio": round(drift.ratio, 4) if drift.ratio is not None else None,
        "fit": drift.fit,
        "advice": drift.advice,
    }
