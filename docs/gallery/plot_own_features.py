"""
Features of your own
====================

Cairn indexes, searches and verifies keypoints and descriptors of any program. They come from files; here OpenCV's ORB,
256 comparisons of pixels, writes them.
"""

# %%
# A file for each photo
# ---------------------
#
# A file holds ``keypoints`` (x, y, radius, angle in radians) and ``descriptors``, and is called as the photo is, with
# ``.npz`` in place of ``.jpg``. ORB's are packed bits, which ``binary`` says: they are compared by Hamming distance.

from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sample_photos import take, write_photos

import cairn

folder = TemporaryDirectory()
photos, features = Path(folder.name) / "photos", Path(folder.name) / "features"
features.mkdir()


def describe(photo, path):
    """Write ORB's features of a photo (H, W, 3) to a file."""
    points, rows = cv2.ORB_create(800).detectAndCompute(cv2.cvtColor(photo, cv2.COLOR_RGB2GRAY), None)
    keypoints = [(*point.pt, point.size / 2, np.deg2rad(point.angle)) for point in points]
    np.savez(path, keypoints=np.array(keypoints, np.float32), descriptors=rows, binary=True)


for path in write_photos(photos, each=3):
    describe(plt.imread(path), features / f"{path.stem}.npz")

# %%
# Indexing and searching
# ----------------------
#
# The rest is as with Cairn's own features. The query is described in the same way, since Cairn cannot do it: its
# features are looked for where those of the photos were.

collection = cairn.create(Path(folder.name) / "orb.cairn", features=features, photos=photos)
added = collection.add(photos, workers=1)
print(f"{added.images} photos, {added.features:,} features, {added.words:,} words")

query, _ = take(["motorcycle"], 8, turn=20, slant=40)
query_file = Path(folder.name) / "query.png"
plt.imsave(query_file, query)
describe(query, features / "query.npz")
answer = collection.search(query_file)
for result in answer[:5]:
    print(f"{result.rank}. {result.name}: {result.inliers} inliers, {result.probability:.0%}")

# %%
# What matched
# ------------
#
# The best photo next to the query, with one in ten of the keypoints that agree: circles of ORB's radius, joined by
# lines. ORB's keypoints have an angle, so one match gives a hypothesis of scale, turn and shift; the map is refined
# from there.

match = collection.match(query_file, answer[0])
found = plt.imread(answer[0].path)
shift = query.shape[1]
here, there = match.query_ellipses[::10], match.photo_ellipses[::10] + np.array([shift, 0, 0, 0, 0])
figure, axis = plt.subplots(figsize=(9, 3.5), layout="constrained")
axis.imshow(np.hstack([query, found]))
axis.add_collection(LineCollection(np.stack([here[:, :2], there[:, :2]], axis=1), colors="gold", linewidths=0.8))
axis.add_collection(LineCollection(cairn.outlines(np.concatenate([here, there])), colors="limegreen", linewidths=1.2))
axis.set(title=f"{match.inliers} matches agree", xlim=(0, 959), ylim=(359, 0))
axis.set_axis_off()
plt.show()

collection.close()
folder.cleanup()
