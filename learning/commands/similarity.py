"""Commands: learn similarity."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import CatalogueAddress, Json, Quiet, Seed, Workers, cores
from retrieval.commands.panels import DATA, OUTPUT, TUNING

if TYPE_CHECKING:
    from learning.similarity.learning import LearntSimilarity


def similarity(
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
            rich_help_panel=TUNING,
            help="Nearest words that a word may mean the same as; 0: learn the words' weights alone.",
            min=0,
            max=20,
        ),
    ] = 2,
    iterations: Annotated[int, typer.Option(rich_help_panel=TUNING, help="Iterations, at most.", min=1)] = 100,
    hold_out: Annotated[
        int,
        typer.Option(
            rich_help_panel=TUNING, help="Photos of each object, at most, that decide which iteration is taken.", min=0
        ),
    ] = 4,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit/--no-refit",
            rich_help_panel=TUNING,
            help="Learn again from the held-out photos too, for as many iterations.",
        ),
    ] = True,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing", rich_help_panel=DATA, help="Pass over labels of photos that are not in the collection."
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
    import numpy as np

    from index.errors import CairnError
    from index.similarity import check_similarity_path, nearest_pairs
    from learning.labels.files import read_labels
    from learning.labels.verified import verified_relevance
    from learning.similarity.learning import SimilarityOptions, learn_similarity
    from learning.similarity.pair_gradients import WordPairs
    from retrieval.collection.collection import Collection

    began = perf_counter()
    if (gt is None) == (not verified):
        raise CairnError(
            "Say what to learn from: either labels with --gt, or photos that geometry verifies, --verified."
        )
    check_similarity_path(out)
    options = SimilarityOptions(neighbours=neighbours, iterations=iterations, hold_out=hold_out, refit=refit, seed=seed)
    rng = np.random.default_rng(seed)
    titles = {"verify": "Verifying", "gradients": "Image pairs", "iterations": "Iterations"}
    with Collection.open(collection, catalogue=catalogue) as opened, progress_bars(quiet or json, titles) as tell:
        if gt is None:
            relevance = verified_relevance(opened, min_inliers=inliers, workers=workers or cores(), progress=tell)
        else:
            labels = read_labels(gt, opened.catalogue.images(), skip_missing=skip_missing)
            relevance = labels.relevance(opened.index.image_numbers.astype(np.int64), rng)
        pairs = WordPairs(opened.vocabulary.words, *nearest_pairs(opened.vocabulary, neighbours))
        learnt = learn_similarity(
            opened.index,
            opened.vocabulary.fingerprint,
            pairs,
            relevance,
            options,
            workers=workers or cores(),
            progress=tell,
        )
    matrix = learnt.matrix
    matrix.provenance["labels"] = "verified" if gt is None else gt.name
    matrix.provenance["collection"] = collection.resolve().name
    matrix.save(out)
    first, chosen = learnt.history[0], learnt.history[learnt.chosen]
    learnt_from, held = learnt.learnt_from, learnt.held_out
    seconds = round(perf_counter() - began, 3)
    if json:
        print_json(
            {
                "similarity": str(out),
                "fingerprint": matrix.fingerprint,
                "words": matrix.words,
                "neighbours": neighbours,
                "pairs": len(matrix.values),
                "photos": len(learnt_from.database),
                "objects": len(set(learnt_from.objects.tolist())),
                "queries": len(learnt_from.queries),
                "triplets": learnt.triplets,
                "hard": learnt.hard,
                "image_pairs": learnt.image_pairs,
                "objective": [entry.objective for entry in learnt.history],
                "iteration": learnt.chosen,
                "held_out": {"photos": len(held.queries), "tf-idf": first.held_out, "learnt": chosen.held_out},
                "history": [vars(entry) for entry in learnt.history],
                "seconds": seconds,
            }
        )
        return
    say(
        f"{out}: {matrix.words} words and {len(matrix.values)} pairs of words, from {len(learnt_from.queries)} photos "
        f"of {len(set(learnt_from.objects.tolist()))} objects among {len(learnt_from.database)}; {learnt.triplets} "
        f"triplets, {learnt.hard} of them hard, in {seconds:.0f} s"
    )
    say(_verdict(learnt, len(held.queries)))


def _verdict(learnt: "LearntSimilarity", held_out: int) -> str:
    """Say in plain words what came of it."""
    first, chosen = learnt.history[0].held_out, learnt.history[learnt.chosen].held_out
    if first is None or chosen is None:
        return (
            "No photo was held out, or objects have too few for that: nothing says whether this is better than tf-idf. "
            "Measure it on queries of your own before you use it."
        )
    if not learnt.chosen:
        return f"Nothing was better than tf-idf on {held_out} photos held out (mAP {first:.3f}): the file is tf-idf."
    return (
        f"On {held_out} photos held out mAP goes from {first:.3f} to {chosen:.3f} (iteration {learnt.chosen}). "
        "They chose the iteration, so that is a little optimistic. Use it with cairn query --similarity."
    )
