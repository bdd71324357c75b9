"""Commands: learn similarity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from index.options.panels import DATA, OUTPUT
from learning.library.similarity_options import SimilarityData, SimilarityPaper
from learning.similarity.options import SimilarityOptions
from retrieval.commands.console import note, print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import CatalogueAddress, Json, Quiet


@grouped
def similarity(
    *,
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Similarity file (.npz) to write.")],
    gt: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Labels: a ground truth in the layout of Oxford5K, a folder with a folder of photos an object, or "
            "a table (.csv) of photo and label. Photos that are not mentioned are taken to show none of the "
            "objects. The photos that a ground truth asks with are left out of learning.",
        ),
    ] = None,
    options: Annotated[dict[str, Any], OptionsOf(SimilarityData, SimilarityOptions, SimilarityPaper)],
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn which visual words mean the same, and what each is worth (Yan, Yu, 2013).

    From photos known to show the same object, a sparse matrix is learnt that ranks them higher than tf-idf does: a
    weight for each word, and one for each pair of neighbouring words. Some photos are held out, and what finds most
    with them is taken. Nothing is indexed again: use the file with cairn query --similarity.
    """
    from learning.library.similarity import TITLES, learn_similarity

    with progress_bars(quiet or json, TITLES) as tell:
        learnt = learn_similarity(
            collection,
            out,
            labels=gt,
            **options,
            catalogue=catalogue,
            progress=tell,
        )
    for sentence in learnt.notes:
        note(sentence)
    report = learnt.to_dict()
    if json:
        print_json(report)
        return
    say(
        f"{out}: {report['words']} words and {report['pairs']} pairs of words, from {report['queries']} photos "
        f"of {report['objects']} objects among {report['photos']}; {report['triplets']} "
        f"triplets, {report['hard']} of them hard, in {report['seconds']:.0f} s"
    )
    say(learnt.verdict)
    if (test := report["test"]) is not None:
        say(
            f"On {test['queries']} test queries mAP goes from {test['tf-idf']:.3f} to {test['learnt']:.3f}; at its "
            f"best, in iteration {test['best']['iteration']}, it was {test['best']['mAP']:.3f}."
        )
