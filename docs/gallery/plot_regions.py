"""
Regions that are found again
============================

A search by parts begins with *regions*: places of a photo that will be found again in another photo of the same thing,
from another side and in another light. Here two detectors look at one photo, and then one of them looks at two.
"""

# %%
# Two detectors
# -------------
#
# :func:`cairn.detect` gives an array with a row ``x, y, a, b, c`` for each region: an ellipse around (x, y).
# Differences of Gaussians (``dog-affine``) answer to blobs of all sizes, the Hessian's determinant (``hessian-affine``)
# to blobs and corners. Both then stretch each region until the image inside has the same contrast in all directions. Of
# a thousand we draw 150, strong and spread over the photo. The larger, the brighter.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sample_photos import take
from skimage import data, transform

import cairn

photo = data.astronaut()
figure, axes = plt.subplots(1, 2, figsize=(9, 4.9), layout="constrained")
for axis, detector, drawn in zip(axes, ("dog-affine", "hessian-affine"), (3, 1), strict=True):
    everything = cairn.detect(photo, detector=detector)
    regions = cairn.detect(photo, detector=detector, max_features=150)
    size = cairn.radii(regions) * drawn  # mean radius in pixels
    lines = LineCollection(cairn.outlines(regions, drawn), array=np.log(size), cmap="plasma", linewidths=1.3)
    axis.imshow(photo, alpha=0.85)
    axis.add_collection(lines)
    axis.set(title=f"{detector}: 150 of {len(everything):,} regions", xlim=(0, 511), ylim=(511, 0))
    axis.set_axis_off()

# %%
# The same regions, from another side
# -----------------------------------
#
# Now two photos of one print. We know how each was taken, so we can map the regions of the first photo to the second,
# and keep those that lie within two pixels of a region there and have about its size. The detector looked at each photo
# on its own; what it found in both has one colour. The ellipses lean as the print does, and hold the same piece of it.

(first, first_pose), (second, second_pose) = take(["coffee"], 2), take(["coffee"], 5, turn=25, slant=50)
from_first = second_pose["coffee"] @ np.linalg.inv(first_pose["coffee"])
found, other = cairn.detect(first), cairn.detect(second)
centres, edges = (transform.matrix_transform(found[:, :2] + [step, 0], from_first) for step in (0, 1))
zoom = np.linalg.norm(edges - centres, axis=1)
sizes, other_sizes = (cairn.radii(rows) for rows in (found, other))
distance = np.linalg.norm(centres[:, None] - other[:, :2], axis=2)
alike = np.abs(np.log((sizes * zoom)[:, None] / other_sizes)) < 0.35
partner = np.where(alike, distance, np.inf).argmin(axis=1)
again = np.flatnonzero(np.where(alike, distance, np.inf).min(axis=1) < 2)
again = again[np.argsort(-sizes[again], kind="stable")]
print(f"{len(again)} regions are found again.")

shown = again[:70:2]  # large ones show best
colours = plt.colormaps["hsv"](np.linspace(0, 1, len(shown), endpoint=False))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
drawn = ("first photo", first, found[shown]), ("second photo", second, other[partner[shown]])
for axis, (title, image, regions) in zip(axes, drawn, strict=True):
    axis.imshow(image)
    axis.add_collection(LineCollection(cairn.outlines(regions, 3), colors=colours, linewidths=1.8))
    axis.set(xlim=(0, 479), ylim=(359, 0), title=title)
    axis.set_axis_off()
plt.show()
# sphinx_gallery_thumbnail_number = 2
