"""Tracks: points followed through several photos along strict links.

They relate photos of successive sides of an object: positives that matches of rootSIFT alone would miss.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from learning.judge.strict_links import Pair, StrictLinks

_STEPS = 2047  # resolution of positions along a photo's longer side
_APART = 0.02  # of the longer side: a track is rejected if its points in one photo are further apart


class Tracks:
    """The tracks of some photos."""

    def __init__(self, links: StrictLinks) -> None:
        sides = [_places(pair, centres) for pair, centres in links.inliers.items()]
        ends = [np.concatenate([np.zeros((0, 3), np.int64), *(side[which] for side in sides)]) for which in (0, 1)]
        # A node is a position in a photo: regions of several sizes there count as one.
        nodes, of_end = np.unique(np.concatenate(ends), axis=0, return_inverse=True)
        edges = of_end.reshape(2, -1)
        graph = coo_array((np.ones(edges.shape[1]), (edges[0], edges[1])), (len(nodes), len(nodes)))
        self._track = connected_components(graph, directed=False)[1] if len(nodes) else np.zeros(0, np.int32)
        self._photo, self._places = nodes[:, 0], nodes[:, 1:] / _STEPS
        self._keep(~np.isin(self._track, self._inconsistent()))

    def of(self, photo: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tracks (N,) in a photo, and their positions (N, 2) in units of its longer side."""
        first, last = np.searchsorted(self._photo, [photo, photo + 1])
        return self._track[first:last], self._places[first:last]

    def shared(self, tracks: NDArray[np.int32], photos: Iterable[int]) -> dict[int, int]:
        """Count how many of some tracks each of some photos has."""
        wanted = np.unique(tracks)
        return {photo: int(np.isin(wanted, self.of(photo)[0]).sum()) for photo in photos}

    def _keep(self, which: NDArray[np.bool_]) -> None:
        self._track, self._photo, self._places = self._track[which], self._photo[which], self._places[which]

    def _inconsistent(self) -> NDArray[np.int32]:
        """Tracks with two distant points in one photo."""
        order = np.lexsort([self._photo, self._track])
        if not len(order):
            return np.zeros(0, np.int32)
        track, photo, places = self._track[order], self._photo[order], self._places[order]
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(track) != 0) | (np.diff(photo) != 0)]))
        extent = np.maximum.reduceat(places, starts) - np.minimum.reduceat(places, starts)
        return np.unique(track[starts[(extent > _APART).any(axis=1)]])


def _places(pair: Pair, centres: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Photo and place in steps, (K, 3), of the inliers of a link in each of its photos."""
    steps = np.rint(centres * _STEPS).astype(np.int64)
    return [np.insert(steps[:, side], 0, photo, axis=1) for side, photo in enumerate(pair)]
