"""
Searching for a box
===================

A photo often shows several things. A box says which one is meant. Here we index thirty photos of two prints each, and
search for one of the two.
"""

# %%
# A collection
# ------------
#
# A collection is a folder with what Cairn knows of photos; they stay where they are. :func:`cairn.create` makes one,
# and :meth:`cairn.Collection.add` detects, describes and indexes them.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
from sample_photos import outline, take, write_photos

import cairn

folder = TemporaryDirectory()
photos = Path(folder.name) / "photos"
write_photos(photos, each=3, together=2)
collection = cairn.create(Path(folder.name) / "prints.cairn")
added = collection.add(photos, workers=1)
print(f"{added.images} photos, {added.features:,} features, {added.words:,} words")

# %%
# The query
# ---------
#
# The query is a photo that the collection has not seen. The box is drawn around the cup.

query, poses = take(["coffee", "astronaut"], 9)
corners = outline("coffee", poses["coffee"])
box = (*corners.min(axis=0).clip(0), *corners.max(axis=0).clip(0, (479, 359)))
answer = collection.search(query, box, top=7)
for result in answer[:3]:
    print(f"{result.rank}. {result.name}: {result.inliers} inliers, {result.probability:.0%}")

# %%
# What is found
# -------------
#
# Six of the thirty photos have the cup, whatever lies next to it, and they come first. Each inlier is a match that
# agrees with the others on one map of the box. Mapped to a photo, the box becomes the outline that is drawn there. The
# seventh photo has only some words in common with the query, and nothing that agrees.

figure, axes = plt.subplots(2, 4, figsize=(9, 3.9), layout="constrained")
axes[0, 0].imshow(query)
axes[0, 0].add_patch(
    plt.Rectangle(box[:2], box[2] - box[0], box[3] - box[1], fill=False, edgecolor="gold", linewidth=3)
)
axes[0, 0].set_title("query", weight="bold")
for axis, result in zip(axes.flat[1:], answer, strict=True):
    axis.imshow(plt.imread(result.path))
    axis.set_title(f"{result.rank}. {result.inliers} inliers")
    if result.region:
        axis.add_patch(plt.Polygon(result.region, fill=False, edgecolor="limegreen", linewidth=2.5))
for axis in axes.flat:
    axis.set_axis_off()
plt.show()

# %%
# A whole photo
# -------------
#
# Without the box, what both prints have in common with photos counts, and those of either are found.

for asked, given in (("box", box), ("whole photo", None)):
    names = [result.name for result in collection.search(query, given).found]
    counts = [sum(print_ in name for name in names) for print_ in ("coffee", "astronaut")]
    print(f"{asked}: {len(names)} photos are found, {counts[0]} with the cup, {counts[1]} with the astronaut")

collection.close()
folder.cleanup()
