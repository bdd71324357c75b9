"""Labels by verification: photos of a collection are positives of each other if geometry verifies that they match."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.progress import Progress, silent
from learning.labels.labels import ISSUED, Relevance
from retrieval.catalogue.photos import names_in_order
from retrieval.collection.collection import Collection
from retrieval.groups.links import components, link_photos


def verified_relevance(
    collection: Collection, *, min_inliers: int = 20, workers: int = 1, progress: Progress = silent
) -> Relevance:
    """Search a collection with each of its photos; positives are verified by `min_inliers` in either direction: see
    `relate`.

    An object has the name of its first photo.
    """
    if min_inliers < 1:
        raise CairnError(f"Two photos are verified by one inlier at least, not by {min_inliers}.")
    links = link_photos(collection, workers=workers, progress=progress)
    numbers = collection.index.image_numbers.astype(np.int64)
    inliers = {pair: link.inliers for pair, link in links.items()}
    relevance, first = relate(numbers, inliers, min_inliers)
    if not first:
        raise CairnError(
            f"No two photos of {collection.folder} are verified by {min_inliers} inliers: ask for fewer, add photos "
            "that show the same things, or learn from labels."
        )
    return replace(relevance, names=tuple(collection.catalogue.read(names_in_order, first)))


def relate(
    numbers: NDArray[np.int64],
    inliers: Mapping[tuple[int, int], int],
    min_inliers: int,
    *,
    most: int = ISSUED,
    seed: int = 0,
) -> tuple[Relevance, list[int]]:
    """Make queries of the photos verified with others. Objects are connected components of at least two photos, with at
    most `most` queries each. Positives are the photos verified with the query; the query itself, the rest of its
    component, and photos with fewer inliers are ignored. Also returns the first image number of each object.
    """
    verified: defaultdict[int, set[int]] = defaultdict(set)
    doubtful: defaultdict[int, set[int]] = defaultdict(set)
    for (one, other), count in inliers.items():
        side = verified if count >= min_inliers else doubtful
        side[one].add(other)
        side[other].add(one)
    objects = components(pair for pair, count in inliers.items() if count >= min_inliers)
    # Queries and their data, object by object.
    rng = np.random.default_rng(seed)
    issued = []
    for members in objects:
        photos = np.array(sorted(members), np.int64)
        issued.append(photos if len(photos) <= most else np.sort(rng.choice(photos, most, replace=False)))
    queries = np.concatenate([np.zeros(0, np.int64), *issued]).tolist()
    objects_of_queries = np.repeat(np.arange(len(objects), dtype=np.int32), [len(photos) for photos in issued])
    relevance = Relevance(
        queries=np.array(queries, np.int64),
        database=np.unique(np.asarray(numbers, np.int64)),
        positives=tuple(np.array(sorted(verified[photo]), np.int64) for photo in queries),
        ignored=tuple(
            np.array(sorted((objects[number] | doubtful[photo]) - verified[photo]), np.int64)
            for photo, number in zip(queries, objects_of_queries.tolist(), strict=True)
        ),
        objects=objects_of_queries,
        names=tuple(str(min(members)) for members in objects),
    )
    return relevance, [min(members) for members in objects]
