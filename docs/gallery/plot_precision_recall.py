"""
Precision and recall of the engines
===================================

How good is a search? Search with photos whose results are known, and look how much of it comes first.
"""

# %%
# Rankings and the truth
# ----------------------
#
# Five prints with five photos of each, some from very far to the side. Each photo is a query once, and the other four
# of its print are what should be found. The query itself is found easily: it is junk, which counts neither way. There
# are few words here, so that words alone are not enough.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
from sample_photos import write_photos

import cairn

folder = TemporaryDirectory()
photos = Path(folder.name) / "photos"
names = ("astronaut", "coffee", "motorcycle", "photographer", "tissue")
write_photos(photos, 5, names, slant=75, turn=25, sizes=(0.3, 0.7))
collection = cairn.create(Path(folder.name) / "prints.cairn", words=100, max_features=500)
collection.add(photos, workers=1)

queries = [photo.name for photo in collection]
print_of = {name: name.split("_")[0] for name in queries}
truth = {
    query: {"good": {name for name in queries if print_of[name] == print_of[query] and name != query}, "junk": {query}}
    for query in queries
}
found = {}
for engine in ("tf-idf", "tf-idf-sp", "signatures", "signatures-sp"):
    answers = collection.search_many(queries, engine=engine, top=len(queries), turns=1)
    found[engine] = cairn.evaluate_retrieval(dict(zip(queries, answers, strict=True)), truth)
    print(f"{engine:14} mAP {found[engine].mean_ap:.3f}")

# %%
# Curves
# ------
#
# Precision is the share of photos down to a rank that are right, recall the share of what is right that they hold.
# Words alone (``tf-idf``) put wrong photos among the first. Geometry (``-sp``) moves those up that agree on a map.
# Signatures tell the features of one word apart, and leave less for geometry to do. The left panel has the mean over
# all queries, the right one the average precision of each.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for place, (engine, one) in enumerate(found.items()):
    style = {"color": f"C{place // 2}", "linestyle": "-" if engine.endswith("-sp") else "--"}
    left.plot(*one.curve(), label=f"{engine}, mAP {one.mean_ap:.2f}", linewidth=2, **style)
    right.plot(sorted(one.ap.values()), marker=".", label=engine, **style)
left.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02), title="mean of all queries")
left.legend(loc="lower left")
right.set(xlabel="queries, the hardest first", ylabel="average precision", ylim=(0, 1.02), title="each query")
for axis in (left, right):
    axis.grid(alpha=0.3)
plt.show()

collection.close()
folder.cleanup()
