"""Does a learnt descriptor find more photos of a collection than rootSIFT? Judged by retrieval, without labels.

Photos that strict geometry links are taken to show the same, and are what a search has to find. What that leans to:

- The links are found by matches of rootSIFT. A photo that only the learnt descriptor could link is no positive: where
  nothing links it, it counts as wrong, which is against the learnt descriptor. The photos that such links connect are
  easy for rootSIFT, so that little is left to gain. Tracks through several photos, which lead to photos that it cannot
  match with each other, and boxes of half and a third the size make it harder.
- Candidates of links come from the searches of both descriptors. What either verifies and is no strict link is ignored,
  as is all else that may show a scene.
- Held-out scenes have no photo in a training pair. Models are chosen by pairs held out, of which some may be
  photos of these scenes: a little of what is gained may be luck. A photo that was learnt from may show such a scene
  from where no strict link reaches; then it counts neither way where a search verifies it, and else as wrong.
- The photos that were learnt from are searched among. They are distractors alone: none of them is asked with or is to
  be found. Each descriptor gets its vocabulary from all the photos, the held-out ones among them.
"""
