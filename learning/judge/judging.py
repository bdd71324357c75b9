"""The judge: photos indexed with rootSIFT and with a learnt descriptor, scenes held out, searches, and the verdict."""

import os
from collections.abc import Collection as Several
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from index.errors import CairnError
from index.progress import Progress, silent
from learning.judge.retrieval import STEP as SEARCH
from learning.judge.retrieval import index_with, search_boxes
from learning.judge.scenes import QueryOptions, Scenes, find_scenes
from learning.judge.strict_links import STEP as MATCH
from learning.judge.strict_links import LinkOptions, Pair, link_strictly
from learning.judge.verdict import RetrievalVerdict, gains
from retrieval.catalogue.curation.rejections import rejected_pairs
from retrieval.catalogue.photos import all_indexed, paths_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.descriptors.registry import find_descriptor
from retrieval.groups.links import link_photos
from retrieval.metadata.pages import file_of

OTHER = "rootsift"
"""The descriptor for verifying links, and the default one to compare a learnt descriptor with."""

TITLES = {
    "judge-photos": "Judge: indexing (photos)",
    "judge-links": "Judge: linking (photos)",
    MATCH: "Judge: matching (pairs)",
    SEARCH: "Judge: searches",
}
"""Titles of the steps of `judge`."""

_MATCHED = "pairs-{}.npz"


@dataclass(frozen=True)
class JudgeOptions:
    """Options of judging a descriptor."""

    photos: int = 1_000  # most photos in the database, unless more are needed; 0: all
    turns: int = 1  # of queries; 1: upright
    links: LinkOptions = field(default_factory=LinkOptions)
    queries: QueryOptions = field(default_factory=QueryOptions)
    seed: int = 0  # seed of drawing photos
    rival: str = OTHER  # name or file of the descriptor to compare with
    staged: Path | None = None  # folder of rootSIFT features extracted earlier, as for mining


def judge(
    source: Collection,
    descriptor: str,
    learnt_from: Several[str],
    work: Path,
    options: JudgeOptions,
    *,
    needed: Several[str] = (),
    workers: int = 1,
    progress: Progress = silent,
) -> RetrievalVerdict:
    """Compare searches with a learnt descriptor and with another; see `learning.judge`.

    The `source` collection provides photos and regions, not its descriptor and vocabulary. `needed` photos must be in
    the database. Scenes with a training photo of `learnt_from` get no queries.
    """
    rows = [row for row in source.catalogue.read(all_indexed) if os.path.isfile(file_of(row.path))]  # noqa: PTH113 (see `find_photo`)
    chosen = choose_photos(rows, {*learnt_from, *needed}, options)
    if not chosen:
        raise CairnError(f"No photo of {source.folder} is where it was, so that no search can be judged by them.")
    # Photos are extracted with each descriptor; the rest of indexing takes little time.
    same = replace(source.options, descriptor=OTHER, signature="none", keep_descriptors=False)
    if len(chosen) < len(rows):  # an explicit size applies to all of them
        same = replace(same, words=0)
    count = len(chosen)

    rival = find_descriptor(options.rival)
    is_usual = rival.fingerprint == find_descriptor(OTHER).fingerprint
    times = 2 if is_usual else 3

    def indexing(before: int, step: str, done: int, _: int) -> None:
        if step == "extract":
            progress("judge-photos", before + done, times * count)

    with_own_descriptors = replace(same, keep_descriptors=True)
    base = index_with(
        OTHER, chosen, with_own_descriptors, work, staged=options.staged, workers=workers, progress=partial(indexing, 0)
    )
    other = index_with(descriptor, chosen, same, work, workers=workers, progress=partial(indexing, count))
    compared, others = base, [base, other]
    if not is_usual:
        tell_rival = partial(indexing, 2 * count)
        compared = index_with(options.rival, chosen, same, work, workers=workers, progress=tell_rival)
        others.append(compared)
    progress("judge-photos", times * count, times * count)

    with Collection.open(base) as collection:
        candidates = _candidates(collection, list(dict.fromkeys(others)), workers, progress)
        known = work / _MATCHED.format(base.stem)
        links = link_strictly(collection, candidates, options.links, known=known, workers=workers, progress=progress)
        photos = collection.catalogue.read(all_indexed)
    links = links.without(_rejected(source, photos))
    scenes = find_scenes(links, photos, options.queries)
    training = {_as_indexed(path) for path in learnt_from}
    in_source = {_as_indexed(row.path): row.number for row in chosen}
    numbers = {row.number: in_source[row.path] for row in photos if row.path in in_source}
    return _compare(rival.name, scenes, photos, training, [other, compared], numbers, options, progress)


def choose_photos(rows: Sequence[ImageRow], needed: Several[str], options: JudgeOptions) -> list[ImageRow]:
    """Choose the photos of the database: the needed paths, and others drawn at random.

    Without one of the training photos, its scene might be taken for a held-out scene.
    """
    wanted = [row.path in needed for row in rows]
    others = np.flatnonzero(~np.array(wanted, bool))
    if options.photos and len(rows) > options.photos:
        others = np.random.default_rng(options.seed).permutation(others)[: max(0, options.photos - sum(wanted))]
    drawn = set(others.tolist())
    return [row for place, row in enumerate(rows) if wanted[place] or place in drawn]


def _as_indexed(path: str) -> str:
    """The path of a photo as a collection stores it: with the folder resolved."""
    return str(Path(path).parent.resolve() / Path(path).name)


def _rejected(source: Collection, photos: Sequence[ImageRow]) -> set[Pair]:
    """Pairs of photos marked as no match in their source collection, by their numbers here."""
    pairs = source.catalogue.read(rejected_pairs)
    if not pairs:
        return set()
    paths = source.catalogue.read(paths_of, sorted({number for pair in pairs for number in pair}))
    here = {row.path: row.number for row in photos}
    named = {number: here.get(_as_indexed(path)) for number, path in paths.items()}
    numbers = ((named.get(one), named.get(other)) for one, other in pairs)
    return {(min(one, other), max(one, other)) for one, other in numbers if one is not None and other is not None}


def _candidates(collection: Collection, folders: Sequence[Path], workers: int, tell: Progress) -> dict[Pair, int]:
    """Pairs of photos that a search in one of several collections verifies, and their inliers."""
    numbers = {row.path: row.number for row in collection.catalogue.read(all_indexed)}
    pairs: dict[Pair, int] = {}
    for place, folder in enumerate(folders):

        def linking(_: str, done: int, of: int, place: int = place) -> None:
            tell("judge-links", place * of + done, len(folders) * of)

        with Collection.open(folder) as searched:
            links = link_photos(searched, keep=True, workers=workers, progress=linking)
            own = {row.number: numbers.get(row.path) for row in searched.catalogue.read(all_indexed)}
        for link in links.values():
            one, other = own[link.query], own[link.found]
            if one is not None and other is not None:
                pair = min(one, other), max(one, other)
                pairs[pair] = max(link.inliers, pairs.get(pair, 0))
    return pairs


def _compare(
    name: str,
    scenes: Scenes,
    photos: Sequence[ImageRow],
    learnt_from: Several[str],
    folders: Sequence[Path],
    numbers: Mapping[int, int],
    options: JudgeOptions,
    tell: Progress,
) -> RetrievalVerdict:
    """Search for the boxes of held-out scenes in the collections of both descriptors."""
    paths = {row.number: row.path for row in photos}
    queries = scenes.held_out([number for number, path in paths.items() if path in learnt_from])

    def searching(before: int, step: str, done: int, of: int) -> None:
        tell(step, before + done, len(folders) * of)

    hits: list[list[frozenset[int]]] = [[] for _ in folders]
    precisions = [
        search_boxes(
            folder,
            queries,
            paths,
            turns=options.turns,
            shown=hits[place],
            progress=partial(searching, place * len(queries)),
        )
        for place, folder in enumerate(folders)
    ]
    learnt, compared = hits
    gained = gains(queries, learnt, compared, numbers)
    return RetrievalVerdict.of(name, len(photos), len(scenes.members), queries, *precisions, gained=gained)
