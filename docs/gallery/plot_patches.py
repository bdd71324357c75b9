"""
Patches, cut and normalised
===========================

A region is cut out of its photo and brought to a square. Two photos of the same thing, from different sides, then give
nearly the same patch, and that is what can be described and compared.
"""

# %%
# A region in two photos
# ----------------------
#
# Two photos of one print, the second at a slant of 55 degrees. We know by which homography a point of the first comes
# to the second, so we can look for regions that both have: less than 1.5 pixels apart, and described alike. ``SCALE``
# times as large as what was detected are the *measurement regions* that are cut out; eight of them are drawn.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sample_photos import photograph, pose, read_print
from skimage import transform

import cairn

SCALE = 12.5
shape = read_print("motorcycle").shape
poses = [pose(shape, (240, 180), size=0.75, turn=3), pose(shape, (240, 180), size=0.85, slant=55, towards=80)]
photos = [photograph({"motorcycle": matrix}, seed) for seed, matrix in enumerate(poses)]
regions = [cairn.detect(photo) for photo in photos]
mapped = transform.matrix_transform(regions[0][:, :2], poses[1] @ np.linalg.inv(poses[0]))
distances = np.linalg.norm(mapped[:, None] - regions[1][:, :2], axis=2)
rows = [cairn.describe(photo, found) for photo, found in zip(photos, regions, strict=True)]
alike = np.where(distances < 1.5, rows[0] @ rows[1].T, -1)

chosen = []
for number in np.argsort(-alike.max(axis=1)):  # the most alike, neither small nor large, apart from each other
    place, (a, b, c) = regions[0][number, :2], regions[0][number, 2:]
    apart = all(np.linalg.norm(place - regions[0][other, :2]) > 42 for other in chosen)
    if apart and 1.7 < (a * c - b * b) ** -0.25 < 4 and len(chosen) < 8:
        chosen.append(number)
chosen = sorted(chosen, key=lambda number: regions[0][number, 0])  # from left to right
pairs = regions[0][chosen], regions[1][alike[chosen].argmax(axis=1)]

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for axis, photo, found in zip(axes, photos, pairs, strict=True):
    axis.imshow(photo)
    axis.add_collection(LineCollection(cairn.outlines(found, SCALE), colors="gold", linewidths=1.5))
    for number, (x, y) in enumerate(found[:, :2], start=1):
        axis.text(x, y, str(number), color="white", ha="center", va="center", weight="bold")
    axis.set(xlim=(0, 479), ylim=(359, 0))
    axis.set_axis_off()

# %%
# What is in them
# ---------------
#
# :func:`cairn.patches` maps each region to a square. First we let it cut circles of the same area as the ellipses: the
# second photo's patches are narrow. Then it cuts the ellipses, each mapped to a circle: now the slant is gone. The
# number below a column is the correlation of the two patches above it.


def circles(found):
    """Circles of the same area as the ellipses."""
    around = np.sqrt(found[:, 2] * found[:, 4] - found[:, 3] ** 2)
    return np.column_stack([found[:, :2], around, 0 * around, around])


cut = [cairn.patches(photo, circles(found)) for photo, found in zip(photos, pairs, strict=True)]
cut += [cairn.patches(photo, found) for photo, found in zip(photos, pairs, strict=True)]
figure, axes = plt.subplots(4, 8, figsize=(9, 5.2), layout="constrained")
names = "circles,\nfirst photo", "circles,\nsecond photo", "ellipses,\nfirst photo", "ellipses,\nsecond photo"
for row, (name, patches) in enumerate(zip(names, cut, strict=True)):
    axes[row, 0].set_ylabel(name)
    for column, patch in enumerate(patches):
        axes[row, column].imshow(patch, cmap="gray")
        axes[row, column].set(xticks=[], yticks=[])
        if row % 2:
            correlation = np.corrcoef(patch.ravel(), cut[row - 1][column].ravel())[0, 1]
            axes[row, column].set_xlabel(f"{correlation:.2f}")
for number, axis in enumerate(axes[0], start=1):
    axis.set_title(str(number))
plt.show()
# sphinx_gallery_thumbnail_number = 2
