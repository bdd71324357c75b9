"""The parts of the panel: sets of photos, and their queries, by kind and scene."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from eval.panel.kinds import (
    BUILDINGS,
    DARK,
    FACADE,
    GROUPS,
    LANDMARKS,
    LOOSE,
    PRINT,
    SMALL,
    SOLID,
    STRIP,
    TURNED,
)
from eval.scenes_shown import find_photo_sets
from eval.tables import sets
from eval.tables.sets import RetrievalSet, find_set
from learning.labels.ground_truth import GroundTruthQuery
from retrieval.search.query import Box

_TURNS = (90, 180, 270)  # degrees
_STRIP = 0.8, 0.16  # width and height of a strip, relative to the query's box
_PLACES = (0.3, 0.5, 0.7)  # of the middles of strips, from the top of the box
_UPRIGHT_STRIP = 4  # every n-th strip is high and narrow
_WHOLE: Box = (0.0, 0.0, 1e6, 1e6)  # clipped to the photo


@dataclass(frozen=True)
class PanelQuery:
    """A query of the panel."""

    name: str
    kind: str  # one of `eval.panel.kinds.KINDS`
    scene: str  # queries of one scene are one sample
    path: Path  # the photo
    box: Box | None  # None: all of the photo
    positives: frozenset[str]  # stems of the photos to find
    junk: frozenset[str]  # of those that do not count
    turn: int = 0  # rotation of the query photo in degrees, counterclockwise


@dataclass(frozen=True)
class PanelPart:
    """A set of photos, and its queries."""

    photos: RetrievalSet
    queries: Sequence[PanelQuery]


def find_parts(root: Path) -> list[PanelPart]:
    """Find the parts of the panel below a folder of sets; raises CairnError if a set is missing."""
    landmarks, paintings, hard, wild, solid = (
        find_set(root, name) for name in ("landmarks", "paintings", sets.HARD, "wild", sets.SOLID)
    )
    plain = list(_landmarks(landmarks))
    flat = list(_paintings(paintings, root))
    groups = list(_groups(solid, root))
    return [
        PanelPart(landmarks, [*plain, *_strips(plain), *_turned(plain)]),
        PanelPart(paintings, [*flat, *_turned(flat[::8])]),
        PanelPart(hard, [replace(one, kind=SMALL) for one in _landmarks(hard)]),
        PanelPart(wild, list(_wild(wild))),
        PanelPart(solid, [*groups, *_turned(groups)]),
    ]


def _asked(query: GroundTruthQuery, path: Path, kind: str, scene: str) -> PanelQuery:
    return PanelQuery(query.name, kind, scene, path, query.box, query.positives, query.junk | {query.stem})


def _landmarks(photos: RetrievalSet) -> Iterator[PanelQuery]:
    for query, path in photos.pairs():
        scene = re.sub(r"_\d+$", "", query.name)
        yield _asked(query, path, LANDMARKS.get(scene, FACADE), scene)


def _paintings(photos: RetrievalSet, root: Path) -> Iterator[PanelQuery]:
    """Photos of the same painting that the ground truth does not name are ignored."""
    (known,) = find_photo_sets(root, ["paintings"])
    stems = {path.stem for path in photos.photos}
    for query, path in photos.pairs():
        panel_query = _asked(query, path, PRINT, min(query.positives))
        same = frozenset(stem for stem in stems - query.positives if known.same(query.stem, stem) is not False)
        yield replace(panel_query, junk=panel_query.junk | same)


def _wild(photos: RetrievalSet) -> Iterator[PanelQuery]:
    """Buildings by two cameras, one far too dark; and two statues and a boulder from all sides."""
    stems = [path.stem for path in photos.photos]
    for query, path in photos.pairs():
        source, _, rest = query.name.partition("_")
        building = rest.partition("_")[0]
        if source != "sf":
            yield _asked(query, path, SOLID, source)
            continue
        panel_query = _asked(query, path, DARK, f"sf_{building}")
        beside = {other for same in BUILDINGS if building in same for other in same}
        also = {stem for stem in stems if stem.startswith("sf_") and stem.rpartition("_")[2] in beside}
        yield replace(panel_query, junk=panel_query.junk | (also - query.positives))


def _groups(photos: RetrievalSet, root: Path) -> Iterator[PanelQuery]:
    """Queries: a few photos of each group, evenly spread."""
    (known,) = find_photo_sets(root, ["unlabelled"])
    paths = {path.stem: path for path in photos.photos}
    scenes: dict[str, list[tuple[str, str]]] = defaultdict(list)  # stem and group
    for group, stems in sets.read_groups(photos.ground_truth, "unlabelled").items():
        if group in GROUPS:
            (scene,) = known.shown(stems[0])[0]
            scenes[group if scene in LOOSE else scene] += [(stem, group) for stem in stems if stem in paths]
    for scene, members in sorted(scenes.items()):
        own = {stem for stem, _ in members}
        for number, (stem, group) in enumerate(sets.spread(members)):
            same = {other for other in paths if known.same(stem, other) is not False}
            positives = frozenset(other for other in same & own if known.same(stem, other)) - {stem}
            if positives:
                name = f"{scene}_{number + 1}"
                yield PanelQuery(name, GROUPS[group], scene, paths[stem], None, positives, frozenset(same - positives))


def _strips(queries: Sequence[PanelQuery]) -> Iterator[PanelQuery]:
    """Low and wide boxes, one a query, within its box; some are high and narrow."""
    for number, query in enumerate(queries):
        width, height = _size(query.path)
        box = query.box or _WHOLE
        x0, y0, x1, y1 = max(box[0], 0), max(box[1], 0), min(box[2], width - 1), min(box[3], height - 1)
        middle = _PLACES[number % len(_PLACES)]
        long, short = (part / 2 for part in _STRIP)
        low = number % _UPRIGHT_STRIP > 0
        (across, half_width), (down, half_height) = ((0.5, long), (middle, short))[:: 1 if low else -1]
        left, right = (x0 + (across + half) * (x1 - x0) for half in (-half_width, half_width))
        top, bottom = (y0 + (down + half) * (y1 - y0) for half in (-half_height, half_height))
        yield replace(query, name=f"{query.name}_strip", kind=STRIP, box=(left, top, right, bottom))


def _turned(queries: Sequence[PanelQuery]) -> Iterator[PanelQuery]:
    """The first query of each scene, rotated by 90, 180 and 270 degrees in turn."""
    first = {query.scene: query for query in reversed(queries)}
    for number, query in enumerate(query for query in queries if first[query.scene] is query):
        turn = _TURNS[number % len(_TURNS)]
        box = turned_box(query.box, _size(query.path), turn) if query.box else None
        yield replace(query, name=f"{query.name}_turned", kind=TURNED, box=box, turn=turn)


def turned_box(box: Box, size: tuple[int, int], turn: int) -> Box:
    """Box x0, y0, x1, y1 in a photo of some (width, height) after its rotation by 90, 180 or 270 degrees
    counterclockwise.
    """
    x0, y0, x1, y1 = box
    width, height = size
    for _ in range(turn // 90):
        x0, y0, x1, y1 = y0, width - 1 - x1, y1, width - 1 - x0
        width, height = height, width
    return x0, y0, x1, y1


def _size(path: Path) -> tuple[int, int]:
    with Image.open(path) as photo:
        return photo.size
