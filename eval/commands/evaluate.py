"""Commands: evaluate matching, and demo; the others of evaluate are mounted here."""

from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.hpatches import hpatches
from eval.commands.patch_studies import bits, blocks, footprint
from eval.commands.patches import patches
from eval.commands.ranking import ranking, recognition
from eval.commands.retrieval import add_retrieval_commands
from eval.commands.similarity import similarity
from index.options.declaration import build
from retrieval.collection.options import CollectionOptions
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet, Workers, cores
from retrieval.library.progress import INDEXING

evaluate = typer.Typer(help="Measure on photos with a ground truth.", no_args_is_help=True)

_MATCHED = ("descriptor", "detector", "measurement_scale", "upright", "max_side")

add_retrieval_commands(evaluate)


@evaluate.command()
@grouped
def matching(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders with img1, img2, … and H1to2p, …, or with 1/, 2/ and h/.")
    ],
    how: Annotated[dict[str, Any], OptionsOf(CollectionOptions, only=_MATCHED)],
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
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Match photos whose homographies are known; print the recall and the average precision of nearest neighbours."""
    from eval.matching import MatchingOptions, evaluate_matching, find_pairs
    from retrieval.descriptors.registry import find_descriptor

    options, collection_options = MatchingOptions(*overlap, ratio=ratio), build(CollectionOptions, how)
    described = find_descriptor(collection_options.descriptor)
    pairs = [pair for folder in folders for pair in find_pairs(folder)]
    with progress_bars(quiet or json, {"pairs": "Pairs"}) as tell:
        report = evaluate_matching(
            pairs,
            [described],
            features=collection_options.features,
            image=collection_options.image,
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
    pairs_counted = sum(score.recall is not None for score in report.scores)
    say(
        f"recall {report.recall:.4f}, mAP {report.mean_ap:.4f} over {pairs_counted} pairs; {report.descriptor}; "
        f"{report.seconds['total']:.1f} s"
    )


evaluate.command()(patches)
evaluate.command()(similarity)
evaluate.command()(hpatches)
evaluate.command()(ranking)
evaluate.command()(recognition)
evaluate.command()(bits)
evaluate.command()(blocks)
evaluate.command()(footprint)


def demo(
    photos: Annotated[
        Path | None, typer.Option(help="Your own folder of photos, instead of simulated views of sample photographs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the collection and the picture.")] = Path("cairn-demo"),
    workers: Workers = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """See what Cairn does: index some photos, search for a box, write a picture of the results, and print the score."""
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
    say(f"Searched for a box in {result['query']}: {_outcome(result['found'])} drawn in {result['picture']}")


def _outcome(found: int) -> str:
    """How many photos were found, and which of them a picture shows."""
    from retrieval.search.picture import PictureOptions  # it imports OpenCV

    if not found:
        return "no other photo surely shows it; the box is"
    shown = f"the best {PictureOptions.pairs} of them are" if found > PictureOptions.pairs else "the matches are"
    return f"{found} other photo{' surely shows' if found == 1 else 's surely show'} it; {shown}"
