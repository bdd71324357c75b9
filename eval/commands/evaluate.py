"""Commands: evaluate retrieval, matching, patches, similarity, oxford5k, paris6k; demo."""

import inspect
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.patches import patches
from eval.commands.ranking import ranking
from eval.commands.similarity import similarity
from index.hamming.kinds import DEFAULT as DEFAULT_SIGNATURE
from index.hamming.kinds import full_name, parse_signature
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import (
    Augmented,
    Descriptor,
    Detector,
    EngineName,
    EveryTurn,
    Expand,
    Json,
    MaxFeatures,
    MaxSide,
    MeasurementScale,
    Quiet,
    Search,
    Seed,
    Signature,
    Similarity,
    Soft,
    TermFrequency,
    Turns,
    Upright,
    Words,
    Workers,
    cores,
)
from retrieval.commands.panels import MEASURED, RUNNING, VOCABULARY
from retrieval.commands.progress import INDEXING
from retrieval.search.engines.registry import DEFAULT

evaluate = typer.Typer(help="Measure on photos with a ground truth.", no_args_is_help=True)

VocabularyFrom = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=VOCABULARY, help="Take the vocabulary of this collection instead of making one from the photos."
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option("--collection", rich_help_panel=RUNNING, help="Keep the collection here, to be used again."),
]


@evaluate.command()
def retrieval(
    images: Annotated[Path, typer.Option(rich_help_panel=MEASURED, help="Folder of the photos.")],
    gt: Annotated[
        Path, typer.Option(rich_help_panel=MEASURED, help="Folder of the ground truth, in the layout of Oxford5K.")
    ],
    queries: Annotated[
        Path | None,
        typer.Option(rich_help_panel=MEASURED, help="Folder of query photos that are not among the images."),
    ] = None,
    descriptor: Descriptor = "rootsift",
    words: Words = 0,
    vocabulary: VocabularyFrom = None,
    engine: EngineName = DEFAULT,
    expand: Expand = "none",
    turns: Turns = 8,
    every_turn: EveryTurn = False,
    augmented: Augmented = True,
    soft: Soft = 1,
    tf: TermFrequency = "linear",
    similarity: Similarity = None,
    seed: Seed = 0,
    detector: Detector = "dog-affine",
    measurement_scale: MeasurementScale = None,
    upright: Upright = True,
    max_side: MaxSide = 1024,
    max_features: MaxFeatures = 0,
    search: Search = "faiss",
    signature: Signature = DEFAULT_SIGNATURE,
    workers: Workers = 0,
    collection: Keep = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Index photos, run the queries of a ground truth, and print the mean average precision."""
    from eval.benchmark import run_benchmark
    from index.inverted import ScoringOptions
    from retrieval.collection.options import CollectionOptions
    from retrieval.features.options import FeatureOptions
    from retrieval.photos.options import ImageOptions
    from retrieval.regions.options import RegionOptions
    from retrieval.search.engines.contract import prepare
    from retrieval.search.options import SearchOptions

    asked = SearchOptions(
        engine=engine,
        expand=expand,
        turns=turns,
        every_turn=every_turn,
        augmented=augmented,
        soft=soft,
        scoring=ScoringOptions(tf),
        similarity=similarity,
    )
    plain = CollectionOptions(
        descriptor=descriptor,
        words=words,
        search=search,
        seed=seed,
        signature=full_name(parse_signature(signature)),
        image=ImageOptions(max_side=max_side),
        features=FeatureOptions(
            RegionOptions(detector=detector, max_features=max_features), measurement_scale, upright
        ),
    )
    titles = {**INDEXING, "queries": "Queries"}
    with progress_bars(quiet or json, titles) as tell:
        report = run_benchmark(
            [images],
            gt,
            queries=queries,
            options=prepare(engine, plain),
            search=asked,
            vocabulary=vocabulary,
            collection=collection,
            workers=workers or cores(),
            progress=tell,
        )
    if json:
        print_json(report.as_json())
        return
    for score in report.scores:
        say(f"{score.ap:.4f}  {score.name}")
    learnt = f"similarity {similarity}, " if similarity is not None else ""
    say(
        f"mAP {report.mean:.4f} over {len(report.scores)} queries; {report.descriptor}, {report.engine}, {learnt}"
        f"expansion {report.expand}; {report.words} words from {report.trained_on}; {report.seconds['total']:.0f} s"
    )
    if report.missing:
        say(f"{len(report.missing)} photos of the ground truth are not among the images.")
    for entry in report.failed:
        say(f"failed: {entry['path']}: {entry['reason']}")


@evaluate.command()
def matching(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders with img1, img2, … and H1to2p, …, or with 1/, 2/ and h/.")
    ],
    descriptor: Descriptor = "rootsift",
    overlap: Annotated[
        tuple[float, float],
        typer.Option(
            metavar="ABOVE BELOW",
            help="Overlap of measurement regions above which a match is positive, below which negative.",
        ),
    ] = (0.6, 0.3),
    ratio: Annotated[
        bool, typer.Option("--ratio", help="Rank matches by the ratio of nearest to second nearest, not by distance.")
    ] = False,
    detector: Detector = "dog-affine",
    measurement_scale: MeasurementScale = None,
    upright: Upright = True,
    max_side: MaxSide = 1024,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Match photos whose homographies are known; print the recall and the average precision of nearest neighbours."""
    from eval.matching import MatchingOptions, evaluate_matching, find_pairs
    from retrieval.descriptors.registry import find_descriptor
    from retrieval.features.options import FeatureOptions
    from retrieval.photos.options import ImageOptions
    from retrieval.regions.options import RegionOptions

    options = MatchingOptions(*overlap, ratio=ratio)
    described = find_descriptor(descriptor)
    pairs = [pair for folder in folders for pair in find_pairs(folder)]
    with progress_bars(quiet or json, {"pairs": "Pairs"}) as tell:
        report = evaluate_matching(
            pairs,
            [described],
            features=FeatureOptions(RegionOptions(detector=detector), measurement_scale, upright),
            image=ImageOptions(max_side=max_side),
            options=options,
            progress=tell,
        )[0]
    if json:
        print_json(report.as_json())
        return
    for score in report.scores:
        if score.recall is None or score.ap is None:
            say(f"    -       -        0 features  {score.pair}")
        else:
            say(f"{score.recall:.4f}  {score.ap:.4f}  {score.features:6d} features  {score.pair}")
    if report.recall is None or report.mean_ap is None:
        say(f"{report.descriptor}: no pair has a feature that the other photo's regions overlap.")
        return
    counted = sum(score.recall is not None for score in report.scores)
    say(
        f"recall {report.recall:.4f}, mAP {report.mean_ap:.4f} over {counted} pairs; {report.descriptor}; "
        f"{report.seconds['total']:.1f} s"
    )


def _dataset_command(name: str, title: str) -> None:
    """Add a command like `retrieval`, for the folder that a published set unpacks to."""

    def command(root: Path, **options: Any) -> None:
        from eval.sets.layouts import published_layout

        images, gt = published_layout(name, root)
        retrieval(images=images, gt=gt, queries=None, **options)

    # The command line is read off the signature: that of `retrieval`, with --root for its three folders.
    Root = Annotated[
        Path, typer.Option(rich_help_panel=MEASURED, help="Folder with images/ (or the photos themselves) and gt/.")
    ]
    taken = [
        one for one in inspect.signature(retrieval).parameters.values() if one.name not in ("images", "gt", "queries")
    ]
    parameters = [Parameter("root", Parameter.KEYWORD_ONLY, annotation=Root)]
    parameters += [one.replace(kind=Parameter.KEYWORD_ONLY) for one in taken]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    evaluate.command(name=name, help=f"Measure on {title}: its photos and ground truth under --root.")(command)


_dataset_command("oxford5k", "Oxford5K (5,062 photos, 55 queries)")
_dataset_command("paris6k", "Paris6K (6,392 readable photos, 55 queries)")


evaluate.command()(patches)
evaluate.command()(similarity)
evaluate.command()(ranking)


def demo(
    photos: Annotated[
        Path | None, typer.Option(help="Your own folder of photos, instead of simulated views of sample photographs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the collection and the picture.")] = Path("cairn-demo"),
    workers: Workers = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Show what Cairn does: index a collection, search for a box, write the picture, and print the score."""
    from eval.demo.run import run_demo, run_own_demo

    titles = {**INDEXING, "queries": "Queries"}
    with progress_bars(quiet or json, titles) as tell:
        if photos is not None:
            result = run_own_demo(photos, out, workers or cores(), tell)
        else:
            result = run_demo(out, workers or cores(), tell)
    if json:
        print_json(result)
        return
    say(f"{result['images']} photos, {result['features']} features, {result['words']} words: {result['collection']}")
    for engine, value in result.get("mAP", {}).items():
        say(f"mAP {value:.4f}  {engine}")
    say(f"Searched for {result['query']}; the matches are drawn in {result['picture']}")
