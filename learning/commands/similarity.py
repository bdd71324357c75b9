"""Commands: learn similarity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from index.options.panels import DATA, MEASURED, MODEL, OUTPUT
from learning.commands.as_published import LearnAsPublished
from learning.library.similarity_options import SimilarityChoices
from retrieval.commands.console import note, print_json, progress_bars, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import CatalogueAddress, Json, Quiet, Seed, Workers


@grouped
def similarity(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Similarity file (.npz) to write.")],
    choices: Annotated[dict[str, Any], OptionsOf(SimilarityChoices)],
    gt: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Labels: a ground truth in the layout of Oxford5K, a folder with a folder of photos an object, or "
            "a table (.csv) of photo and label. Photos that are not mentioned are taken to show none of the "
            "objects. The photos that a ground truth asks with are left out of learning.",
        ),
    ] = None,
    verified: Annotated[
        bool,
        typer.Option(
            "--verified",
            rich_help_panel=DATA,
            help="Take no labels: photos that geometry verifies with each other show the same object.",
        ),
    ] = False,
    inliers: Annotated[
        int, typer.Option(rich_help_panel=DATA, help="Fewest inliers of two photos, with --verified.", min=4)
    ] = 20,
    neighbours: Annotated[
        int,
        typer.Option(
            rich_help_panel=MODEL,
            help="Nearest words that a word may mean the same as; 0: learn the words' weights alone.",
            min=0,
            max=20,
        ),
    ] = 2,
    as_published: LearnAsPublished = False,
    share: Annotated[
        float,
        typer.Option(
            rich_help_panel=DATA,
            help="Share of the photos that is learnt from, of each object as of the others; the seed says which. The "
            "paper's is 0.8. Not with --verified.",
            max=1,
        ),
    ] = 1.0,
    test_gt: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=MEASURED,
            help="Ground truth in the layout of Oxford5K that is searched for after each iteration, and decides "
            "nothing; may be repeated. The photos that it asks with are never learnt from.",
        ),
    ] = None,
    test_queries: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=MEASURED,
            help="Folder of photos that --test-gt asks with and the collection does not have; may be repeated.",
        ),
    ] = None,
    curve: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Table (.csv) of the objective and the mAPs after each iteration to write.",
        ),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing",
            rich_help_panel=DATA,
            help="Pass over labels of photos that are not in the collection, and over queries of --test-gt that ask "
            "with such photos.",
        ),
    ] = False,
    seed: Seed = 0,
    workers: Workers = 0,
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
            verified=verified,
            inliers=inliers,
            neighbours=neighbours,
            share=share,
            test_gt=test_gt,
            test_queries=test_queries,
            curve=curve,
            skip_missing=skip_missing,
            **choices,
            as_published=as_published,
            seed=seed,
            workers=workers,
            catalogue=catalogue,
            progress=tell,
        )
    for sentence in learnt.notes:
        note(sentence)
    told = learnt.to_dict()
    if json:
        print_json(told)
        return
    say(
        f"{out}: {told['words']} words and {told['pairs']} pairs of words, from {told['queries']} photos "
        f"of {told['objects']} objects among {told['photos']}; {told['triplets']} "
        f"triplets, {told['hard']} of them hard, in {told['seconds']:.0f} s"
    )
    say(learnt.verdict)
    if (test := told["test"]) is not None:
        say(
            f"On {test['queries']} test queries mAP goes from {test['tf-idf']:.3f} to {test['learnt']:.3f}; at its "
            f"best, in iteration {test['best']['iteration']}, it was {test['best']['mAP']:.3f}."
        )
