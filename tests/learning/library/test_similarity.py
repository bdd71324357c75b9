"""Similarities learnt by one function, from words in arrays and from a collection; the command learns the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.errors import CairnError
from index.similarity import SimilarityMatrix
from learning.library.similarity import learn_similarity
from learning.similarity.learning import learn_similarity as learn
from learning.similarity.options import SimilarityOptions
from tests.conftest import Indexed, Ran
from tests.support.learning.similarity_cases import synonyms

Cairn = Callable[..., Ran]
WORDS = [[0, 4], [1, 4], [0, 5], [1, 5], [2, 4], [3, 4], [2, 5], [3, 5]]
LABELS = list("aaaabbbb")
RELATED = [(0, 1), (3, 2)]


def test_words_in_arrays_are_learnt_from_as_an_index_is(tmp_path: Path) -> None:
    index, pairs, labels = synonyms(tmp_path / "index")
    words = [index.segments[0].image(number).words for number in range(68)]
    shown: list[str | None] = [None] * 68
    for one in labels.objects:
        for number in one.positives:
            shown[number] = one.name
    relevance = labels.relevance(np.arange(68), np.random.default_rng(0))
    wanted = learn(index, "", pairs, relevance, SimilarityOptions(iterations=5))
    related = np.column_stack([pairs.second, pairs.first])[::-1]
    found = learn_similarity((words, shown), vocabulary=112, related=related, iterations=5, workers=1)
    np.testing.assert_array_equal(found.pairs, np.column_stack([pairs.first, pairs.second]))
    np.testing.assert_allclose(found.weights, wanted.matrix.diagonal, rtol=1e-5)
    np.testing.assert_allclose(found.pair_weights, wanted.matrix.values, atol=1e-6)
    assert found.iteration == wanted.chosen and len(found.history) == len(wanted.history)
    assert found.held_out is not None and found.held_out[1] >= found.held_out[0]


def test_a_collection_gives_what_the_command_writes(cairn: Cairn, indexed: Indexed, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    names = sorted(path.name for path in indexed.photos.iterdir())
    labels = {name: name.split("_")[0] for name in names if name.split("_")[0] in ("cat", "coffee", "coins", "page")}
    table.write_text("".join(f"{name},{label}\n" for name, label in labels.items()))
    command = ("learn", "similarity", indexed.folder, "--gt", table, "--iterations", 3, "--workers", 1)
    reported = cairn(*command, "--out", tmp_path / "a.npz", "--json").json
    found = learn_similarity(indexed.folder, tmp_path / "b.npz", labels=table, iterations=3, workers=1)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    differ = {"similarity": None, "seconds": None}
    assert {**found.to_dict(), **differ} == {**reported, **differ}
    of_dict = learn_similarity(indexed.folder, labels=labels, iterations=3, workers=1)
    np.testing.assert_array_equal(of_dict.weights, found.weights)
    assert SimilarityMatrix.load(of_dict.save(tmp_path / "c.npz")).fingerprint == of_dict.matrix.fingerprint
    with pytest.raises(CairnError, match="are not in the collection"):
        learn_similarity(indexed.folder, labels={"nothing.jpg": "cat"})
    with pytest.raises(CairnError, match="has two photos"):
        learn_similarity(indexed.folder, labels={names[0]: "cat"})
    with pytest.raises(CairnError, match="is of arrays"):
        learn_similarity(indexed.folder, labels=labels, vocabulary=3)


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ((WORDS, LABELS), {}, "Which words may mean the same"),
        ((WORDS, LABELS[1:]), {}, "7 for 8"),
        ((WORDS, LABELS, 3), {}, "Arrays to learn from"),
        (([[0.5]], ["a"]), {}, "whole numbers"),
        ((WORDS, LABELS), {"vocabulary": 5, "related": RELATED}, "6 at least"),
        ((WORDS, LABELS), {"related": [1, 2]}, "pairs of words"),
        ((WORDS, LABELS), {"related": [(1, 1)]}, "one word and itself"),
        ((WORDS, LABELS), {"related": [(1, 6)]}, "not one of the 6"),
        ((WORDS, [None] * 8), {"neighbours": 0}, "two photos"),
        ((WORDS, LABELS), {"neighbours": 0, "labels": "gt"}, "labels is of a collection"),
        ((WORDS, LABELS), {"neighbours": 0, "share": 0.5}, "share is of a collection"),
        ((WORDS, LABELS), {"related": [(1, 2), (3,)]}, "several lengths"),
        ((3, 4), {}, "a row of words and a label"),
        ((WORDS, LABELS), {"neighbours": 0, "workers": -1}, "workers is 0 at least"),
        ((WORDS, LABELS), {"neighbours": 0, "margin_on": "angle"}, "cosine or similarity"),
        ((WORDS, LABELS), {"neighbours": 0, "triplets": "some"}, "or all"),
        ((WORDS, LABELS), {"neighbours": 0, "out": "s.txt"}, "must end with .npz"),
        ("nowhere", {}, "Say what to learn from"),
        ("nowhere", {"verified": True}, "nowhere"),
        ("nowhere", {"labels": {}, "share": 0}, "more than 0"),
        ("nowhere", {"labels": {}, "test_queries": "q"}, "goes with test_gt"),
    ],
)
def test_what_cannot_be_learnt_from_is_said(source: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        learn_similarity(source, **options)
