"""Command: learn embedding."""

from pathlib import Path
from typing import Annotated

import typer

from index.options.panels import DATA, MODEL, OUTPUT, TUNING
from learning.commands.as_published import BROWN11, AsPublished, published
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import Json, Quiet, Seed


@published(lambda values: {"centre": False})
def embedding(
    sources: Annotated[
        list[Path], typer.Argument(help="Folders of labelled patches, as cairn patches build makes or as published.")
    ],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Descriptor file (.npz) to write.")],
    base: Annotated[
        str, typer.Option(rich_help_panel=MODEL, metavar="NAME", help="What is projected: sift or rootsift.")
    ] = "sift",
    kind: Annotated[
        str,
        typer.Option(
            "--embedding",
            rich_help_panel=MODEL,
            metavar="NAME",
            help="pca, lpp, olpp, lde, olde, glde or golde (o: orthogonal).",
        ),
    ] = "pca",
    dim: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Dimensions (default: as many as do best on validation pairs).",
            min=1,
            max=128,
        ),
    ] = None,
    alpha: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Part of the power of matches' differences that is taken for noise; give several to choose by "
            "validation (default: 0, 0.02, 0.05, 0.1, 0.2 and 0.3; none with pca).",
        ),
    ] = None,
    centre: Annotated[
        bool,
        typer.Option(
            "--centre/--no-centre",
            rich_help_panel=TUNING,
            help="Take the mean off what an embedding is learnt from, or leave it, as the paper's equations do.",
        ),
    ] = True,
    pairs: Annotated[
        int,
        typer.Option(
            rich_help_panel=DATA, help="At most so many training pairs of each source, drawn at random; 0: all.", min=0
        ),
    ] = 0,
    as_published: AsPublished = False,
    seed: Seed = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a projection of SIFT to few dimensions by an E-block of Brown, Hua, Winder (2011).

    PCA, or directions along which matches differ little and others much, are found from the moments of labelled pairs,
    and their number is chosen by validation pairs. For one command that also learns the blocks there is learn blocks.
    """
    from time import perf_counter

    from index.errors import CairnError
    from learning.blocks.base_embedding import EmbeddingOptions, learn_base_embedding
    from learning.patches.sources import open_sources
    from retrieval.descriptors.learnt import LearntDescriptor, check_model_path, save_model

    began = perf_counter()
    check_model_path(out)
    if alpha and kind == "pca":
        raise CairnError("--alpha is for embeddings that divide by matches' differences: pca takes none.")
    options = EmbeddingOptions(
        base=base,
        embedding="golde" if kind == "oglde" else kind,
        dim=dim,
        alphas=tuple(alpha) if alpha else EmbeddingOptions.alphas,
        centre=centre,
        seed=seed,
    )
    opened = open_sources(sources, pairs=pairs, seed=seed)
    with progress_bars(quiet or json, {"describe": "Describing", "embed": "Embeddings"}) as tell:
        learnt = learn_base_embedding(opened, options, tell)
    if as_published:
        learnt.model.provenance["as_published"] = BROWN11
    save_model(out, learnt.model)
    described = LearntDescriptor(learnt.model)
    seconds = perf_counter() - began
    if json:
        print_json(
            {
                "descriptor": str(out),
                "name": described.name,
                "fingerprint": described.fingerprint,
                "base": base,
                "embedding": options.embedding,
                "dim": described.dim,
                "alpha": learnt.chosen.alpha,
                "validation": {"before": learnt.before, "fpr95": learnt.chosen.fpr95},
                "tried": len(learnt.tried),
                "seconds": round(seconds, 3),
            }
        )
        return
    say(
        f"{out}: {base} by {options.embedding} to {described.dim} dimensions, {100 * learnt.before:.2f}% false "
        f"positives at 95% recall on validation pairs before, {100 * learnt.chosen.fpr95:.2f}% after; {seconds:.0f} s"
    )
