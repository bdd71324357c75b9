"""Command: learn blocks."""

from pathlib import Path
from typing import Annotated

import typer

from index.options.panels import DATA, MODEL, OUTPUT, RUNNING, TUNING
from learning.commands.as_published import BROWN11, AsPublished, of_blocks, published
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import Json, Quiet, Seed, Workers, cores


@published(of_blocks)
def blocks(
    sources: Annotated[
        list[Path], typer.Argument(help="Folders of labelled patches, as cairn patches build makes or as published.")
    ],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Descriptor file (.npz) to write.")],
    combination: Annotated[
        str | None,
        typer.Option(
            "--blocks",
            rich_help_panel=MODEL,
            metavar="NAME",
            help="T- and S-block, as T3h-S4-25 (default) or any other two. T: T1a, T1b or T1c (4, 8 or 16 directions "
            "of the gradient), T2a or T2b (rectified gradients), T3g, T3h, T3i or T3j (steerable filters), T4 "
            "(differences of Gaussians), pixels or gradients. S: S1-16 (SIFT), S2-3, S2-9 or S2-17 (polar), S3-9, "
            "S3-16 or S3-25 (Gaussians on a square), S4-17 or S4-25 (on circles). A T-block alone, as T3h, is sampled "
            "on a grid of 10 x 10 and left to the embedding; T3h-grid-8: of 8 x 8, from 2 to 32.",
        ),
    ] = None,
    embedding: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="E-block: none (default), pca, lpp, olpp, lde, olde, glde or golde (o: orthogonal).",
        ),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Dimensions of the embedding (default: as many as do best on validation pairs).",
            min=1,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="One of the paper's best instead of --blocks, --embedding and --dim: T1c-S2-17, T3h-S4-25, T3h-S2-17 "
            "or T3j-S2-17 (parametric is T3h-S4-25), non-parametric (T3h, lpp, 32 dimensions), composite (T3h-S4-25, "
            "pca, 29) or composite-polar (T3j-S2-17, pca, 36).",
        ),
    ] = None,
    powell: Annotated[
        bool,
        typer.Option(
            "--powell/--no-powell",
            rich_help_panel=TUNING,
            help="Learn the blocks' parameters, or take those learning begins with.",
        ),
    ] = True,
    evaluations: Annotated[
        int | None, typer.Option(rich_help_panel=TUNING, help="Evaluations of the area, at most (default: 400).", min=1)
    ] = None,
    powell_pairs: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Training pairs that the area is computed on, at most; 0: all (default: 10000).",
            min=0,
        ),
    ] = None,
    alpha: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Part of the power of matches' differences that is taken for noise; give several to choose by "
            "validation (default: 0.02, 0.05, 0.1, 0.2 and 0.3).",
        ),
    ] = None,
    centre: Annotated[
        bool,
        typer.Option(
            "--centre/--no-centre",
            rich_help_panel=TUNING,
            help="Take the mean off what an embedding is learnt from, and off samples on a grid before they are "
            "projected, or leave it, as the paper's equations do.",
        ),
    ] = True,
    bits: Annotated[
        int,
        typer.Option(
            rich_help_panel=MODEL,
            help="Bits that each dimension is kept in, without an embedding; 0: a real number.",
            min=0,
            max=8,
        ),
    ] = 0,
    patch_size: Annotated[
        int,
        typer.Option(
            rich_help_panel=MODEL,
            help="Samples along a patch's side: 64, as in the paper. All lengths go by it but those of the steerable "
            "filters (T3), which at 32 are twice as wide, and do worse.",
            min=8,
            max=256,
        ),
    ] = 64,
    pairs: Annotated[
        int,
        typer.Option(
            rich_help_panel=DATA, help="At most so many training pairs of each source, drawn at random; 0: all.", min=0
        ),
    ] = 0,
    as_published: AsPublished = False,
    work: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=RUNNING,
            help="Folder of what is computed on the way, to go on from. By default one beside the file.",
        ),
    ] = None,
    workers: Workers = 0,
    seed: Seed = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a descriptor made of building blocks (Brown, Hua, Winder, 2011).

    A T-block gives each sample of a patch a vector of filter responses, an S-block pools them over regions, an N-block
    normalises and clips, an E-block projects to few dimensions. Their parameters are learnt by Powell's method on the
    area under the ROC curve, the projection from the moments of matches and non-matches. An interrupted run is picked
    up by running the same command again.
    """
    from time import perf_counter

    from index.errors import CairnError
    from learning.blocks.descriptor import PRESETS, BlockOptions, Preset, learn_blocks, provenance
    from learning.blocks.powell import PowellOptions, best_of
    from learning.patches.sources import open_sources
    from retrieval.descriptors.blocks.descriptor import Blocks
    from retrieval.descriptors.learnt import LearntDescriptor, check_model_path, save_model

    began = perf_counter()
    check_model_path(out)
    # The paper's name is golde; oglde is in line with the other two.
    named = "golde" if embedding == "oglde" else embedding or "none"
    chosen = Preset(combination or "T3h-S4-25", named, dim)
    if preset is not None:
        if preset not in PRESETS:
            raise CairnError(f"There is no preset {preset!r}; choose one of {', '.join(PRESETS)}.")
        if (combination, embedding, dim) != (None, None, None):
            raise CairnError("--blocks, --embedding and --dim are those of the --preset: take them away.")
        chosen = PRESETS[preset]
    if not powell and (evaluations, powell_pairs) != (None, None):
        raise CairnError("--evaluations and --powell-pairs are of no use with --no-powell: take them away.")
    if alpha and chosen.embedding in ("none", "pca"):
        raise CairnError(
            "--alpha is for embeddings that divide by matches' differences (lpp, olpp, lde, olde, glde, golde): take "
            "it away, or choose one."
        )
    usual = BlockOptions(embedding="none")
    options = BlockOptions(
        blocks=chosen.blocks,
        embedding=chosen.embedding,
        dim=chosen.dim,
        powell=powell,
        patch_size=patch_size,
        powell_pairs=usual.powell_pairs if powell_pairs is None else powell_pairs,
        alphas=tuple(alpha) if alpha else usual.alphas,
        centre=centre,
        bits=bits,
        search=PowellOptions() if evaluations is None else PowellOptions(evaluations),
        seed=seed,
    )
    opened = open_sources(sources, pairs=pairs, seed=seed)
    folder = work or out.with_suffix(".learning")
    titles = {"read": "Patches", "powell": "Parameters", "embed": "Embedding"}
    with progress_bars(quiet or json, titles) as tell:
        learnt = learn_blocks(opened, folder, options, workers=workers or cores(), progress=tell)
    model = learnt.model
    model.provenance.update(provenance(opened, options, learnt))
    if as_published:
        model.provenance["as_published"] = BROWN11
    save_model(out, model)
    described = LearntDescriptor(model)
    found = model.base_model
    assert isinstance(found, Blocks)
    seconds = perf_counter() - began
    areas = [learnt.trials[0].area, best_of(learnt.trials).area] if learnt.trials else []
    if json:
        print_json(
            {
                "descriptor": str(out),
                "name": described.name,
                "fingerprint": described.fingerprint,
                "pooled_dim": found.pooled_dim,
                "dim": described.dim,
                "bytes": described.bytes,
                "parameters": dict(found.parameters),
                "evaluations": len(learnt.trials),
                "area": areas,
                "embedding": model.provenance["embedding"],
                "validation": model.provenance["validation"],
                "worse_on_validation": learnt.worse,
                "work": str(folder),
                "seconds": {"evaluation": round(learnt.seconds_per_trial, 3), "total": round(seconds, 3)},
            }
        )
        return
    if areas:
        say(
            f"parameters   {len(learnt.trials)} evaluations, area {areas[0]:.5f} to {areas[1]:.5f}; "
            f"{100 * learnt.before:.2f}% false positives at 95% recall on validation pairs to "
            f"{100 * learnt.pooled:.2f}%"
        )
    if learnt.worse:
        say("             which is worse: more training pairs (--powell-pairs), or --no-powell, may do better")
    if learnt.embeddings:
        say(f"embedding    {found.pooled_dim} to {found.dim} dimensions, {100 * learnt.fpr95:.2f}% false positives")
    say(f"{out}: {described.name}, {described.dim} dimensions, {described.bytes} bytes; {seconds:.0f} s")
