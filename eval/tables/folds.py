"""Cross-validation by scene: models learnt from the photos of some scenes are measured on the queries of the others. A
scene is all photos that belong together in any set: those named by a query, and those of queries with a common photo.
Sets may share photos, and then scenes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval.tables.sets import RetrievalSet
from index.errors import CairnError
from learning.measures.differences import mean_and_error
from retrieval.groups.links import components
from retrieval.photos.listing import list_photos


@dataclass(frozen=True)
class Scene:
    """Photos that belong together, and their queries."""

    photos: frozenset[Path]
    queries: frozenset[tuple[str, str]]  # name of the set, name of the query


@dataclass(frozen=True)
class Fold:
    """Training photos and test queries, of disjoint scenes."""

    number: int  # counted from 0
    training: tuple[Path, ...]  # photos, sorted
    tested: tuple[Scene, ...]


def queries_of(scenes: Iterable[Scene], photos: RetrievalSet) -> frozenset[str]:
    """Names of a set's queries for some scenes."""
    return frozenset(name for scene in scenes for owner, name in scene.queries if owner == photos.name)


def find_scenes(sets: Sequence[RetrievalSet]) -> list[Scene]:
    """The scenes of some sets, in the order of their first photos; photos named by no query are in no scene."""
    groups = [
        ((photos.name, query.name), members)
        for photos in sets
        for query, members in zip(photos.asked, _members(photos), strict=True)
    ]
    paths = sorted({path for _, members in groups for path in members})
    places = {path: place for place, path in enumerate(paths)}
    scenes = components((places[min(members)], places[path]) for _, members in groups for path in members)
    owner = {place: number for number, members in enumerate(scenes) for place in members}
    names: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for name, members in groups:
        names[owner[places[min(members)]]].add(name)
    return [
        Scene(frozenset(paths[place] for place in members), frozenset(names[number]))
        for number, members in enumerate(scenes)
    ]


def _members(photos: RetrievalSet) -> list[set[Path]]:
    """The photos named by each query of a set: its own, positives and ignored ones."""
    paths = {path.stem: path for _, path in list_photos([photos.images])}
    return [
        {own} | {paths[stem] for stem in query.positives | query.junk if stem in paths} for query, own in photos.pairs()
    ]


def make_folds(scenes: Sequence[Scene], number: int, seed: int = 0, always: Sequence[Path] = ()) -> list[Fold]:
    """Assign scenes to folds with about equally many queries; photos in `always` are in every training set."""
    if number < 2:
        raise CairnError(f"Cross-validation takes two folds at least, not {number}.")
    if len(scenes) < number:
        raise CairnError(f"{len(scenes)} scenes cannot be dealt out to {number} folds: ask for fewer.")
    order = np.random.default_rng(seed).permutation(len(scenes)).tolist()
    order.sort(key=lambda place: -len(scenes[place].queries))
    dealt: list[list[int]] = [[] for _ in range(number)]
    for place in order:
        fewest = min(dealt, key=lambda places: (sum(len(scenes[one].queries) for one in places), len(places)))
        fewest.append(place)
    folds = []
    for fold, places in enumerate(dealt):
        tested = {path for place in places for path in scenes[place].photos}
        others = {path for place, scene in enumerate(scenes) if place not in places for path in scene.photos}
        training = (others | set(always)) - tested
        folds.append(Fold(fold, tuple(sorted(training)), tuple(scenes[place] for place in sorted(places))))
    return folds


@dataclass(frozen=True)
class SceneDifference:
    """Mean difference of average precision over scenes, and its standard error."""

    mean: float
    error: float  # infinite for one scene
    scenes: int
    worst: tuple[tuple[str, float], ...]  # names of the queries with the largest losses, and their differences


def compare(
    scenes: Sequence[Scene], photos: RetrievalSet, one: Mapping[str, float], other: Mapping[str, float], worst: int = 3
) -> SceneDifference:
    """Compare two search methods on a set, ``one`` minus ``other``, with equal weights of scenes."""
    means: list[float] = []
    differences: dict[str, float] = {}
    for scene in scenes:
        names = sorted(queries_of([scene], photos))
        if names:
            differences |= {name: one[name] - other[name] for name in names}
            means.append(float(np.mean([differences[name] for name in names])))
    if not means:
        raise CairnError(f"No query of {photos.name} is of these scenes.")
    lost = sorted((value, name) for name, value in differences.items() if value < 0)[:worst]
    mean, error = mean_and_error(np.array(means))
    return SceneDifference(mean, error, len(means), tuple((name, value) for value, name in lost))
