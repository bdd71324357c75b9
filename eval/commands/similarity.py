"""Command: evaluate similarity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from index.options.declaration import build
from index.options.panels import MEASURED, MODEL, RUNNING
from learning.commands.as_published import LearnAsPublished
from learning.library.similarity_options import SimilarityChoices, similarity_options
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet, Seed, Workers, cores

_TITLES = {
    "alone": "words alone",
    "verified": "verified",
    "expanded": "verified and expanded",
    "unseen": "words alone, photos learnt from out",
}


@grouped
def similarity(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection; the photos asked with are in it.")],
    gt: Annotated[
        Path, typer.Option(rich_help_panel=MEASURED, help="Folder of the ground truth, in the layout of Oxford5K.")
    ],
    choices: Annotated[dict[str, Any], OptionsOf(SimilarityChoices)],
    splits: Annotated[
        int, typer.Option(rich_help_panel=MEASURED, help="Random splits, of which the mean is told.", min=1)
    ] = 10,
    by: Annotated[
        str,
        typer.Option(
            rich_help_panel=MEASURED,
            metavar="photos|objects",
            help="What a split divides: photos, of which --share is learnt from and all are searched, as in the paper; "
            "or objects, so that none of a query's photos is learnt from.",
        ),
    ] = "photos",
    share: Annotated[
        float,
        typer.Option(
            rich_help_panel=MEASURED, help="Share of the photos that is learnt from; those asked with never are."
        ),
    ] = 0.8,
    parts: Annotated[
        int,
        typer.Option(
            rich_help_panel=MEASURED,
            help="Parts that objects are divided into; each is measured by what is learnt from the others.",
            min=2,
        ),
    ] = 5,
    searched: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=MEASURED,
            help="Another collection with the same vocabulary, whose photos are these and more, to be searched by what "
            "is learnt; may be repeated.",
        ),
    ] = None,
    way: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=MEASURED,
            metavar="NAME",
            help="How to search: alone (words), verified, expanded (verified, and expanded by the average), or unseen "
            "(alone, photos that were learnt from taking no rank); may be repeated (default: all).",
        ),
    ] = None,
    neighbours: Annotated[
        list[int] | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Nearest words that a word may mean the same as; may be repeated (default: 2).",
            min=0,
            max=20,
        ),
    ] = None,
    as_published: LearnAsPublished = False,
    work: Annotated[
        Path,
        typer.Option(
            rich_help_panel=RUNNING,
            help="Folder of what is learnt and measured: the same command goes on where a run was stopped.",
        ),
    ] = Path("cairn-similarity"),
    seed: Seed = 0,
    workers: Workers = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn similarities from random splits of a collection, and measure them beside tf-idf (Yan, Yu, 2013).

    The photos that the ground truth asks with are never learnt from; of the others --share is, and all are searched, so
    that photos which were learnt from are found among them: the last line tells of the others alone. Mean and standard
    deviation over the splits are told. Queries are searched for upright.
    """
    from eval.similarity import WAYS, evaluate_similarity
    from eval.similarity_splits import SplitOptions

    options = similarity_options(build(SimilarityChoices, choices), neighbours=2, seed=seed, as_published=as_published)
    titles = {"splits": "Splits", "gradients": "Image pairs", "iterations": "Iterations"}
    with progress_bars(quiet or json, titles) as tell:
        report = evaluate_similarity(
            collection,
            gt,
            options,
            neighbours=neighbours or (2,),
            splits=SplitOptions(splits, by, share, parts, seed),
            searched=searched or (),
            ways=way or tuple(WAYS),
            work=work,
            workers=workers or cores(),
            progress=tell,
        )
    told = report.as_json()
    if json:
        print_json({"as_published": as_published, **told})
        return
    for name, found in told["searched"].items():
        for row in found["learnt"]:
            for which, title in _TITLES.items():
                if row.get(which) is not None:
                    say(f"{name}, {title}, k = {row['neighbours']}: {_compare(row[which])}")
    for row in told["learning"]:
        say(
            f"k = {row['neighbours']}: {row['parameters']['mean']:.0f} variables, {row['triplets']['mean']:.0f} "
            f"triplets, {row['seconds']['mean']:.0f} s"
        )


def _compare(figure: dict[str, Any]) -> str:
    spread = f" ± {100 * figure['sd']:.2f}" if figure["sd"] is not None else ""
    return (
        f"mAP {100 * figure['tf-idf']:.2f} by tf-idf, {100 * figure['mAP']:.2f}{spread} learnt ({figure['gain']:+.1%})"
    )
