"""Does a learnt descriptor find more photos of a collection than rootSIFT? Judged by retrieval, without labels.

Photos linked by strict geometry are taken to show the same object, and are the positives of searches. Biases of that
choice:

- The links are found by matches of rootSIFT. A photo that only the learnt descriptor could link is no positive: without
  a link it counts as wrong, which disadvantages the learnt descriptor. The linked photos are easy for rootSIFT, so that
  little is left to gain. To make it harder, tracks through several photos lead to photos that rootSIFT cannot match
  directly, and boxes are also reduced to a half and a third of their size.
- Candidates of links come from the searches of both descriptors. A photo that either verifies without a strict link is
  ignored, as are all others that may show a scene.
- Held-out scenes have no photo in a training pair. Models are chosen by held-out pairs, some of which may be
  photos of these scenes: a little of the gain may be luck. A training photo may show such a scene without a strict
  link; then it is ignored if a search verifies it, and counts as wrong otherwise.
- The training photos are in the database, but only as distractors: they are neither queries nor positives. Each
  descriptor gets its vocabulary from all photos, including the held-out ones.
"""
