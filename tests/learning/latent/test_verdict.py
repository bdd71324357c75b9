"""The verdict on a learnt descriptor: figures by brute force, and conclusions."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.clustering.sources import ArraySource
from index.vocabulary import Vocabulary, VocabularyOptions
from learning.latent.models import Held
from learning.latent.nearest import candidates_of
from learning.latent.verdict import Figures, Verdict, compare
from learning.mining.matches import MinedMatches
from retrieval.descriptors.contract import check_patches
from tests.support.learning.mined_files import drawn, in_memory


@dataclass
class Pixels:
    """Some samples of a patch, as its descriptor."""

    name: str
    first: int
    dim: int
    patch_size: int = 31
    extent: float = 1.0
    bytes: int = 0
    fingerprint: str = ""

    def describe(self, patches: np.ndarray) -> np.ndarray:
        rows = check_patches(patches, self.patch_size).reshape(len(patches), -1)
        return (rows[:, self.first : self.first + self.dim] / 255).astype(np.float32)


ONE, OTHER = Pixels("one", 0, 3), Pixels("other", 40, 6)


def held_out(seed: int, pairs: int = 4) -> Held:
    """Features of random matches, nearly all held out."""
    rng = np.random.default_rng(seed)
    matches = in_memory(drawn(rng, pairs=pairs, largest=60))
    features = np.sort(rng.permutation(matches.features)[: max(1, matches.features - 5)]).astype(np.int64)
    return Held(matches, features, candidates_of(matches, features))


def counted(held: Held, descriptor: Pixels, words: np.ndarray) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Figures of a descriptor, feature by feature and patch by patch: in the mean of the image pairs, and of each.

    ``words`` are those of `held.candidates`.
    """
    matches = held.matches
    word = dict(zip(held.candidates.tolist(), words.tolist(), strict=True))
    rows = descriptor.describe(np.asarray(matches.patches)).astype(np.float16).astype(np.float64)
    pairs = []
    for pair in range(len(matches.pairs)):
        right = sharing = features = wrong = matching = 0
        for x in held.features.tolist():
            if matches.pair[x] != pair:
                continue
            own = int(matches.reference[x])
            distance = {y: float(np.square(rows[own] - rows[y]).sum()) for y in matches.targets(pair).tolist()}
            of = {kind: getattr(matches, kind)(x).tolist() for kind in ("positives", "negatives", "ambiguous")}
            assert sorted(chain.from_iterable(of.values())) == sorted(distance)
            nearest = min(distance[y] for y in of["positives"])
            right += all(distance[y] > nearest for y in of["negatives"])
            found = sum(word[y] == word[own] for y in of["positives"])
            matching += found
            sharing += found > 0
            wrong += sum(word[y] == word[own] for y in of["negatives"])
            features += 1
        if features:
            pairs.append(
                {
                    "recall": right / features,
                    "same_word": sharing / features,
                    "wrong_with_word": wrong / features,
                    "right_of_word": matching / max(1, matching + wrong),
                }
            )
    return {name: float(np.mean([one[name] for one in pairs])) for name in pairs[0]}, pairs


def words_of(held: Held, descriptor: Pixels, seed: int) -> tuple[int, np.ndarray]:
    """Make a vocabulary of the held-out patches, one word for 30, and return their words."""
    rows = descriptor.describe(np.asarray(held.matches.patches[held.candidates])).astype(np.float16)
    vocabulary = Vocabulary.train(ArraySource(rows), VocabularyOptions(seed=seed, words=max(1, len(rows) // 30)))
    return vocabulary.words, vocabulary.assign(rows.astype(np.float32))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_figures_are_those_that_are_counted_one_by_one(seed: int, draw: int) -> None:
    held = held_out(seed)
    found = compare(held, ONE, OTHER, seed=draw).as_json()
    for key, descriptor in (("learnt", ONE), ("other", OTHER)):
        number, words = words_of(held, descriptor, draw)
        expected, pairs = counted(held, descriptor, words)
        assert found[key] == pytest.approx(expected, abs=2e-6)
        assert (found["pairs"], found["features"], found["words"]) == (len(pairs), len(held.features), number)


def test_figures_are_of_each_image_pair_and_the_difference_is_of_pairs() -> None:
    held = held_out(5, pairs=6)
    verdict = compare(held, ONE, OTHER)
    by_pair = {}
    for descriptor, figures in ((ONE, verdict.learnt), (OTHER, verdict.other)):
        by_pair[descriptor.name] = counted(held, descriptor, words_of(held, descriptor, 0)[1])[1]
        for field, name in (("recall", "recall"), ("matched", "same_word"), ("wrong", "wrong_with_word")):
            np.testing.assert_allclose(getattr(figures, field), [one[name] for one in by_pair[descriptor.name]])
    differences = [a["recall"] - b["recall"] for a, b in zip(by_pair["one"], by_pair["other"], strict=True)]
    mean, error = verdict.difference("recall")
    assert mean == pytest.approx(sum(differences) / len(differences))
    spread = sum((one - mean) ** 2 for one in differences) / (len(differences) - 1)
    assert error == pytest.approx((spread / len(differences)) ** 0.5)


def test_the_figures_do_not_depend_on_the_number_of_workers() -> None:
    held = held_out(1)
    assert compare(held, ONE, OTHER, workers=2).as_json() == compare(held, ONE, OTHER).as_json()


@pytest.mark.parametrize("seed", range(5))
def test_a_descriptor_is_the_same_as_itself(seed: int) -> None:
    held = held_out(seed)
    verdict = compare(held, ONE, Pixels("it", ONE.first, ONE.dim))
    assert verdict.outcome == "same"
    assert verdict.as_json()["learnt"] == verdict.as_json()["it"]
    assert "neither better nor worse than it" in verdict.sentence


class Oracle(Pixels):
    """Looks up the rows of patches that it knows."""

    def __init__(self, matches: MinedMatches, rows: np.ndarray) -> None:
        super().__init__("oracle", 0, rows.shape[1])
        self._known = {patch.tobytes(): row for patch, row in zip(np.asarray(matches.patches), rows, strict=True)}

    def describe(self, patches: np.ndarray) -> np.ndarray:
        return np.array([self._known[patch.tobytes()] for patch in patches])


def one_to_one(number: int, pairs: int) -> tuple[MinedMatches, np.ndarray]:
    """Image pairs of two photos each, whose features match one to one; and which object each patch shows."""
    photo = np.arange(pairs * 2).repeat(number)
    patch = np.arange(pairs * 2 * number)
    shown = patch % number + number * (photo // 2)
    first, second = patch[photo % 2 == 0], patch[photo % 2 == 1]
    starts = np.arange(len(first) + 1)
    count = len(patch)
    rng = np.random.default_rng(0)
    arrays = {
        "names": np.array([f"photo{one}" for one in range(pairs * 2)]),
        "pairs": np.arange(pairs * 2, dtype=np.int32).reshape(-1, 2),
        "homographies": np.tile(np.eye(3), (pairs, 1, 1)),
        "inliers": np.full(pairs, 50, np.int32),
        "patches": rng.integers(0, 256, (count, 31, 31), np.uint8),
        "photos": photo.astype(np.int32),
        "ellipses": np.ones((count, 5), np.float32),
        "reference": first.astype(np.int32),
        "pair": (photo[first] // 2).astype(np.int32),
        "target_starts": np.arange(pairs + 1) * number,
        "targets": second.astype(np.int32),
        "positive_starts": starts,
        "positives": second.astype(np.int32),
        "ambiguous_starts": np.zeros(len(first) + 1, np.int64),
        "ambiguous": np.zeros(0, np.int32),
    }
    return in_memory(arrays), shown


def test_a_descriptor_that_knows_is_better_than_one_that_does_not() -> None:
    matches, shown = one_to_one(40, 8)
    features = np.arange(matches.features)
    held = Held(matches, features, candidates_of(matches, features))
    rng = np.random.default_rng(2)
    knows = Oracle(matches, rng.normal(size=(shown.max() + 1, 16)).astype(np.float32)[shown])
    guesses = Pixels("guesses", 0, 16)
    verdict = compare(held, knows, guesses)
    assert verdict.learnt.recall.tolist() == verdict.learnt.matched.tolist() == [1] * 8
    assert verdict.outcome == "better"
    assert compare(held, guesses, knows).outcome == "worse"


# What follows


def verdict_of(recall: list[float], right: list[float]) -> Verdict:
    """Of differences by image pair, in shares."""
    count = len(recall)
    half = np.full(count, 0.5)

    def figures(sign: float) -> Figures:
        return Figures(half + sign * np.array(recall) / 2, half, half, half + sign * np.array(right) / 2)

    return Verdict("rootsift", 1000, 30, figures(1), figures(-1))


UP = [0.05, 0.06, 0.04, 0.05, 0.07, 0.05]
DOWN = [-one for one in UP]
NONE = [0.05, -0.06, 0.04, -0.05, 0.07, -0.06]


@pytest.mark.parametrize(
    ("recall", "right", "outcome", "advice"),
    [
        (UP, UP, "better", "index with it"),
        (UP, NONE, "better", "index with it"),
        (NONE, UP, "better", "index with it"),
        (DOWN, DOWN, "worse", "stay with rootsift"),
        (NONE, DOWN, "worse", "stay with rootsift"),
        (NONE, NONE, "same", "no reason to index again"),
        (UP, DOWN, "mixed", "stay with rootsift"),
        (DOWN, UP, "mixed", "index with it"),
    ],
)
def test_what_follows_from_differences(recall: list[float], right: list[float], outcome: str, advice: str) -> None:
    verdict = verdict_of(recall, right)
    assert verdict.outcome == outcome == verdict.as_json()["outcome"]
    assert advice in verdict.sentence
    if outcome == "mixed":
        expected = ("better", "worse") if recall is UP else ("worse", "better")
        assert (
            f"{expected[0]} than rootsift at nearest neighbours and {expected[1]} as visual words" in verdict.sentence
        )
    assert all("nan" not in line and "inf" not in line for line in verdict.details)


@pytest.mark.parametrize(("pairs", "errors"), [(2, 12.706), (4, 3.182), (8, 2.365), (100, 1.984)])
def test_a_difference_must_exceed_what_chance_makes(pairs: int, errors: float) -> None:
    """Two-sided quantiles of Student's t at 95%, from its table: two pairs must agree very closely."""
    for factor, outcome in ((0.98, "better"), (1.02, "same")):
        # Of pairs 1 ± a, half of them each, the standard error of the mean, 1, is a / √(K - 1).
        spread = factor / errors * (pairs - 1) ** 0.5
        differences = [0.01 * (1 + sign * spread) for sign in (1, -1) * (pairs // 2)]
        verdict = verdict_of(differences, [0.0] * pairs)
        assert verdict.difference("recall") == pytest.approx((0.01, 0.01 * factor / errors))
        assert verdict.outcome == outcome


def test_one_image_pair_decides_nothing() -> None:
    verdict = verdict_of([0.3], [0.3])
    assert verdict.outcome == "same"
    assert all("nan" not in line and "inf" not in line for line in verdict.details)


def test_the_details_tell_the_figures(tmp_path: Path) -> None:
    verdict = verdict_of([0.1, 0.1], [0, 0])
    first, second = verdict.details
    assert "1,000 features of 2 image pairs" in first
    assert "right for 55.0%, with rootsift for 45.0% (difference +10.0 ± 0.0 points)" in first
    assert "30 visual words" in second
