"""Rankings of a benchmark that was run here: as a file that scores the same, and as what a page shows."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from eval.rankings.files import Rankings
from eval.rankings.ground_truth import GroundTruth
from eval.rankings.names import known_as, plain_name
from eval.rankings.scoring import RankingReport, score_named

Ranked = Mapping[str, Mapping[str, Sequence[str]]]
"""Photos by protocol and query, the best first: by the names of the ground truth, and all others by their paths."""


def rankings_to_save(ranked: Ranked, truth: GroundTruth) -> Rankings:
    """Return rankings as a file keeps them, so that they score the same when they are read back.

    Photos that the ground truth does not name go by the names of their files where those are clear, and by their paths
    else. One that is called like a photo of the ground truth without being it is marked as a distractor.
    """
    named = truth.named
    every = {photo for queries in ranked.values() for photos in queries.values() for photo in photos}
    names = _file_names(every - named, named)
    saved = {
        protocol: {query: [names.get(photo, photo) for photo in photos] for query, photos in queries.items()}
        for protocol, queries in ranked.items()
    }
    distractors = {name for photo in every - named if known_as(name := names.get(photo, photo), named) in named}
    # Where no query has two rankings, that of one protocol is that of all.
    for_all: dict[str, list[str]] = {}
    for queries in saved.values():
        for query, photos in queries.items():
            if for_all.setdefault(query, photos) != photos:
                return Rankings({}, "", protocols=saved, distractors=distractors)
    return Rankings(for_all, "", distractors=distractors)


def report_of(ranked: Ranked, truth: GroundTruth) -> RankingReport:
    """Return the scores of the queries that were asked."""
    asked = {
        name: [query for query in queries if query.name in ranked[name]]
        for name, queries in truth.protocols.items()
        if name in ranked
    }
    return RankingReport(
        score_named(ranked, GroundTruth(asked, truth.cutoffs, truth.database, truth.depth)), [], "", [], truth.cutoffs
    )


def _file_names(photos: Set[str], named: Set[str]) -> dict[str, str]:
    """The names of the files of paths, if no other has it but for its ending, and none in a ground truth."""
    plain = Counter(map(plain_name, photos))
    return {
        photo: Path(photo).name for photo in photos if plain[plain_name(photo)] == 1 and plain_name(photo) not in named
    }
