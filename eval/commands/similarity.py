"""Command: evaluate similarity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from eval.similarity_options import SimilarityStudy
from index.options.declaration import build
from index.options.panels import MEASURED
from learning.library.similarity_options import SimilarityPaper, similarity_options
from learning.similarity.options import SimilarityOptions
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet

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
    choices: Annotated[dict[str, Any], OptionsOf(SimilarityOptions, SimilarityPaper)],
    study: Annotated[dict[str, Any], OptionsOf(SimilarityStudy)],
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn similarities from random splits of a collection, and compare them with tf-idf (Yan, Yu, 2013).

    The photos that the ground truth asks with are never learnt from; of the others --share is, and all are searched, so
    that photos which were learnt from are found among them: the last line is about the others alone. Mean and standard
    deviation over the splits are printed. Queries are searched for upright.
    """
    from eval.similarity import evaluate_similarity

    study_options = build(SimilarityStudy, study)
    options = similarity_options(choices, seed=study_options.split.seed)
    titles = {"splits": "Splits", "gradients": "Image pairs", "iterations": "Iterations"}
    with progress_bars(quiet or json, titles) as tell:
        report = evaluate_similarity(collection, gt, options, study_options, tell)
    figures = report.as_json()
    if json:
        print_json({"as_published": choices["as_published"], **figures})
        return
    for name, searched in figures["searched"].items():
        for row in searched["learnt"]:
            for which, title in _TITLES.items():
                if row.get(which) is not None:
                    say(f"{name}, {title}, k = {row['neighbours']}: {_compare(row[which])}")
    for row in figures["learning"]:
        say(
            f"k = {row['neighbours']}: {row['parameters']['mean']:.0f} variables, {row['triplets']['mean']:.0f} "
            f"triplets, {row['seconds']['mean']:.0f} s"
        )


def _compare(figure: dict[str, Any]) -> str:
    spread = f" ± {100 * figure['sd']:.2f}" if figure["sd"] is not None else ""
    return (
        f"mAP {100 * figure['tf-idf']:.2f} by tf-idf, {100 * figure['mAP']:.2f}{spread} learnt ({figure['gain']:+.1%})"
    )
