"""
Pooling regions, learnt
=======================

SIFT sums gradients in a grid of 4 x 4 cells. Why there? Given patches that are known to match, convex optimisation
chooses where to sum, and how much each place counts (Simonyan, Vedaldi & Zisserman, TPAMI 2014).
"""

# %%
# Patches, and what is learnt from them
# -------------------------------------
#
# Patches of six prints are learnt from, and those of four others test what was learnt. The candidates are rings of
# Gaussian regions: eight of equal weight, or four on a diagonal, so that a flipped patch is described as well. Those
# with a weight above zero are the descriptor. The learner tries several settings, and makes each result smaller step by
# step; what does best on pairs that it held out is taken, if it has no more than 640 numbers.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Circle
from sample_photos import PRINTS, labelled_patches

import cairn

names = tuple(PRINTS)
patches, points = labelled_patches(names[:6])
test = labelled_patches(names[6:])
print(f"{len(patches)} patches of {len(np.unique(points))} points, {len(test[0])} others to test with")
learnt = cairn.learn_descriptor(
    (patches, points), stage="pooling", pool_step=1.5, mu=[0.15, 0.3], gamma=[0.1], workers=1
)

# %%
# Where gradients are summed
# --------------------------
#
# Left, each region is a circle with its standard deviation as radius, on a patch; the brighter, the more it counts. In
# the middle is what each pixel then contributes: most of it comes from around the centre, as in the paper, and the
# border of the patch, which another view may not have, counts for little. Right are all models that were tried.

pooling = learnt.model.pooling
half = learnt.side / 2
across, down = np.meshgrid(*2 * [np.linspace(-half, half, 200)])
contribution = np.zeros_like(across)
for (x, y, sigma), weight in zip(pooling.regions, pooling.weights, strict=True):
    contribution += weight * np.exp(-((across - x) ** 2 + (down - y) ** 2) / (2 * sigma**2)) / sigma**2

figure, axes = plt.subplots(1, 3, figsize=(9, 3.1), layout="constrained")
order = np.argsort(pooling.weights)
circles = [Circle((x, y), sigma) for x, y, sigma in pooling.regions[order]]
regions = PatchCollection(circles, facecolor="none", cmap="plasma", array=pooling.weights[order], linewidths=1.5)
axes[0].imshow(patches[17], cmap="gray", extent=(-half, half, half, -half), alpha=0.35)
axes[0].add_collection(regions)
limits = {"xlim": (-1.15 * half, 1.15 * half), "ylim": (1.15 * half, -1.15 * half), "xticks": [], "yticks": []}
axes[0].set(title=f"{len(pooling.regions)} regions in {learnt.rings} rings", **limits)
axes[1].imshow(contribution, cmap="plasma", extent=(-half, half, half, -half))
axes[1].set(title="what pixels contribute", **limits)
dims, errors = [one.dim for one in learnt.tried], [100 * one.fpr95 for one in learnt.tried]
axes[2].scatter(dims, errors, color="0.6", label="tried")
axes[2].scatter([learnt.dim], [100 * learnt.validation["fpr95"]], color="crimson", label="taken", zorder=3)
axes[2].set(xlabel="numbers", title="FPR95 on held-out pairs (%)", xlim=(0, None), ylim=(0, 5))
axes[2].legend()

# %%
# What it is worth
# ----------------
#
# On patches of prints that they have not seen, learnt regions are better than SIFT's grid. A whitening of rootSIFT,
# which is computed in closed form from the same patches, is better still, with a twentieth of the numbers. Both are
# learnt from a thousand patches here; the paper has half a million.

whitened = cairn.learn_descriptor((patches, points), stage="whitening", dim=64, workers=1)
shown = {"sift": cairn.Descriptor.load("sift"), "rootsift": cairn.Descriptor.load("rootsift")}
shown |= {"pooled": learnt, "rootsift, whitened": whitened}
errors = [100 * cairn.evaluate_patches(descriptor, test).fpr95 for descriptor in shown.values()]
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
bars = axis.bar(list(shown), errors, color=["0.6", "0.6", "C1", "C1"], width=0.6)
labels = [f"{error:.1f}%, {one.dim} numbers" for error, one in zip(errors, shown.values(), strict=True)]
axis.bar_label(bars, labels, padding=2)
axis.set(ylabel="FPR95 (%)", title="patches of other prints: less is better")
axis.margins(y=0.15)
plt.show()
