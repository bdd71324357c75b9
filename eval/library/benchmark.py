"""A retrieval benchmark from its options to its output files, for `cairn evaluate retrieval`."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.options.declaration import build, options_of
from index.parallel import processes
from index.progress import Progress
from retrieval.library.progress import INDEXING

if TYPE_CHECKING:
    from eval.benchmark import BenchmarkReport
    from eval.rankings.outputs import Outputs
    from retrieval.collection.options import CollectionOptions
    from retrieval.search.options import SearchOptions

TITLES = {**INDEXING, "queries": "Queries", "page": "Page"}
"""Titles of the steps."""

NOT_MEASURED = ("keep_descriptors", "vocabulary_folder")
"""Options of a collection set by the benchmark."""


def measure(
    images: Sequence[Path],
    gt: Path,
    queries: Path | None,
    chosen: Mapping[str, Any],
    explicit: Set[str],
    progress: Progress,
    *,
    name: str,
    cameras: tuple[str, str] | None = None,
) -> "BenchmarkReport":
    """Index photos, run the queries of a ground truth, and write the requested outputs. `chosen`: all options of
    `evaluate_retrieval`; `explicit`: explicit options, which ``as_published`` must not change.
    """
    from eval.benchmark import BenchmarkSetup, run_benchmark
    from eval.rankings.outputs import Outputs
    from eval.retrieval.kept import RunFiles
    from eval.retrieval.published import set_as_published
    from eval.retrieval.vocabulary import VocabularySource

    outputs = Outputs(chosen["save"], chosen["pr"], chosen["report"])
    published = chosen["as_published"]
    if published is not None:
        # A smoke test has too few photos for the published number of words.
        chosen = set_as_published(published, chosen, explicit, {"words"} if chosen["share"] < 1 else frozenset())
        _check_made(published, chosen)
    if chosen["vocabulary"] is not None and "vocabulary_photos" in explicit:
        raise CairnError("{--vocabulary} takes words that are made: leave {--vocabulary-photos} out.")
    if chosen["features"] is not None and (chosen["vocabulary_images"] or published is not None):
        raise CairnError(
            "With {--features} photos are described by another program: leave {--vocabulary-images} and "
            "{--as-published} out, or name a {--vocabulary} of such features."
        )
    setup = BenchmarkSetup(
        distractors=chosen["distractors"] or (),
        vocabulary=VocabularySource(chosen["vocabulary"], tuple(chosen["vocabulary_images"] or ())),
        work=RunFiles(chosen["work"], name, chosen["discard"]) if chosen["work"] is not None else None,
        cameras=cameras,
        **{one: chosen[one] for one in ("share", "collection", "features", "single_ranking")},
    )
    report = run_benchmark(
        images,
        gt,
        queries=queries,
        options=_collection_options(chosen),
        search=_search_options(chosen),
        setup=setup,
        workers=processes(chosen["workers"]),
        progress=progress,
    )
    others = [*([queries] if queries is not None else []), *(chosen["distractors"] or ())]
    _write(outputs, report, [*images, *others], name, progress)
    return replace(report, published=published)


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


def _check_made(published: str, chosen: Mapping[str, Any]) -> None:
    """Refuse a vocabulary or a collection made with other settings than the experiment's."""
    from index.vocabulary import VocabularyFacts
    from retrieval.collection.collection import find_vocabulary
    from retrieval.collection.options import read_options
    from retrieval.photos.listing import COLLECTION_FILE

    vocabulary = chosen["vocabulary"]
    if vocabulary is not None and chosen["share"] == 1:
        words = VocabularyFacts.read(find_vocabulary(vocabulary)).words
        if words != chosen["words"]:
            raise CairnError(
                f"As published in {published}, there are {chosen['words']} words: {vocabulary} has {words}."
            )
    collection = chosen["collection"]
    if collection is not None and (collection / COLLECTION_FILE).is_file():
        wanted, there = _collection_options(chosen), read_options(collection / COLLECTION_FILE)
        if (there.features, there.words) != (wanted.features, wanted.words):
            raise CairnError(
                "{kept} was made with other options than {published} has: name another {--collection}.",
                kept=collection,
                published=published,
            )


def _search_options(chosen: Mapping[str, Any]) -> "SearchOptions":
    from retrieval.search.options import SearchOptions

    return build(SearchOptions, {name: chosen[name] for name in options_of(SearchOptions)})


def _collection_options(chosen: Mapping[str, Any]) -> "CollectionOptions":
    from retrieval.collection.options import CollectionOptions
    from retrieval.matching.verifiers import OWN, find_verifier
    from retrieval.search.engines.contract import prepare

    own = {name: chosen[name] for name in options_of(CollectionOptions) if name in chosen}
    search = _search_options(chosen)
    options = prepare(search.engine, build(CollectionOptions, own))
    if search.verifier != OWN and getattr(find_verifier(search.verifier), "needs_descriptors", False):
        options = replace(options, keep_descriptors=True)
    return options.with_extensions()
