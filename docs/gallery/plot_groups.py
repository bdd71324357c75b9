"""
Groups of photos that show the same
===================================

Nobody has to ask: a collection can be searched for each of its own photos, and those that verify each other are linked.
Photos that are linked with enough of each other are a group.
"""

# %%
# Photos, copies, and photos of nothing
# -------------------------------------
#
# Six prints with three photos of each, two copies that somebody made smaller, and three photos of the bare ground.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
from matplotlib import image
from sample_photos import photograph, write_photos
from skimage import transform

import cairn

folder = TemporaryDirectory()
photos = Path(folder.name) / "photos"
paths = write_photos(photos, 3, ("astronaut", "cat", "coffee", "motorcycle", "photographer", "tissue"))
for path in (paths[0], paths[7]):
    smaller = transform.resize(plt.imread(path), (300, 400), anti_aliasing=True)
    image.imsave(photos / f"copy_of_{path.name}", smaller, pil_kwargs={"quality": 80})
for number in range(3):
    image.imsave(photos / f"ground_{number}.jpg", photograph({}, number))

collection = cairn.create(Path(folder.name) / "photos.cairn")
collection.add(photos, workers=1)
groups = collection.group(workers=1)
grouped = sum(len(group) for group in groups)
print(f"{len(groups)} groups, {grouped} of {len(collection)} photos are in one")

# %%
# What is found
# -------------
#
# Each row is a group, and begins with its cover: the photo that has the most features. Photos that repeat another one,
# or nearly so, are marked, dashed here, so that a page can leave them out. The bare ground is in no group.

columns = max(len(group) for group in groups)
figure, axes = plt.subplots(len(groups), columns, figsize=(1.9 * columns, 1.5 * len(groups)), layout="constrained")
for row, group in zip(axes, groups, strict=True):
    row[0].set_ylabel(f"group {group.number}\n{group.links} links")
    ordered = [group.cover, *(photo for photo in group if photo != group.cover)]
    for axis in row:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    for axis, photo in zip(row, ordered, strict=False):
        axis.imshow(plt.imread(photo.path))
        if photo.name in group.duplicates:
            axis.set_title(f"repeats {group.duplicates[photo.name]}", fontsize=9)
            axis.spines[:].set(visible=True, color="darkorange", linewidth=3, linestyle="--")
figure.suptitle("groups of a collection, each a row")
plt.show()

collection.close()
folder.cleanup()
