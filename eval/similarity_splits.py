"""Random splits of a collection's photos for learning and measuring a similarity (Yan13 section V)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.similarity_options import SimilaritySplitOptions
from index.errors import CairnError
from learning.labels.files import read_labels
from learning.labels.ground_truth import GroundTruthQuery
from learning.labels.labels import Labels, ObjectLabels, split
from retrieval.catalogue.schema import ImageRow
from retrieval.groups.links import components
from retrieval.metadata.pages import stem_of


@dataclass(frozen=True)
class Lesson:
    """Training data of one part of a split, and its test queries."""

    labels: Labels
    numbers: NDArray[np.int64]  # image numbers of the training photos
    queries: list[GroundTruthQuery]

    def seen(self, stems: Mapping[int, str]) -> frozenset[str]:
        """Labelled training photos, by their names in the ground truth."""
        known = set(self.numbers.tolist()) - self.labels.asked
        return frozenset(stems[number] for one in self.labels.objects for number in one.positives & known)


def lessons(
    ground_truth: Path,
    queries: Sequence[GroundTruthQuery],
    rows: Sequence[ImageRow],
    options: SimilaritySplitOptions,
    seed: int,
) -> Iterator[Lesson]:
    """Split a collection: one lesson by photos, with all queries; by objects one for each part, with each query in one.
    `queries`: the queries with positives, whose photos are in the collection.
    """
    rng = np.random.default_rng(seed)
    numbers = np.array([row.number for row in rows], np.int64)
    if options.by == "photos":
        labels = read_labels(ground_truth, rows, skip_missing=True)
        yield Lesson(labels, split(labels, numbers, rng, share=options.share)[0], list(queries))
        return
    by_stem = {stem_of(row.path): row.number for row in rows}
    groups = group_queries(queries)
    if len(groups) < options.parts:
        raise CairnError(f"There are {len(groups)} objects to be found, too few for {options.parts} parts.")
    part = rng.permutation(len(groups)) % options.parts
    for place in range(options.parts):
        tested = [query for group, at in zip(groups, part.tolist(), strict=True) if at == place for query in group]
        learnt = [query for group, at in zip(groups, part.tolist(), strict=True) if at != place for query in group]
        # Their objects are fully excluded: neither positives nor negatives of learning.
        out = {stem for query in tested for stem in (query.stem, *query.positives, *query.junk)}
        out -= {stem for query in learnt for stem in (query.stem, *query.positives)}
        objects = [_object(group, by_stem) for group in group_queries(_telling(learnt))]
        left = [by_stem[stem] for stem in out if stem in by_stem]
        asking = frozenset(by_stem[query.stem] for query in tested if query.stem in by_stem)
        yield Lesson(Labels(tuple(objects), asking), np.setdiff1d(numbers, left), tested)


def group_queries(queries: Sequence[GroundTruthQuery]) -> list[list[GroundTruthQuery]]:
    """Group queries with common positives, directly or through others; by their names."""
    finding: dict[str, list[int]] = defaultdict(list)
    for number, query in enumerate(queries):
        for stem in query.positives:
            finding[stem].append(number)
    pairs = ((numbers[0], number) for numbers in finding.values() for number in numbers)
    return [[queries[number] for number in sorted(group)] for group in components(pairs, range(len(queries)))]


def _telling(queries: Sequence[GroundTruthQuery]) -> list[GroundTruthQuery]:
    """Leave out queries with two photos that are the only positives of others: their own object is unclear."""
    alone = frozenset[str]().union(*(query.positives for query in queries if len(query.positives) == 1))
    return [query for query in queries if len(query.positives & alone) < 2]


def _object(group: Sequence[GroundTruthQuery], numbers: Mapping[str, int]) -> ObjectLabels:
    """The query photos and positives of a group of queries."""
    stems = {stem for query in group for stem in (query.stem, *query.positives)}
    junk = {stem for query in group for stem in query.junk} - stems
    return ObjectLabels(
        group[0].name,
        frozenset(numbers[stem] for stem in stems if stem in numbers),
        frozenset(numbers[stem] for stem in junk if stem in numbers),
    )
