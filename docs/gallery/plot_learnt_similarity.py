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
# With w the tf-idf vectors of two photos, their similarity was the cosine of the two. Now it is the same with a matrix
# R between them, which has the weights of words on its diagonal, and those of pairs of words elsewhere. Below are the
# 20 photos that were left out, two of each print, by tf-idf and as learnt: the lighter, the more alike. Photos of one
# print stand out more from the others, and more of what is found for each among the photos learnt from is right.

counts = np.array([np.bincount(one, minlength=len(vocabulary)) for one in words])
idf = np.log(len(kept) / np.maximum(1, (counts[kept] > 0).sum(axis=0)))
matrix = np.diag(learnt.weights)
matrix[tuple(learnt.pairs.T)] = matrix[tuple(learnt.pairs.T[::-1])] = learnt.pair_weights
truth = {int(one): {int(other) for other in kept if shows[other] == shows[one]} for one in np.flatnonzero(tests)}

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for axis, title, between in zip(axes, ("tf-idf", "learnt"), (np.eye(len(vocabulary)), matrix), strict=True):
    products = (counts * idf) @ between @ (counts * idf).T
    similarity = products / np.sqrt(np.outer(products.diagonal(), products.diagonal()))
    rankings = {one: kept[np.argsort(-similarity[one, kept], kind="stable")].tolist() for one in truth}
    mean_ap = cairn.evaluate_retrieval(rankings, truth).mean_ap
    shown = axis.imshow(similarity[np.ix_(tests, tests)], vmin=0, vmax=0.5, cmap="magma")
    axis.set(title=f"{title}: mAP {mean_ap:.3f}", xticks=[])
    axis.set_yticks(np.arange(0.5, 20, 2), names if axis is axes[0] else [])
figure.colorbar(shown, ax=axes, label="similarity", shrink=0.8)

# %%
# Two words, one thing
# --------------------
#
# A pair counts where one photo of a print has the one word, and another photo the other. Of the three prints where one
# pair counts most: patches of one of its words on the left, of the other on the right.

best = []
for name in names:
    rows = [one for one in kept if shows[one] == name]
    has = (counts[rows] * idf).sum(axis=0)
    worth = learnt.pair_weights * has[learnt.pairs[:, 0]] * has[learnt.pairs[:, 1]]
    best.append((worth.max(), rows, learnt.pairs[worth.argmax()]))
best.sort(key=lambda one: -one[0])

figure, axes = plt.subplots(3, 9, figsize=(9, 3), layout="constrained", width_ratios=[*4 * [1], 0.15, *4 * [1]])
for axis in axes.flat:
    axis.set_axis_off()
for row, (_, of_print, pair) in zip(axes, best, strict=False):
    for word, side in zip(pair, (row[:4], row[5:]), strict=True):
        having = [(photo, one) for photo in of_print for one in np.flatnonzero(words[photo] == word)]
        for axis, (photo, one) in zip(side, having, strict=False):
            axis.imshow(cairn.patches(photos[photo][1], regions[photo][[one]], 48)[0], cmap="gray")
figure.suptitle("pairs of words that mean the same")
plt.show()
