"""Rankings of a benchmark run here: as a file with the same scores, and as data of a page."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from eval.rankings.files import Rankings
from eval.rankings.ground_truth import GroundTruth
from eval.rankings.names import known_as, plain_name
from eval.rankings.scoring import RankingReport, score_named

Ranked = Mapping[str, Mapping[str, Sequence[str]]]
"""Photos by protocol and query, best first: by names in the ground truth, and all others by path."""


def rankings_to_save(ranked: Ranked, truth: GroundTruth) -> Rankings:
    """Return rankings for a file, so that they score the same when read back.

    Photos outside the ground truth are written by file name if it is unique, else by path. A photo with the name of
    another one in the ground truth is marked as a distractor.
    """
    named = truth.named
    every = {photo for queries in ranked.values() for photos in queries.values() for photo in photos}
    names = _file_names(every - named, named)
    saved = {
        protocol: {query: [names.get(photo, photo) for photo in photos] for query, photos in queries.items()}
        for protocol, queries in ranked.items()
    }
    distractors = {name for photo in every - named if known_as(name := names.get(photo, photo), named) in named}
    # If no query has two rankings, one protocol's rankings are those of all.
    for_all: dict[str, list[str]] = {}
    for queries in saved.values():
        for query, photos in queries.items():
            if for_all.setdefault(query, photos) != photos:
                return Rankings({}, "", protocols=saved, distractors=distractors)
    return Rankings(for_all, "", distractors=distractors)


def report_of(ranked: Ranked, truth: GroundTruth) -> RankingReport:
    """Return the scores of the queries."""
    by_protocol = {
        name: [query for query in queries if query.name in ranked[name]]
        for name, queries in truth.protocols.items()
        if name in ranked
    }
    return RankingReport(
        score_named(ranked, GroundTruth(by_protocol, truth.cutoffs, truth.database, truth.depth)),
        [],
        "",
        [],
        truth.cutoffs,
    )


def _file_names(photos: Set[str], named: Set[str]) -> dict[str, str]:
    """Names of the files of paths, if no other file has the same stem and the ground truth does not have it."""
    plain = Counter(map(plain_name, photos))
    return {
        photo: Path(photo).name for photo in photos if plain[plain_name(photo)] == 1 and plain_name(photo) not in named
    }
