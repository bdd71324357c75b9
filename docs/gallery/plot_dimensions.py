"""
How many numbers a descriptor needs
===================================

Memory and time grow with the length of a descriptor. A whitening, learnt from patches that are known to match, puts
what distinguishes patches first; the rest can be left out.
"""

# %%
# Fewer and fewer numbers
# -----------------------
#
# A whitening of rootSIFT's 128 numbers is computed in closed form, and cut to a few. It is learnt from patches of six
# prints and tested on those of four others.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sample_photos import PRINTS, labelled_patches

import cairn

names = tuple(PRINTS)
learn_from, test = labelled_patches(names[:6]), labelled_patches(names[6:])
learnt = {dim: cairn.learn_descriptor(learn_from, dim=dim, workers=1) for dim in (2, 4, 8, 16)}
error = {one.dim: 100 * cairn.evaluate_patches(one, test).fpr95 for one in learnt.values()}
rootsift = 100 * cairn.evaluate_patches("rootsift", test).fpr95

figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
axis.plot(list(error), list(error.values()), marker="o", linewidth=2, color="C1", label="whitened rootSIFT")
axis.axhline(rootsift, color="0.4", linestyle="--", label="rootSIFT, 128 numbers")
axis.set_xscale("log", base=2)
axis.set_xticks(list(error), list(error))
axis.set(xlabel="numbers", ylabel="FPR95 (%): less is better", ylim=(0, None), title="errors by length")
axis.grid(alpha=0.3)
axis.legend()

# %%
# A map of patches
# ----------------
#
# Descriptors have unit length: two numbers are no more than a direction. Here patches of 16 points go round in the
# order of their directions by the shortest descriptor. Those that look alike come to lie together; frames of one
# colour, and most of them are neighbours, are patches of one point.

patches, points = test
shown = np.random.default_rng(3).choice(np.unique(points), 16, replace=False)
some = np.flatnonzero(np.isin(points, shown))
places = learnt[2].describe(patches[some])
some = some[np.argsort(np.arctan2(places[:, 1], places[:, 0]), kind="stable")]
figure, axis = plt.subplots(figsize=(7, 7), layout="constrained")
for number, (patch, angle) in enumerate(zip(some, np.linspace(0, 2 * np.pi, len(some), endpoint=False), strict=True)):
    radius = 1 - 0.24 * (number % 2)
    colour = plt.colormaps["tab20"](list(shown).index(points[patch]))
    picture = OffsetImage(patches[patch], zoom=0.62, cmap="gray")
    frame = {"edgecolor": colour, "facecolor": colour, "linewidth": 4}
    place = radius * np.cos(angle), radius * np.sin(angle)
    axis.add_artist(AnnotationBbox(picture, place, bboxprops=frame, pad=0.05))
axis.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), title="patches in the order of their directions")
axis.set_axis_off()
plt.show()
# sphinx_gallery_thumbnail_number = 2
