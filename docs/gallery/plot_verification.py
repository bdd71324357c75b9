"""
Matches, and the map that they agree on
=======================================

Descriptors alone are often wrong: grass looks like grass. Matches that show the same thing agree on one map of the
plane, and wrong ones agree on nothing. That is how Cairn distinguishes what is found from what only looks alike.
"""

# %%
# Tentative matches
# -----------------
#
# Each region of the first photo is matched with its nearest in the second, if that is mutual. No match is left out for
# being ambiguous (``ratio=1``), so that there is something to sort out.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sample_photos import outline, photograph, pose, read_print
from skimage import transform

import cairn

portrait, page = read_print("astronaut").shape, read_print("page").shape
poses = [
    {"astronaut": pose(portrait, (150, 185), size=0.58, turn=-6), "page": pose(page, (375, 180), size=0.36, turn=5)},
    {"astronaut": pose(portrait, (320, 180), size=0.66, turn=12, slant=48, towards=70)},
]
photos = [photograph(where, seed, light=light) for seed, where, light in ((5, poses[0], 1.0), (2, poses[1], 0.8))]
regions = [cairn.detect(photo) for photo in photos]
descriptors = [cairn.describe(photo, rows) for photo, rows in zip(photos, regions, strict=True)]
matches = cairn.nearest_matches(*descriptors, ratio=1)

# %%
# Verification
# ------------
#
# Each match of two ellipses is a hypothesis of its own: it says how the first photo would have to be mapped. The one
# that most others agree with is refined. What agrees is an inlier.

verified = cairn.verify(*regions, matches, photos[0].shape, photos[1].shape)
print(f"{len(matches)} tentative matches, {len(verified.inliers)} inliers, {verified.probability:.0%} sure")

side_by_side = np.hstack(photos)
shift = np.array([photos[0].shape[1], 0])
figure, axes = plt.subplots(2, 1, figsize=(7, 5.6), layout="constrained")
for axis, pairs, colour, title in (
    (axes[0], matches, "orangered", f"{len(matches)} tentative matches"),
    (axes[1], verified.inliers, "limegreen", f"{len(verified.inliers)} agree on a map"),
):
    ends = np.stack([regions[0][pairs[:, 0], :2], regions[1][pairs[:, 1], :2] + shift], axis=1)
    axis.imshow(side_by_side)
    axis.add_collection(LineCollection(ends, colors=colour, linewidths=0.5, alpha=0.6))
    axis.scatter(*ends.reshape(-1, 2).T, s=4, color=colour)
    axis.set(title=title, xlim=(0, 959), ylim=(359, 0))
    axis.set_axis_off()

# %%
# What the map is good for
# ------------------------
#
# The map takes any point of the first photo to the second: here the print's outline, in green what was found, and
# dashed in white where it really is. Seen with the first photo's eyes, the second one shows the portrait from the front
# again.

corners = outline("astronaut", poses[0]["astronaut"])
truth = outline("astronaut", poses[1]["astronaut"])
found = transform.matrix_transform(corners, verified.homography)
print(f"The corners are found to {np.linalg.norm(found - truth, axis=1).mean():.1f} pixels.")

figure, axes = plt.subplots(1, 3, figsize=(9, 2.5), layout="constrained")
back = transform.warp(photos[1], transform.ProjectiveTransform(verified.homography), output_shape=photos[0].shape[:2])
axes[0].imshow(photos[0])
axes[0].add_patch(plt.Polygon(corners, fill=False, edgecolor="limegreen", linewidth=2))
axes[1].imshow(photos[1])
axes[1].add_patch(plt.Polygon(found, fill=False, edgecolor="limegreen", linewidth=2))
axes[1].add_patch(plt.Polygon(truth, fill=False, edgecolor="white", linewidth=1, linestyle="--"))
axes[2].imshow(back)
for axis, title in zip(axes, ("first photo", "second photo", "second, mapped back"), strict=True):
    axis.set_title(title)
    axis.set_axis_off()
plt.show()
