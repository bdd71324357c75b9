"""Rarity of words, which verification weighs evidence by."""

import numpy as np
import pytest

from retrieval.collection.collection import Collection
from retrieval.search.engines.tf_idf import TfIdf
from retrieval.search.options import SearchOptions
from retrieval.search.views import indexed_view


def test_rarity_is_that_of_the_commoner_words_and_a_view_is_averaged_once(
    opened: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = TfIdf(opened, SearchOptions(turns=1))
    features = [opened.index.images.features(number) for number in opened.index.image_numbers.tolist()]
    view = indexed_view(features[0])
    idf = opened.index.idf
    every = np.concatenate([np.asarray(one.words) for one in features])
    averaged = []
    mean = TfIdf._mean
    monkeypatch.setattr(TfIdf, "_mean", lambda self, words: averaged.append(words) or mean(self, words))
    for other in features:
        expected = min(float(idf[view.words].mean()), float(idf[other.words].mean())) - idf[every].mean()
        assert engine.rarity(view, other.words) == pytest.approx(expected, abs=1e-9)
    assert len([words for words in averaged if words is view.words]) == 1
    assert engine.rarity(view, every[:0]) == pytest.approx(-idf[every].mean())
