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
# step; what does best on pairs that it held out is taken, if it is no longer than ``max_pooled_dim``.

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
options = {"pool_step": 1.0, "mu": [0.3, 0.5], "gamma": [0.1], "workers": 1}
learnt = cairn.learn_descriptor((patches, points), stage="pooling", max_pooled_dim=400, **options)

# %%
# Where gradients are summed
# --------------------------
#
# Left, each region is a circle with its standard deviation as radius, on a patch; the brighter, the more it counts.
# In the middle is what each pixel then contributes. As in the paper, it is most around a small distance from the centre:
# the centre itself tells little, and the border of a patch is not always there. Right are all models that were tried.

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
regions.set_match_original = False
axes[0].imshow(patches[0], cmap="gray", extent=(-half, half, half, -half), alpha=0.35)
axes[0].add_collection(regions)
axes[0].set(title=f"{len(pooling.regions)} regions in {learnt.rings} rings", xticks=[], yticks=[])
axes[1].imshow(contribution, cmap="plasma", extent=(-half, half, half, -half))
axes[1].set(title="what pixels contribute", xticks=[], yticks=[])
dims, errors = [one.dim for one in learnt.tried], [one.fpr95 for one in learnt.tried]
axes[2].scatter(dims, errors, color="0.6", label="tried")
axes[2].scatter([learnt.dim], [learnt.validation["fpr95"]], color="crimson", label="taken", zorder=3)
axes[2].set(xscale="log", xlabel="numbers", title="FPR95 on held-out pairs", ylim=(0, None))
axes[2].legend()

# %%
# What it is worth
# ----------------
#
# On patches of prints that it has not seen, beside SIFT, and with a projection to fewer numbers that is learnt on top.

projected = cairn.learn_descriptor((patches, points), stage="both", dim=48, max_pooled_dim=400, **options)
shown = {"sift": "sift", "rootsift": "rootsift", "pooled": learnt, "pooled,\nprojected": projected}
error = {name: cairn.evaluate_patches(descriptor, test).fpr95 for name, descriptor in shown.items()}
dim = {"sift": 128, "rootsift": 128, "pooled": learnt.dim, "pooled,\nprojected": projected.dim}
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
bars = axis.bar(list(error), [100 * one for one in error.values()], color=["0.6", "0.6", "C1", "C1"], width=0.6)
axis.bar_label(bars, [f"{100 * error[name]:.1f}%, {dim[name]} numbers" for name in error], padding=2)
axis.set(ylabel="FPR95 (%)", title="patches of other prints: less is better")
axis.margins(y=0.15)
plt.show()
