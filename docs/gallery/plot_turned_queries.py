"""
Queries that are turned
=======================

Cairn takes "down" to be down: a region's patch is upright, which makes descriptors more telling than patches turned to
their strongest gradient. A query that was scanned on its side is found all the same: it is tried at several turns.
"""

# %%
# A photo at all angles
# ---------------------
#
# We index six prints, two photos of each, and turn a new photo of one of them by 15 degrees at a time. Once it may only
# be tried upright (``turns=1``), once at eight turns, which is the default.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sample_photos import photograph, pose, read_print, write_photos

import cairn

folder = TemporaryDirectory()
photos = Path(folder.name) / "photos"
write_photos(photos, each=2, turn=5, names=("astronaut", "cat", "coffee", "photographer", "rocket", "tissue"))
collection = cairn.create(Path(folder.name) / "prints.cairn", max_features=600)
collection.add(photos, workers=1)

angles = np.arange(-180, 181, 15)
shape = read_print("photographer").shape
queries = {angle: photograph({"photographer": pose(shape, (240, 180), size=0.5, turn=angle)}) for angle in angles}
best = {turns: [collection.search(photo, top=1, turns=turns)[0] for photo in queries.values()] for turns in (1, 8)}

# %%
# Inliers by angle
# ----------------
#
# Upright features bear about 20 degrees, and nothing is found beyond. Eight turns are 45 degrees apart, and no angle is
# farther than 22.5 degrees from one that was tried. A dot's colour is the turn at which the photo was found.

figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
axis.plot(angles, [result.inliers for result in best[1]], color="0.6", linewidth=2, label="upright only")
axis.plot(angles, [result.inliers for result in best[8]], color="black", linewidth=1, label="eight turns")
turns = np.rad2deg([result.turn for result in best[8]])
dots = axis.scatter(
    angles, [result.inliers for result in best[8]], c=turns % 360, cmap="hsv", vmin=0, vmax=360, zorder=3
)
figure.colorbar(dots, ax=axis, label="found at a turn of (degrees)", ticks=range(0, 361, 90))
axis.set(xlabel="turn of the photo (degrees)", ylabel="inliers of the best photo", xticks=angles[::2], ylim=(0, None))
axis.set_title("inliers by angle")
axis.grid(alpha=0.3)
axis.legend(loc=(0.66, 0.2))

# %%
# Four of the queries, and how many matches agree when only upright is tried, and at eight turns.

figure, axes = plt.subplots(1, 4, figsize=(9, 2.2), layout="constrained")
for axis, angle in zip(axes, (0, 30, 90, 180), strict=True):
    upright, turned = (best[turns][list(angles).index(angle)].inliers for turns in (1, 8))
    axis.imshow(queries[angle])
    axis.set_title(f"{angle}°: {upright} and {turned}")
    axis.set_axis_off()
figure.suptitle("inliers upright, and at eight turns")
plt.show()

collection.close()
folder.cleanup()
