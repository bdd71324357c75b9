"""Options of `cairn learn descriptor`, in groups; what they mean is told in `learning.library.descriptor`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.options import Seed, Workers
from retrieval.commands.panels import DATA, MODEL, OUTPUT, RUNNING, TUNING


@dataclass(frozen=True)
class ModelOptions:
    """What is learnt."""

    stage: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="whitening, or pooling, projection or both (default: whitening, unless something is asked for that it "
            "has not, and then both).",
        ),
    ] = None
    base: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="What is whitened or projected: rootsift, sift, or pooled (learnt pooling regions; for projections "
            "alone, and their default).",
        ),
    ] = None
    dim: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Dimensions of the whitened or projected descriptor, at most (default: 80; 128 from photos without "
            "labels).",
            min=1,
        ),
    ] = None
    max_pooled_dim: Annotated[
        int, typer.Option(rich_help_panel=MODEL, help="Dimensions of the pooled descriptor, at most.", min=8)
    ] = 640
    norm: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="NAME",
            help="Norm of the metric: nuclear lowers the dimension, frobenius keeps it. Nuclear by default; frobenius "
            "for the bases sift and rootsift where --dim is no less than their 128.",
        ),
    ] = None
    pooling: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL, help="Project the pooling regions of this descriptor file (with --stage projection)."
        ),
    ] = None


@dataclass(frozen=True)
class PatchOptions:
    """What is for labelled patches alone."""

    pairs: Annotated[
        int,
        typer.Option(
            rich_help_panel=DATA, help="At most so many training pairs of each source, drawn at random; 0: all.", min=0
        ),
    ] = 0
    augment: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Copies of each labelled pair, one patch distorted as another view, for whitenings and projections; "
            "0: none (default: 2).",
            min=0,
        ),
    ] = None

    test: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Folder of labelled patches that every model tried is measured on in the end, to be told beside its "
            "error on validation pairs; may be repeated. No model is chosen by it.",
        ),
    ] = None


@dataclass(frozen=True)
class PhotoOptions:
    """What is for photos without labels alone."""

    geometry: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=DATA,
            metavar="NAME",
            help="What a collection is learnt from: views (photos, and views of them that are rendered), homography "
            "(photos that show the same), or both (default: views; homography for pooling and projections).",
        ),
    ] = None
    share: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Share of the mined features to learn from, those that match best, K of the paper; give several to "
            "choose by validation (default: 0.8, 0.7, 0.6 and 0.5).",
        ),
    ] = None
    rounds: Annotated[
        int,
        typer.Option(
            rich_help_panel=DATA, help="Rounds of looking for the negatives of mined features that are hardest.", min=1
        ),
    ] = 2
    samples: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Mined features to learn from, at most, drawn at random; 0: all (default: 12,000 for pooling regions, "
            "40,000 for projections and whitenings).",
            min=0,
        ),
    ] = None
    negatives: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Negatives of each mined feature that are learnt from, the nearest ones (default: 5 for pooling "
            "regions, 10 for projections); one drawn at random is beside them.",
            min=1,
            max=1000,
        ),
    ] = None
    alternations: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Times, at most, that the descriptor, the match of each mined feature and the share of features are "
            "learnt in turn (default: 3).",
            min=1,
        ),
    ] = None
    judge: Annotated[
        bool,
        typer.Option(
            "--judge/--no-judge",
            rich_help_panel=RUNNING,
            help="In the end, search a collection with the learnt descriptor and with rootSIFT for what was held out.",
        ),
    ] = True
    report: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="HTML report with pictures of what was mined and learnt from photos; needs matplotlib.",
        ),
    ] = None
    photos: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Folder of the photos that a file of matches was mined from, to be shown in the report.",
        ),
    ] = None


@dataclass(frozen=True)
class TuningOptions:
    """How patches become descriptors, and how models are made small."""

    smoothing: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Smoothing of patches: standard deviation, samples of 31 (default: 2; without labels 1.4).",
            min=0,
            max=31,
        ),
    ] = None
    quantile: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING, help="Quantile of gradients that patches are normalised by (default: 0.7)."
        ),
    ] = None
    power: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Power that pooled gradients are taken to (default: 0.5); 1: none, as in the paper.",
        ),
    ] = None
    symmetric: Annotated[
        bool,
        typer.Option(
            "--symmetric/--asymmetric",
            rich_help_panel=TUNING,
            help="Select rings of regions, or each region by itself.",
        ),
    ] = True
    balanced: Annotated[
        bool,
        typer.Option(
            "--balanced/--unbalanced",
            rich_help_panel=TUNING,
            help="Charge rings by their part in a distance, or by their weight alone as Simonyan et al. (2014) do.",
        ),
    ] = True
    keep: Annotated[
        float,
        typer.Option(
            rich_help_panel=TUNING,
            help="Share of the dimensions kept at a time, until they are few enough; 0: all, as in the paper, where "
            "the norm alone makes them few.",
            min=0,
            max=0.95,
        ),
    ] = 0.5
    pool_step: Annotated[
        float,
        typer.Option(
            rich_help_panel=TUNING,
            help="Step of the candidate regions' radius and width, samples of the patch.",
            min=0.25,
            max=15,
        ),
    ] = 0.5
    patch_size: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Samples along the side of the patches that gradients are pooled in (default: 31; 64 as published).",
            min=15,
            max=96,
        ),
    ] = None
    mu: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Weight of the norm that selects pooling regions; at 1 none is selected; give several to choose by "
            "validation (default: 0.7, 0.5, 0.3 and 0.15; 0.3 and 0.1 without labels).",
        ),
    ] = None
    gamma: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Slowness of the steps that select pooling regions; may be repeated (default: 0.03 and 0.1; 0.1 "
            "without labels).",
        ),
    ] = None
    projection_mu: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Weight of the norm of projections; with the nuclear one, the larger the fewer dimensions, none at 1; "
            "may be repeated (default: five from 0.002 to 0.0001; 0.03 and 0.01 without labels).",
        ),
    ] = None
    projection_gamma: Annotated[
        list[float] | None,
        typer.Option(
            rich_help_panel=TUNING,
            help="Slowness of the steps that learn projections; may be repeated (default: 0.03 and 0.1; 1 and 3 "
            "without labels).",
        ),
    ] = None


@dataclass(frozen=True)
class RunOptions:
    """How the run goes."""

    hours: Annotated[
        float,
        typer.Option(
            rich_help_panel=RUNNING, help="Begin no further model after these, once one fits; 0: no limit.", min=0
        ),
    ] = 0.0
    work: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=RUNNING,
            help="Folder of what is computed on the way, kept, to go on from or to try other settings. By default one "
            "beside the descriptor, of which the table of models is left.",
        ),
    ] = None
    workers: Workers = 0
    seed: Seed = 0
