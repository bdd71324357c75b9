"""
What query expansion adds
=========================

A poor photo has few features, and misses photos that a better one would find. The photos that it does find, for sure,
are better ones: expansion takes features from them, and searches again.
"""

# %%
# A poor query
# ------------
#
# Six prints, seven photos of each, some at a slant of 70 degrees. The query is dark and noisy, and the box shows no
# more than a shoulder.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sample_photos import outline, photograph, pose, read_print, write_photos

import cairn

folder = TemporaryDirectory()
photos = Path(folder.name) / "photos"
names = ("coffee", "motorcycle", "astronaut", "photographer", "tissue", "cat")
write_photos(photos, 7, names, slant=70, turn=20, sizes=(0.35, 0.8))
collection = cairn.create(Path(folder.name) / "prints.cairn", words=6000, max_features=800)
collection.add(photos, workers=1)

where = pose(read_print("astronaut").shape, (240, 180), size=0.5, slant=30, towards=45)
query = photograph({"astronaut": where}, 3, light=0.6, noise=0.04)
corners = outline("astronaut", where)
width, height = np.ptp(corners, axis=0)
x, y = corners.mean(axis=0) - [width / 4, 0]
box = (x - width * 0.15, y - height * 0.15, x + width * 0.15, y + height * 0.15)
plain, expanded = (
    collection.search(query, box, top=9, engine="tf-idf-sp", turns=1, expand=how) for how in ("none", "average")
)

# %%
# What the found photos know of the box
# -------------------------------------
#
# The homography of each photo that is found for sure takes its features to the query. Those that fall into the box are
# what average expansion adds to it (Chum et al., ICCV 2007). They are drawn at three times their size.

own = cairn.detect(query)
added = [own[:0]]
for result in plain.found:
    regions = cairn.detect(plt.imread(result.path), max_features=800)
    back = np.linalg.inv(result.homography)
    step = np.array([[0, 0], [1, 0], [0, 1]])  # a point, and its neighbours: how the map acts around it
    points = np.dstack([regions[:, None, :2] + step, np.ones((len(regions), 3))]) @ back.T
    points = points[..., :2] / points[..., 2:]
    linear = np.linalg.inv((points[:, 1:] - points[:, :1]).swapaxes(1, 2))
    shape = linear.swapaxes(1, 2) @ regions[:, [2, 3, 3, 4]].reshape(-1, 2, 2) @ linear
    added.append(np.column_stack([points[:, 0], shape[:, 0, 0], shape[:, 0, 1], shape[:, 1, 1]]))
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for axis in axes:
    axis.imshow(query)
    axis.set_axis_off()
axes[0].set_title("the query")
axes[0].add_patch(plt.Rectangle(box[:2], box[2] - box[0], box[3] - box[1], fill=False, edgecolor="gold", linewidth=2))
for axis, rows, what in ((axes[1], own, "of its own"), (axes[2], np.concatenate(added), "from others")):
    inside = rows[(np.abs(rows[:, :2] - [x, y]) < 0.15 * np.array([width, height])).all(axis=1)]
    axis.add_collection(LineCollection(cairn.outlines(inside, 3), colors="gold", linewidths=0.8))
    axis.set(xlim=box[::2], ylim=box[:0:-2], title=f"the box: {len(inside)} features {what}")

# %%
# What it changes
# ---------------
#
# The best nine of 42 photos, without expansion and with it: green frames show the portrait. All seven of them come
# first with it.

figure, axes = plt.subplots(2, 9, figsize=(9, 2.4), layout="constrained")
for row, answer, title in zip(axes, (plain, expanded), ("plain", "expanded"), strict=True):
    row[0].set_ylabel(title)
    for axis, result in zip(row, answer, strict=True):
        axis.imshow(plt.imread(result.path))
        axis.set(xticks=[], yticks=[])
        axis.set_title(f"{result.score:.2f}", fontsize=9)
        axis.spines[:].set(color="limegreen" if "astronaut" in result.name else "crimson", linewidth=3)
figure.suptitle("the best nine photos, and their scores")
plt.show()

collection.close()
folder.cleanup()
# sphinx_gallery_thumbnail_number = 2
