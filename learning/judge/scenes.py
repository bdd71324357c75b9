"""Scenes formed by strict links, and queries in their photos: boxes, and their positives."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from learning.judge.strict_links import StrictLinks
from learning.judge.tracks import Tracks
from learning.labels.verified import relate
from retrieval.catalogue.schema import ImageRow
from retrieval.groups.links import components
from retrieval.search.query import Box, shrunk_box

PARTS = (1.0, 0.5, 1 / 3)
"""Parts of the box that a photo's links agree on, used as queries: all of it, and its middle, which is harder to
find."""


@dataclass(frozen=True)
class QueryOptions:
    """Options of queries."""

    photos: int = 4  # most query photos of a scene
    inside: int = 8  # least number of shared tracks within a box by which another photo counts as showing it
    margin: float = 0.05  # share of inliers cut off at each side of the box
    smallest: float = 0.1  # least shorter side of a box, relative to the photo's longer side
    seed: int = 0  # seed of drawing photos


@dataclass(frozen=True)
class BoxQuery:
    """A box in a photo, and the positives of a search for it."""

    photo: int  # image number
    scene: int  # the smallest number of the scene's photos
    part: float  # one of `PARTS`
    box: Box  # pixels of the upright original
    positives: frozenset[int]  # photos with a strict link that covers the box
    ignored: frozenset[int]  # the photo itself, the others of its scene, and photos that may show the scene


@dataclass(frozen=True)
class Scenes:
    """The scenes formed by the strict links of a collection."""

    members: list[frozenset[int]]  # photos of each scene, by its smallest number
    queries: list[BoxQuery]  # by scene

    def held_out(self, learnt_from: Collection[int]) -> list[BoxQuery]:
        """Queries of the scenes without training photos."""
        training = {min(scene) for scene in self.members if not scene.isdisjoint(learnt_from)}
        return [query for query in self.queries if query.scene not in training]


def find_scenes(links: StrictLinks, rows: Sequence[ImageRow], options: QueryOptions) -> Scenes:
    """Form scenes from the connected components of strict links, and queries from some of their photos."""
    numbers = np.array([row.number for row in rows], np.int64)
    # 1 for strict and 0 for doubtful links: only links define relations.
    sure = dict.fromkeys(links.doubtful, 0) | dict.fromkeys(links.inliers, 1)
    relevance, first = relate(numbers, sure, 1, most=options.photos, seed=options.seed)
    sizes = {row.number: (row.width or 1, row.height or 1) for row in rows}
    around = _neighbours(links)
    tracks = Tracks(links)
    members = {min(scene): frozenset(scene) for scene in components(links.inliers)}
    queries = []
    queries_of_objects = zip(relevance.queries.tolist(), relevance.objects.tolist(), relevance.positives, strict=True)
    for photo, place, positives in queries_of_objects:
        scene = first[place]
        # Photos that may show the scene: doubtful links of any of its photos.
        ignored = members[scene].union(*(around[one] for one in members[scene]))
        whole = box_of(
            np.concatenate([_inliers_in(links, photo, other) for other in positives.tolist()]), options.margin
        )
        numbers_of_tracks, places = tracks.of(photo)
        for part in PARTS:
            box = shrunk_box(whole, part)
            shared = tracks.shared(numbers_of_tracks[inside(places, box)], members[scene] - {photo})
            covered = frozenset(other for other, count in shared.items() if count >= options.inside)
            if covered and min(box[2] - box[0], box[3] - box[1]) >= options.smallest:
                pixels = in_pixels(box, max(sizes[photo]))
                queries.append(BoxQuery(photo, scene, part, pixels, covered, ignored - covered))
    return Scenes(list(members.values()), queries)


def box_of(centres: NDArray[np.floating], margin: float) -> Box:
    """The box (x0, y0, x1, y1) of points (N, 2) without a share of them at each side."""
    x0, y0 = np.quantile(centres, margin, axis=0).tolist()
    x1, y1 = np.quantile(centres, 1 - margin, axis=0).tolist()
    return x0, y0, x1, y1


def inside(centres: NDArray[np.floating], box: Box) -> NDArray[np.bool_]:
    """Mask of the points (N, 2) in a box."""
    low, high = np.array(box).reshape(2, 2)
    return np.asarray(((centres >= low) & (centres <= high)).all(axis=1))


def in_pixels(box: Box, side: int) -> Box:
    """Convert a box in units of the longer side, with the corner of the top-left pixel at (0, 0), to pixels."""
    x0, y0, x1, y1 = (side * value - 0.5 for value in box)
    return x0, y0, x1, y1


def _inliers_in(links: StrictLinks, photo: int, other: int) -> NDArray[np.float32]:
    """Centres (K, 2) in a photo of the inliers of its link with another."""
    return links.inliers[min(photo, other), max(photo, other)][:, int(photo > other)]


def _neighbours(links: StrictLinks) -> defaultdict[int, set[int]]:
    """Neighbours of each photo by doubtful links."""
    around: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in links.doubtful:
        around[one].add(other)
        around[other].add(one)
    return around
