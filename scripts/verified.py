#!/usr/bin/env python3
"""Measure the precision of "verified" over all pairs of photos of sets with known scenes.

Each photo is a query in its set with its indexed features, upright, as in cairn group; a pair is verified if one of its
photos finds the other. Prints precision and recall by number of inliers, purity and completeness of groups, and the
number of photos that find themselves first and verified. With --fit it prints the weights of the evidence by logistic
regression, and their results on held-out scenes. Results in the work folder are reused.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from eval.scenes_shown import RelatedPhotos, find_photo_sets
from eval.tables.retrieval import markdown
from index.errors import CairnError
from index.hamming.kinds import DEFAULT
from index.inverted import rank
from index.parallel import run
from learning.measures.logistic import fit_logistic, held_out
from retrieval.catalogue.photos import names_in_order, rows_of
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.commands.options import cores
from retrieval.features.encoding import decode_geometry
from retrieval.groups.groups import group_photos
from retrieval.groups.links import link_photos
from retrieval.indexing.adding import index_photos
from retrieval.matching.evidence import EvidenceOptions, digits
from retrieval.matching.verification import VerificationOptions, crowding, narrow_alarms, verify
from retrieval.search.engines.tf_idf import TfIdf
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from retrieval.search.views import indexed_view

BINS = (4, 7, 10, 15, 20, 30, 50, 100)
FOLDS = 5
# Accept every consistent match for weighting: the odds are the digits of the false alarms at the threshold.
DIGITS = EvidenceOptions(wide=1.0, narrow=0.0, rarity=0.0, constant=0.0, sure=-np.inf, strips=())
LENIENT = VerificationOptions(false_alarms=0.1, evidence=DIGITS)


def tell(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


def make_collection(photos: RelatedPhotos, work: Path, workers: int) -> Path:
    """Index a set, unless already done."""
    folder = work / f"{photos.name}.cairn"
    with Collection.create(folder, CollectionOptions(signature=DEFAULT)) as collection:
        index_photos(collection, list(photos.folders), workers=workers)
    return folder


def stems_of(collection: Collection) -> dict[int, str]:
    """Stems of the photos by their numbers."""
    return {
        row.number: Path(row.path).stem
        for row in collection.catalogue.read(rows_of, collection.index.image_numbers.tolist())
    }


def measure(photos: RelatedPhotos, folder: Path, workers: int) -> dict[str, Any]:
    """Measure one set."""
    with Collection.open(folder) as collection:
        stems = stems_of(collection)
        links = link_photos(collection, keep=True, workers=workers)  # also used for groups
        groups = group_photos(collection, workers=workers)
        own = count_own(collection)
    labelled = [(link.inliers, photos.same(*(stems[number] for number in pair))) for pair, link in links.items()]
    positives = count_same(photos, stems)
    sizes = []
    for least, beyond in zip(BINS, (*BINS[1:], None), strict=True):
        within = [same for inliers, same in labelled if inliers >= least and (beyond is None or inliers < beyond)]
        sizes.append({"inliers": least, "right": within.count(True), "wrong": within.count(False)})
    right, wrong = sum(one["right"] for one in sizes), sum(one["wrong"] for one in sizes)
    return {
        "set": photos.name,
        "photos": len(stems),
        "pairs": positives,
        "right": right,
        "wrong": wrong,
        "precision": right / max(right + wrong, 1),
        "recall": right / max(positives, 1),
        "by_inliers": sizes,
        "groups": judge_groups(photos, stems, [group.photos for group in groups.groups]),
        "own": own,
    }


def count_same(photos: RelatedPhotos, stems: dict[int, str]) -> int:
    """Count the pairs of photos that show the same object."""
    return sum(photos.same(one, other) is True for one, other in combinations(stems.values(), 2))


def judge_groups(photos: RelatedPhotos, stems: dict[int, str], groups: list[tuple[int, ...]]) -> dict[str, Any]:
    """Return the number of groups with photos of a single scene, and the share of pairs of a scene in one group."""
    pure = together = wrong = 0
    for members in groups:
        pairs = [photos.same(stems[a], stems[b]) for place, a in enumerate(members) for b in members[place + 1 :]]
        pure += False not in pairs
        together += pairs.count(True)
        wrong += pairs.count(False)
    positives = count_same(photos, stems)
    return {
        "groups": len(groups),
        "pure": pure,
        "purity": pure / max(len(groups), 1),
        "pair_precision": together / max(together + wrong, 1),
        "completeness": together / max(positives, 1),
    }


def count_own(collection: Collection) -> dict[str, Any]:
    """Count the photos with features that find themselves first, and verified, by their stored features."""
    searcher = Searcher(collection, SearchOptions(turns=1, verification=VerificationOptions(depth=3)))
    matched = queries = 0
    failed = []
    for number in collection.index.image_numbers.tolist():
        signatures = collection.index.images.signatures(number) if searcher.options.signed else None
        view = indexed_view(collection.index.images.features(number), signatures)
        if not len(view.words):
            continue
        queries += 1
        hit = searcher.search([view]).hits[0]
        if hit.number == number and hit.verification.inliers:
            matched += 1
        else:
            failed.append(number)
    return {"asked": queries, "found": matched, "failed": collection.catalogue.read(names_in_order, failed)}


@lru_cache(maxsize=1)
def _opened(folder: Path) -> TfIdf:
    with Collection.open(folder) as collection:
        return TfIdf(collection, SearchOptions(turns=1))


def weighed_pairs(folder: Path, number: int) -> Iterator[tuple[int, int, float, float, float]]:
    """The photos with a map from a photo: both numbers, and the evidence."""
    engine = _opened(folder)
    index, options = engine.index, LENIENT
    view = indexed_view(index.images.features(number))
    ranked = rank(index.score(view.terms, view.weights), options.depth)
    for other, score in zip(ranked.image_numbers.tolist(), ranked.scores.tolist(), strict=True):
        image = index.images.features(other)
        if other == number or score <= 0:
            continue
        pairs = view.lookup.match(image.words, options.max_matches)
        if len(pairs) < options.min_inliers:
            continue
        query, photo = view.frames.at(pairs[:, 0]), decode_geometry(image.columns, pairs[:, 1])
        verification = verify(query, photo, pairs, options)
        if verification.transform is None:
            continue
        row_of = {(one, two): row for row, (one, two) in enumerate(pairs.tolist())}
        chosen = np.array([row_of[one, two] for one, two in verification.matches.tolist()])
        rarity = engine.rarity(view, image.words)
        rates = crowding(query, photo, np.ascontiguousarray(pairs, np.int32), verification.transform, options)
        features = min(len(np.unique(side)) for side in pairs.T)
        agreed = query.at(chosen), photo.at(chosen), verification.transform
        narrow = narrow_alarms(*agreed, features, len(pairs) * rates.narrow, options)
        yield number, other, verification.log_odds, digits(narrow, DIGITS.most), rarity


def gather(folder: Path, number: int) -> list[tuple[int, int, float, float, float]]:
    """List the results of `weighed_pairs`."""
    return list(weighed_pairs(folder, number))


def fit(sets: list[RelatedPhotos], folders: list[Path], workers: int, every: int) -> dict[str, Any]:
    """Fit the weights of the evidence, by every n-th photo as a query, and judge them on scenes left out."""
    rows, labels, folds = [], [], []
    for photos, folder in zip(sets, folders, strict=True):
        with Collection.open(folder) as collection:
            stems = stems_of(collection)
        tell(f"{photos.name}: weighing pairs")
        tasks = (partial(gather, folder, number) for number in sorted(stems)[::every])
        for pairs_found in run(tasks, workers, batch=4):
            for one, other, wide, narrow, rarity in pairs_found:
                same = photos.same(stems[one], stems[other])
                if same is not None:
                    rows.append([wide, narrow, DIGITS.bounded(rarity), 1.0])
                    labels.append(1.0 if same else -1.0)
                    scene = min(photos.shown(stems[one])[0])
                    folds.append(crc32(scene.encode()) % FOLDS)
    table, signs, parts = np.array(rows), np.array(labels), np.array(folds)
    left_out = held_out(table, signs, parts)
    report = []
    for sure in np.arange(0, 2.01, 0.25).tolist():
        passed = left_out > sure
        right, wrong = int((passed & (signs > 0)).sum()), int((passed & (signs < 0)).sum())
        report.append({"sure": sure, "right": right, "wrong": wrong, "precision": right / max(right + wrong, 1)})
    names = ("wide", "narrow", "rarity", "constant")
    return {"weights": dict(zip(names, fit_logistic(table, signs).tolist(), strict=True)), "left_out": report}


def show(results: list[dict[str, Any]]) -> None:
    """Print the tables."""
    beyond = [f" to {after - 1}" for after in BINS[1:]] + [" and more"]
    head = ["right, wrong", *(f"{least}{end}" for least, end in zip(BINS, beyond, strict=True))]
    rows = []
    for one in results:
        sizes = [f"{size['right']}, {size['wrong']}" for size in one["by_inliers"]]
        rows.append(
            [one["set"], *sizes, f"{one['right']}, {one['wrong']}", percent(one["precision"]), percent(one["recall"])]
        )
    print(markdown([*head, "all", "precision, %", "recall, %"], rows))
    rows = []
    for one in results:
        groups, own = one["groups"], one["own"]
        shares = [percent(groups[name]) for name in ("purity", "completeness")]
        rows.append(
            [one["set"], str(groups["groups"]), str(groups["pure"]), *shares, f"{own['found']} of {own['asked']}"]
        )
    print(
        "\n"
        + markdown(["groups of", "groups", "of one scene", "purity, %", "completeness, %", "find themselves"], rows)
    )


def percent(part: float) -> str:
    """Write a part as a percentage."""
    return f"{100 * part:.1f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", action="append", help="landmarks, paintings or unlabelled; may be repeated [all]")
    parser.add_argument("--work", type=Path, default=Path("cairn-verified"), help="folder of all that is kept")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    parser.add_argument("--fit", action="store_true", help="fit the weights of the evidence")
    parser.add_argument("--every", type=int, default=1, help="with --fit, ask with every so many photos alone [1]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    root = os.environ.get("CAIRN_DATASETS")
    if not root:
        raise CairnError("Set CAIRN_DATASETS to the folder of photos.")
    workers = arguments.workers or cores()
    sets = find_photo_sets(Path(root), arguments.set or ["landmarks", "paintings", "unlabelled"])
    arguments.work.mkdir(parents=True, exist_ok=True)
    folders = []
    for photos in sets:
        tell(f"{photos.name}: indexing what is not indexed yet")
        folders.append(make_collection(photos, arguments.work, workers))
    if arguments.fit:
        print(json.dumps(fit(sets, folders, workers, arguments.every), indent=2))
        return
    results = []
    for photos, folder in zip(sets, folders, strict=True):
        tell(f"{photos.name}: measuring")
        results.append(measure(photos, folder, workers))
    print(json.dumps(results, indent=2)) if arguments.json else show(results)


if __name__ == "__main__":
    try:
        main()
    except CairnError as error:
        sys.exit(f"verified.py: {error}")
