"""Options of `cairn learn descriptor`: in groups, and which of them go together."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from index.errors import CairnError
from retrieval.commands.options import Seed, Workers
from retrieval.commands.panels import DATA, MODEL, OUTPUT, RUNNING, TUNING

if TYPE_CHECKING:
    from retrieval.descriptors.learnt import Pooling
    from retrieval.descriptors.pooling import ChannelOptions


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

    @property
    def given(self) -> bool:
        """Whether one is asked for."""
        return bool(self.pairs) or self.augment is not None


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

    @property
    def given(self) -> bool:
        """Whether one is asked for."""
        asked = bool(self.geometry or self.share) or self.rounds != 2 or not self.judge
        return asked or self.report is not None or self.photos is not None


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
            help="Step of the candidate regions' radius and width, samples of 31.",
            min=0.25,
            max=15,
        ),
    ] = 0.5

    @property
    def channels(self) -> dict[str, Any]:
        """Those of pooled gradients that are asked for, by their name in `ChannelOptions`."""
        asked = {"smoothing": self.smoothing, "quantile": self.quantile, "power": self.power}
        return {name: value for name, value in asked.items() if value is not None}


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


@dataclass(frozen=True)
class Settled:
    """What follows from options together."""

    stage: str
    base: str
    dim: int  # of the projected descriptor, at most
    norm: str  # of the metric
    pooling: "Pooling | None"  # regions to be projected
    channels: "ChannelOptions"  # how patches become channels


def settle(
    model: ModelOptions, tuning: TuningOptions, dim: int, channels: "ChannelOptions", *, whitens: bool = True
) -> Settled:
    """Settle what is left open, given the usual dimensions and channels, and whether a whitening is what is usual.

    Raises
    ------
    CairnError
        Options do not go together, or the file of pooling regions has none.
    """
    from retrieval.descriptors.learnt import load_model

    dim = model.dim or dim
    pooled = model.base == "pooled" or model.max_pooled_dim != ModelOptions.max_pooled_dim
    convex = pooled or bool(model.norm or model.pooling) or tuning != TuningOptions()
    stage = model.stage or ("whitening" if whitens and not convex else "both")
    base = model.base or ("rootsift" if stage == "whitening" else "pooled")
    if stage == "whitening" and model.norm:
        raise CairnError("--norm is of projections that are learnt step by step: a whitening takes none.")
    if tuning.quantile is not None and not 0 < tuning.quantile <= 1:
        raise CairnError(f"The quantile must lie above 0 and not above 1, and is {tuning.quantile}.")
    if tuning.power is not None and not 0.01 <= tuning.power <= 1:
        raise CairnError(f"The power must lie between 0.01 and 1, and is {tuning.power}.")
    if base != "pooled" and tuning.channels:
        raise CairnError(f"--smoothing, --quantile and --power are of pooled gradients: the base {base} takes none.")
    if model.norm == "frobenius" and base != "pooled" and dim < 128:
        raise CairnError("The Frobenius norm keeps the 128 dimensions: ask for --dim 128, or for the nuclear norm.")
    pooling = None
    if model.pooling is not None:
        if stage != "projection" or base != "pooled":
            raise CairnError("--pooling goes with --stage projection and the base pooled: regions are not learnt then.")
        if tuning.channels:
            raise CairnError("--smoothing, --quantile and --power are those of the --pooling file: take them away.")
        pooling = load_model(model.pooling).pooling
        if pooling is None:
            raise CairnError(f"{model.pooling} has no pooling regions: name a descriptor file of the base pooled.")
    norm = model.norm or ("frobenius" if base != "pooled" and dim >= 128 else "nuclear")
    return Settled(
        stage,
        base,
        dim,
        norm,
        pooling,
        pooling.channels if pooling is not None else replace(channels, **tuning.channels),
    )
