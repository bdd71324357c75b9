"""
How well descriptors tell patches apart
=======================================

Two patches show the same point, or they do not. A descriptor should say so by a distance. How often it is wrong is what
the ROC curve shows.
"""

# %%
# Patches whose points are known
# -----------------------------------------
#
# Photos of ten prints are taken from known places, so it is known which regions show the same point. All patches of one
# point are pairs that match; as many pairs that do not are drawn at random. Here are two patches of each of fourteen
# points.

import matplotlib.pyplot as plt
import numpy as np
from sample_photos import PRINTS, labelled_patches

import cairn

patches, points = labelled_patches(tuple(PRINTS))
print(f"{len(patches)} patches of {len(np.unique(points))} points")

figure, axes = plt.subplots(2, 14, figsize=(9, 1.4), layout="constrained")
chosen = np.random.default_rng(1).choice(np.unique(points), 14, replace=False)
for column, point in zip(axes.T, chosen, strict=True):
    for axis, patch in zip(column, patches[points == point], strict=False):
        axis.imshow(patch, cmap="gray")
for axis in axes.flat:
    axis.set_axis_off()

# %%
# Curves
# ------
#
# For every distance at which one could draw the line, the curve has a point: the share of matches that are nearer
# (right), and that of the other pairs (wrong). FPR95 is how many of these are let in when 95 in 100 matches are:
# smaller is better. ``ssd`` compares pixels, ``surf``, ``sift`` and ``rootsift`` their gradients; ``pr-proj``
# (pooling regions and a projection) and ``cairn`` (a whitening) were learnt from other photos, and come with Cairn.

figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
for name in ("ssd", "surf", "sift", "rootsift", "pr-proj", "cairn"):
    found = cairn.evaluate_patches(name, (patches, points))
    dim = cairn.Descriptor.load(name).dim
    label = f"{name}, {dim} numbers: {found.fpr95:.1%}"
    axis.plot(found.false_positive_rate, found.true_positive_rate, label=label, linewidth=2)
axis.axhline(0.95, color="0.5", linewidth=1, linestyle=":")
axis.set(xscale="log", xlim=(2e-4, 1), ylim=(0.5, 1.005))
axis.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC curves of six descriptors")
axis.grid(alpha=0.3)
axis.legend(title="FPR95", loc="lower right")
plt.show()
# sphinx_gallery_thumbnail_number = 2
