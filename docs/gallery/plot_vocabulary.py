"""
What visual words look like
===========================

The descriptors of many photos are clustered, and each cluster is a *visual word*. A photo is then a bag of words, and
what finds texts by words finds photos, too. Here we look at the patches that share a word.
"""

# %%
# A vocabulary of a few photos
# ----------------------------
#
# Each of ten prints is photographed three times. All regions are described with rootSIFT, and k-means makes 600 words
# of them. Real collections have up to a million words; these photos show only ten things.

import matplotlib.pyplot as plt
import numpy as np
from sample_photos import PRINTS, take

import cairn

VIEWS = 3
photos = [take([name], view)[0] for name in PRINTS for view in range(VIEWS)]
regions = [cairn.detect(photo) for photo in photos]
descriptors = [cairn.describe(photo, rows) for photo, rows in zip(photos, regions, strict=True)]
vocabulary = cairn.Vocabulary.train(np.concatenate(descriptors), words=600, seed=0)
words = [vocabulary.assign(rows) for rows in descriptors]

# %%
# Words of one thing, words of everything
# ---------------------------------------
#
# The weight of a word, its ``idf``, is the logarithm of the number of all photos over that of the photos that have it.
# A word of one print alone is worth a lot; each of the first five rows shows patches of such a word. One that nearly
# all photos have is worth next to nothing: the last three rows show what such words stand for.

counts = np.array([[np.sum(words[photo] == word) for photo in range(len(photos))] for word in range(len(vocabulary))])
idf = np.log(len(photos) / np.maximum(1, (counts > 0).sum(axis=1)))
by_print = counts.reshape(len(vocabulary), len(PRINTS), VIEWS)
share = by_print.sum(axis=2) / np.maximum(8, counts.sum(axis=1))[:, None]  # that each print has of each word
telling = np.where(by_print.min(axis=2) > 0, share, 0).argmax(axis=0)  # the best word of each print
telling = telling[np.argsort(-share[telling, np.arange(len(PRINTS))], kind="stable")][:5]
shown = [*telling, *np.argsort(idf, kind="stable")[:3]]

figure, axes = plt.subplots(8, 8, figsize=(9, 8.6), layout="constrained")
for row, word in zip(axes, shown, strict=True):
    # One patch of each photo that has the word, then the second ones, and so on; eight of them.
    having = [(turn, photo) for photo, some in enumerate(counts[word]) for turn in range(some)]
    having = sorted(having)[:: max(1, len([one for one in having if one[0] == 0]) // 8)][:8]
    for axis, (turn, photo) in zip(row, having, strict=True):
        region = regions[photo][words[photo] == word][turn]
        axis.imshow(cairn.patches(photos[photo], [region], 48)[0], cmap="gray")
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"word {word}\nidf {idf[word]:.1f}", rotation=0, ha="right", va="center")
figure.suptitle("patches that share a word, in each row")
plt.show()
