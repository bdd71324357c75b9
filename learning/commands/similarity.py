"""Commands: learn similarity."""

from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from learning.commands.similarity_options import AsPublished, LearningChoices
from learning.library.published import YAN13
from retrieval.commands.console import note, print_json, progress_bars, say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import CatalogueAddress, Json, Quiet, Seed, Workers, cores
from retrieval.commands.panels import DATA, MEASURED, MODEL, OUTPUT

if TYPE_CHECKING:
    from learning.similarity.learning import LearntSimilarity


@grouped
def similarity(
    collection: Annotated[Path, typer.Argument(help="Folder of the collection.")],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Similarity file (.npz) to write.")],
    choices: LearningChoices,
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
    as_published: AsPublished = False,
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
    import numpy as np

    from index.errors import CairnError
    from index.similarity import check_similarity_path, nearest_pairs
    from learning.labels.files import read_labels
    from learning.labels.labels import split
    from learning.labels.verified import verified_relevance
    from learning.similarity.asking import ask_ground_truths
    from learning.similarity.curve import check_curve, write_curve
    from learning.similarity.learning import learn_similarity
    from learning.similarity.pair_gradients import WordPairs
    from retrieval.collection.collection import Collection

    began = perf_counter()
    if (gt is None) == (not verified):
        raise CairnError(
            "Say what to learn from: either labels with --gt, or photos that geometry verifies, --verified."
        )
    check_similarity_path(out)
    if not 0 < share <= 1 or (verified and share < 1):
        raise CairnError("--share is more than 0 and at most 1, and goes with --gt alone.")
    if test_queries and not test_gt:
        raise CairnError("--test-queries goes with --test-gt, whose photos they are.")
    if curve is not None:
        check_curve(curve)
    options = choices.settle(neighbours, seed, as_published=as_published)
    rng = np.random.default_rng(seed)
    titles = {"verify": "Verifying", "gradients": "Image pairs", "iterations": "Iterations"}
    with Collection.open(collection, catalogue=catalogue) as opened, progress_bars(quiet or json, titles) as tell:
        if gt is None:
            relevance = verified_relevance(opened, min_inliers=inliers, workers=workers or cores(), progress=tell)
        else:
            labels = read_labels(gt, opened.catalogue.images(), skip_missing=skip_missing)
            numbers = opened.index.image_numbers.astype(np.int64)
            if share < 1:
                numbers, _ = split(labels, numbers, rng, share=share)
            relevance = labels.relevance(numbers, rng)
        test = ask_ground_truths(opened, test_gt, test_queries or (), skip_missing=skip_missing) if test_gt else None
        if test is not None:
            relevance = relevance.without(test.asked)
        pairs = WordPairs(opened.vocabulary.words, *nearest_pairs(opened.vocabulary, neighbours))
        learnt = learn_similarity(
            opened.index,
            opened.vocabulary.fingerprint,
            pairs,
            relevance,
            options,
            test=test,
            workers=workers or cores(),
            progress=tell,
        )
    matrix = learnt.matrix
    matrix.provenance["labels"] = "verified" if gt is None else gt.name
    matrix.provenance["collection"] = collection.resolve().name
    if as_published:
        matrix.provenance["as_published"] = YAN13
    matrix.save(out)
    if curve is not None:
        write_curve(curve, learnt.history)
    to_find = np.intersect1d(np.concatenate(test.positives), relevance.queries) if test is not None else ()
    if len(to_find):
        note(
            f"{len(to_find)} of the photos that the test queries are to find are learnt from too, as in the paper, so "
            "that their figures are better than on objects that were not seen: cairn evaluate similarity --by objects "
            "tells those."
        )
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
                "as_published": as_published,
                "options": asdict(options),
                "parameters": matrix.words + len(matrix.values),
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
                "test": _tested(learnt, test.names) if test is not None else None,
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
    if test is not None:
        told = _tested(learnt, test.names)
        say(
            f"On {len(test.names)} test queries mAP goes from {told['tf-idf']:.3f} to {told['learnt']:.3f}; at its "
            f"best, in iteration {told['best']['iteration']}, it was {told['best']['mAP']:.3f}."
        )


def _tested(learnt: "LearntSimilarity", names: tuple[str, ...]) -> dict[str, Any]:
    """What `--json` reports of test queries."""
    figures = [entry.test or 0.0 for entry in learnt.history]
    best = max(range(len(figures)), key=lambda number: figures[number])
    return {
        "queries": len(names),
        "tf-idf": figures[0],
        "learnt": learnt.test or 0.0,
        "best": {"iteration": best, "mAP": figures[best]},
    }


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
