"""A retrieval benchmark from its options to its output files, for `cairn evaluate retrieval`."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.options.declaration import chosen
from index.parallel import processes
from index.progress import Progress
from retrieval.library.progress import INDEXING

if TYPE_CHECKING:
    from eval.benchmark import BenchmarkReport
    from eval.rankings.outputs import Outputs
    from retrieval.collection.options import CollectionOptions

TITLES = {**INDEXING, "queries": "Queries", "page": "Page"}
"""Titles of the steps."""

NOT_MEASURED = ("keep_descriptors", "vocabulary_folder")
"""Options of a collection set by the benchmark."""


def measure(
    images: Sequence[Path],
    gt: Path,
    queries: Path | None,
    values: Mapping[str, Any],
    explicit: Set[str],
    progress: Progress,
    *,
    name: str,
    cameras: tuple[str, str] | None = None,
) -> "BenchmarkReport":
    """Index photos, run the queries of a ground truth, and write the requested outputs. `values`: all options of
    `evaluate_retrieval`; `explicit`: explicit options, which ``as_published`` must not change.
    """
    from eval.benchmark import run_benchmark
    from eval.rankings.outputs import Outputs
    from eval.retrieval.options import BenchmarkSetup
    from eval.retrieval.published import set_as_published
    from retrieval.search.options import SearchOptions

    outputs = chosen(Outputs, values)
    published = values["as_published"]
    if published is not None:
        # A smoke test has too few photos for the published number of words.
        values = set_as_published(published, values, explicit, {"words"} if values["share"] < 1 else frozenset())
        _check_made(published, values)
    if values["vocabulary"] is not None and "vocabulary_photos" in explicit:
        raise CairnError("{--vocabulary} takes words that are made: leave {--vocabulary-photos} out.")
    if values["features"] is not None and (values["vocabulary_images"] or published is not None):
        raise CairnError(
            "With {--features} photos are described by another program: leave {--vocabulary-images} and "
            "{--as-published} out, or name a {--vocabulary} of such features."
        )
    setup = chosen(BenchmarkSetup, values, BenchmarkSetup(name=name, cameras=cameras))
    report = run_benchmark(
        images,
        gt,
        queries=queries,
        options=_collection_options(values),
        search=chosen(SearchOptions, values),
        setup=setup,
        workers=processes(values["workers"]),
        progress=progress,
    )
    report = replace(report, published=published)
    others = [*([queries] if queries is not None else []), *setup.distractors]
    _write(outputs, report, [*images, *others], name, progress)
    return report


def _write(outputs: "Outputs", report: "BenchmarkReport", folders: Sequence[Path], name: str, tell: Progress) -> None:
    from eval.rankings.ground_truth import of_truth

    ranked = {
        protocol: {score.name: score.ranking for score in scores} for protocol, scores in report.protocols.items()
    }
    facts = {
        "photos": f"{report.images:,}, {report.distractors:,} of them distractors",
        "descriptor": report.descriptor,
        "engine": f"{report.engine}, expansion {report.expand}",
        "vocabulary": f"{report.words:,} words from {report.trained_on}",
    }
    outputs.write_benchmark(ranked, of_truth(report.truth), folders, title=name, facts=facts, progress=tell)


def _check_made(published: str, values: Mapping[str, Any]) -> None:
    """Refuse a vocabulary or a collection made with other settings than the experiment's."""
    from index.vocabulary import VocabularyFacts
    from retrieval.collection.collection import find_vocabulary
    from retrieval.collection.options import read_options
    from retrieval.photos.listing import COLLECTION_FILE

    vocabulary = values["vocabulary"]
    if vocabulary is not None and values["share"] == 1:
        words = VocabularyFacts.read(find_vocabulary(vocabulary)).words
        if words != values["words"]:
            raise CairnError(
                f"As published in {published}, there are {values['words']} words: {vocabulary} has {words}."
            )
    collection = values["collection"]
    if collection is not None and (collection / COLLECTION_FILE).is_file():
        wanted, there = _collection_options(values), read_options(collection / COLLECTION_FILE)
        if (there.features, there.words) != (wanted.features, wanted.words):
            raise CairnError(
                "{kept} was made with other options than {published} has: name another {--collection}.",
                kept=collection,
                published=published,
            )


def _collection_options(values: Mapping[str, Any]) -> "CollectionOptions":
    from retrieval.collection.options import CollectionOptions
    from retrieval.matching.verifiers import OWN, find_verifier
    from retrieval.search.engines.contract import prepare
    from retrieval.search.options import SearchOptions

    search = chosen(SearchOptions, values)
    options = prepare(search.engine, chosen(CollectionOptions, values))
    if search.verifier != OWN and getattr(find_verifier(search.verifier), "needs_descriptors", False):
        options = replace(options, keep_descriptors=True)
    return options.with_extensions()
