"""Commands: learn descriptor; learn similarity, learn blocks and learn boosted are mounted here."""

from pathlib import Path
from typing import Annotated, Any

import typer

from learning.commands.blocks import blocks
from learning.commands.boosted import boosted
from learning.commands.similarity import similarity
from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import CatalogueAddress, Json, Quiet, Seed, Workers, cores
from retrieval.commands.panels import DATA, MODEL, OUTPUT, RUNNING, TUNING

learn = typer.Typer(help="Learn from photos.", no_args_is_help=True)
learn.command()(similarity)
learn.command()(blocks)
learn.command()(boosted)


@learn.command()
def descriptor(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="A collection, whose photos are mined; a file of matches (.npz) of cairn mine; or folders of labelled "
            "patches, as cairn patches build makes or as published."
        ),
    ],
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Descriptor file (.npz) to write.")],
    stage: Annotated[
        str, typer.Option(rich_help_panel=MODEL, metavar="NAME", help="pooling, projection or both.")
    ] = "both",
    base: Annotated[
        str,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="What is projected: pooled (learnt pooling regions), rootsift or sift.",
        ),
    ] = "pooled",
    dim: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Dimensions of the projected descriptor, at most (default: 80; 128 from photos without labels).",
            min=1,
        ),
    ] = None,
    max_pooled_dim: Annotated[
        int, typer.Option(rich_help_panel=MODEL, help="Dimensions of the pooled descriptor, at most.", min=8)
    ] = 640,
    norm: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="Norm of the metric: nuclear lowers the dimension, frobenius keeps it. Nuclear by default; frobenius "
            "for the bases sift and rootsift where --dim is no less than their 128.",
        ),
    ] = None,
    pooling: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL, help="Project the pooling regions of this descriptor file (with --stage projection)."
        ),
    ] = None,
    pairs: Annotated[
        int,
        typer.Option(
            rich_help_panel=DATA, help="At most so many training pairs of each source, drawn at random; 0: all.", min=0
        ),
    ] = 0,
    augment: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Copies of each labelled pair, one patch distorted as another view, for projections; 0: none "
            "(default: 2).",
            min=0,
        ),
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Share of the mined features to learn from, those that match best, K of the paper; give several to "
            "choose by validation (default: 0.8, 0.7, 0.6 and 0.5).",
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            rich_help_panel=DATA, help="Rounds of looking for the negatives of mined features that are hardest.", min=1
        ),
    ] = 2,
    report: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="HTML report with pictures of what was mined and learnt from photos; needs matplotlib.",
        ),
    ] = None,
    photos: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Folder of the photos that a file of matches was mined from, to be shown in the report.",
        ),
    ] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Smoothing of patches: standard deviation, samples of 31 (default: 2; without labels 1.4).",
            min=0,
            max=31,
        ),
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING, help="Quantile of gradients that patches are normalised by (default: 0.7)."
        ),
    ] = None,
    power: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Power that pooled gradients are taken to (default: 0.5); 1: none, as in the paper.",
        ),
    ] = None,
    symmetric: Annotated[
        bool,
        typer.Option(
            "--symmetric/--asymmetric",
            rich_help_panel=TUNING,
            help="Select rings of regions, or each region by itself.",
        ),
    ] = True,
    balanced: Annotated[
        bool,
        typer.Option(
            "--balanced/--unbalanced",
            rich_help_panel=TUNING,
            help="Charge rings by their part in a distance, or by their weight alone as Simonyan et al. (2014) do.",
        ),
    ] = True,
    keep: Annotated[
        float,
        typer.Option(
            rich_help_panel=TUNING,
            help="Share of the dimensions kept at a time, until they are few enough; 0: all, as in the paper, where "
            "the norm alone makes them few.",
            min=0,
            max=0.95,
        ),
    ] = 0.5,
    pool_step: Annotated[
        float,
        typer.Option(
            rich_help_panel=TUNING,
            help="Step of the candidate regions' radius and width, samples of 31.",
            min=0.25,
            max=15,
        ),
    ] = 0.5,
    hours: Annotated[
        float,
        typer.Option(
            rich_help_panel=RUNNING, help="Begin no further model after these, once one fits; 0: no limit.", min=0
        ),
    ] = 0.0,
    work: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=RUNNING,
            help="Folder of what is computed on the way, kept, to go on from or to try other settings. By default one "
            "beside the descriptor, of which the table of models is left.",
        ),
    ] = None,
    workers: Workers = 0,
    seed: Seed = 0,
    catalogue: CatalogueAddress = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Learn a descriptor by convex optimisation (Simonyan, Vedaldi, Zisserman, 2014).

    From a collection no labels are needed: photos that overlap are found and matched by geometry (cairn mine), and in
    the end the descriptor is compared with rootSIFT on image pairs that were held out. Nothing is indexed: that is for
    cairn index --descriptor.

    First pooling regions are selected, then a projection to few dimensions is learnt, each by a grid of models; what
    does best on validation pairs is taken. An interrupted run is picked up by running the same command again, and a run
    for another --dim with the same --work finds what is common there.
    """
    import shutil
    from dataclasses import asdict, replace
    from time import perf_counter

    from index.errors import CairnError
    from learning.commands.unlabelled import is_unlabelled, learn_from_photos
    from learning.convex.candidates import PoolOptions
    from learning.convex.descriptor import RING_DISTANCES, LearningOptions, learn_descriptor
    from learning.convex.projection import ProjectionOptions
    from learning.convex.records import TABLE
    from learning.convex.ring_selection import SelectionOptions
    from learning.latent.descriptor import UnlabelledOptions, metric_options
    from learning.patches.augmentation import AugmentationOptions
    from learning.patches.sources import open_sources
    from retrieval.descriptors.learnt import LearntDescriptor, check_model_path, load_model, save_model
    from retrieval.descriptors.pooling import ChannelOptions

    began = perf_counter()
    check_model_path(out)
    unlabelled = is_unlabelled(sources)
    if unlabelled and (pairs or augment is not None):
        raise CairnError("--pairs and --augment are for labelled patches: take them away.")
    if not unlabelled and (share or rounds != 2 or any(one is not None for one in (report, photos, catalogue))):
        raise CairnError(
            "--share, --rounds, --report, --photos and --catalogue are for photos without labels: take them away."
        )
    if photos is not None and (report is None or sources[0].suffix != ".npz"):
        raise CairnError("--photos goes with --report and a file of matches: a collection knows its photos.")
    dim = dim or (128 if unlabelled else 80)
    if quantile is not None and not 0 < quantile <= 1:
        raise CairnError(f"The quantile must lie above 0 and not above 1, and is {quantile}.")
    if power is not None and not 0.01 <= power <= 1:
        raise CairnError(f"The power must lie between 0.01 and 1, and is {power}.")
    if base != "pooled" and (smoothing, quantile, power) != (None, None, None):
        raise CairnError(f"--smoothing, --quantile and --power are of pooled gradients: the base {base} takes none.")
    if norm == "frobenius" and base != "pooled" and dim < 128:
        raise CairnError("The Frobenius norm keeps the 128 dimensions: ask for --dim 128, or for the nuclear norm.")
    given = None
    if pooling is not None:
        if stage != "projection" or base != "pooled":
            raise CairnError("--pooling goes with --stage projection and the base pooled: regions are not learnt then.")
        if (smoothing, quantile, power) != (None, None, None):
            raise CairnError("--smoothing, --quantile and --power are those of the --pooling file: take them away.")
        given = load_model(pooling).pooling
        if given is None:
            raise CairnError(f"{pooling} has no pooling regions: name a descriptor file of the base pooled.")
    usual = UnlabelledOptions()
    channels = given.channels if given is not None else usual.channels if unlabelled else ChannelOptions()
    asked: dict[str, Any] = {"smoothing": smoothing, "quantile": quantile, "power": power}
    channels = replace(channels, **{name: value for name, value in asked.items() if value is not None})
    chosen_norm = norm or ("frobenius" if base != "pooled" and dim >= 128 else "nuclear")
    if unlabelled:
        learn_from_photos(
            sources[0],
            out,
            UnlabelledOptions(
                stage=stage,
                base=base,
                dim=dim,
                max_pooled_dim=max_pooled_dim,
                hours=hours,
                shares=tuple(share) if share else usual.shares,
                rounds=rounds,
                channels=channels,
                pool=PoolOptions(step=pool_step, symmetric=symmetric),
                selection=replace(usual.selection, balanced=balanced, keep=keep, seed=seed),
                projection=metric_options(chosen_norm, seed),
                seed=seed,
            ),
            pooling=given,
            report=report,
            photos=photos,
            catalogue=catalogue,
            work=work,
            workers=workers or cores(),
            quiet=quiet,
            json=json,
        )
        return
    options = LearningOptions(
        stage=stage,
        base=base,
        dim=dim,
        max_pooled_dim=max_pooled_dim,
        hours=hours,
        channels=channels,
        pool=PoolOptions(step=pool_step, symmetric=symmetric),
        selection=SelectionOptions(balanced=balanced, keep=keep, seed=seed),
        projection=ProjectionOptions(norm=chosen_norm, seed=seed),
        augmentation=AugmentationOptions(copies=2 if augment is None else augment, seed=seed),
    )
    opened = open_sources(sources, pairs=pairs, seed=seed)
    folder = work or out.with_suffix(".learning")
    titles = {
        "psi-train": "Ring distances",
        "psi-validation": "… for validation",
        "pooling": "Pooling regions",
        "describe": "Describing",
        "projection": "Projections",
    }
    with progress_bars(quiet or json, titles) as tell:
        learnt = learn_descriptor(opened, folder, options, pooling=given, workers=workers or cores(), progress=tell)
    final = learnt.projection or learnt.pooling
    assert final is not None
    provenance: dict[str, Any] = {
        "sources": [
            {
                "name": source.patches.folder.resolve().name,
                "fingerprint": source.patches.fingerprint,
                "train": len(source.train),
                "validation": len(source.validation),
            }
            for source in opened
        ],
        "options": asdict(options),
        "seed": seed,
        # Without the seconds: the same request gives the same file.
        **{
            name: None if record is None else {key: value for key, value in asdict(record).items() if key != "seconds"}
            for name, record in (("pooling", learnt.pooling), ("projection", learnt.projection))
        },
    }
    learnt.model.provenance.update(provenance)
    save_model(out, learnt.model)
    if work is None:
        shutil.rmtree(folder / RING_DISTANCES, ignore_errors=True)
    described = LearntDescriptor(learnt.model)
    seconds = perf_counter() - began
    pooled = learnt.model.base_dim
    told = {
        "descriptor": str(out),
        "name": described.name,
        "fingerprint": described.fingerprint,
        "pooled_dim": pooled,
        "dim": described.dim,
        "rings": final.rings,
        "validation": {"fpr95": final.fpr95},
        "objective": [record.objective for record in (learnt.pooling, learnt.projection) if record is not None],
        "models": str(folder / TABLE),
        "tried": len(learnt.tried),
        "seconds": round(seconds, 3),
    }
    if json:
        print_json(told)
        return
    if learnt.pooling is not None:
        say(
            f"pooling      {learnt.pooling.rings} rings, {learnt.pooling.dim} dimensions, "
            f"{100 * learnt.pooling.fpr95:.2f}% false positives at 95% recall on validation pairs"
        )
    if learnt.projection is not None:
        say(
            f"projection   {pooled} to {learnt.projection.dim} dimensions, "
            f"{100 * learnt.projection.fpr95:.2f}% false positives"
        )
    say(f"{out}: {described.name}, {len(learnt.tried)} models tried in {seconds:.0f} s, listed in {folder / TABLE}")
