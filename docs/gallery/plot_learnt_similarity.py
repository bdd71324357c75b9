"""
Words that mean the same, learnt
================================

A vocabulary is cut arbitrarily: what shows one thing may fall into two words, and some words say nothing at all. From
photos that are known to show the same, Cairn learns what each word is worth, and which ones mean the same (Yan & Yu,
IJCNN 2013).
"""

# %%
# Words and labels
# ----------------
#
# Ten prints, six photos of each, and 600 words. To learn from are the words of each photo, and what it shows. Two
# photos of each print are left out, to test with.

import matplotlib.pyplot as plt
import numpy as np
from sample_photos import PRINTS, take

import cairn

names = tuple(PRINTS)
photos = [(name, take([name], view, turn=15, slant=65, sizes=(0.35, 0.8))[0]) for name in names for view in range(6)]
regions = [cairn.detect(photo, max_features=400) for _, photo in photos]
descriptors = [cairn.describe(photo, rows) for (_, photo), rows in zip(photos, regions, strict=True)]
vocabulary = cairn.Vocabulary.train(np.concatenate(descriptors), words=600, seed=0)
words = [vocabulary.assign(rows) for rows in descriptors]
shows = [name for name, _ in photos]
tests = np.arange(len(photos)) % 6 < 2
kept = np.flatnonzero(~tests)

learnt = cairn.learn_similarity(
    ([words[one] for one in kept], [shows[one] for one in kept]), vocabulary=vocabulary, neighbours=4, workers=1
)
print(learnt.verdict)

# %%
# The matrix
# ----------
#
# Left, what words are worth, beside tf-idf, which is 1: words that are found on the ground as well as on prints lose.
# Right, the pairs of words that may mean the same: the nearest ones in the vocabulary. Most get little weight.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.hist(learnt.weights, bins=40, color="C0")
left.axvline(1, color="black", linestyle="--", linewidth=1)
left.set(xlabel="weight of a word, tf-idf being 1", ylabel="words")
right.hist(learnt.pair_weights[learnt.pair_weights > 0], bins=40, color="C1")
right.set(xlabel="weight of a pair of words", ylabel="pairs")
plt.show()
