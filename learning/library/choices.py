"""Options of learning a descriptor, and values derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from index.attributes import some_of
from index.errors import CairnError
from index.options.declaration import Option, option_of
from index.options.panels import DATA, MODEL, OUTPUT, RUNNING, TUNING
from index.parallel import WORKERS
from retrieval.collection.layout import OPTIONS
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.retrain_options import RetrainOptions

if TYPE_CHECKING:
    from retrieval.descriptors.learnt import Pooling
    from retrieval.descriptors.pooling import ChannelOptions

AS_PUBLISHED = Option(
    "Take all of the paper's choices, where Cairn's own differ; other options take precedence.",
    MODEL,
    flags=("--as-published",),
)


@dataclass(frozen=True)
class ModelChoices:
    """Options of the model; None means the default. See `learning.library.descriptor.learn_descriptor`."""

    stage: Annotated[
        str | None,
        Option(
            "whitening, or pooling, projection or both (default: whitening, unless something is asked for that it has "
            "not, and then both).",
            MODEL,
            metavar="NAME",
        ),
    ] = None
    base: Annotated[
        str | None,
        Option(
            "What is whitened or projected: rootsift, sift, nested (rootSIFT of the patch and of its middle), or "
            "pooled (learnt pooling regions; for projections alone, and their default).",
            MODEL,
            metavar="NAME",
        ),
    ] = None
    dim: Annotated[
        int | None,
        Option(
            "Dimensions of the whitened or projected descriptor, at most (default: 80; 128 of photos without labels).",
            MODEL,
            least=1,
        ),
    ] = None
    max_pooled_dim: Annotated[int, Option("Dimensions of the pooled descriptor, at most.", MODEL, least=8)] = 640
    norm: Annotated[
        str | None,
        Option(
            "Norm of the metric: nuclear lowers the dimension, frobenius keeps it. Nuclear by default; frobenius for "
            "the bases sift and rootsift where --dim is no less than their 128.",
            MODEL,
            metavar="NAME",
        ),
    ] = None
    pooling: Annotated[
        Path | None, Option("Project the pooling regions of this descriptor file (with --stage projection).", MODEL)
    ] = None


@dataclass(frozen=True)
class PatchChoices:
    """Options of labelled patches only."""

    pairs: Annotated[
        int, Option("At most so many training pairs of each source, drawn at random; 0: all.", DATA, least=0)
    ] = 0
    pair_file: Annotated[
        str | None,
        Option(
            "Pair file of each folder to learn from, all of it, such as m50_200000_200000_0.txt; validation pairs then "
            "are others of the largest file (default: the largest, a fifth of it for validation).",
            DATA,
            metavar="NAME",
        ),
    ] = None
    augment: Annotated[
        int | None,
        Option(
            "Copies of each labelled pair, one patch distorted as another view, for whitenings and projections; 0: "
            "none (default: 2).",
            DATA,
            least=0,
        ),
    ] = None
    test: Annotated[
        Sequence[Path],
        Option(
            "Folder of labelled patches that all models are measured on in the end, for the report, next to the error "
            "on validation pairs; may be repeated. No model is chosen by it.",
            OUTPUT,
        ),
    ] = ()


@dataclass(frozen=True)
class PhotoChoices:
    """Options of photos without labels only."""

    geometry: Annotated[
        str | None,
        Option(
            "What a collection is learnt from: views (photos, and views of them that are rendered), homography (photos "
            "that show the same), or both (default: views; homography for pooling and projections).",
            DATA,
            metavar="NAME",
        ),
    ] = None
    share: Annotated[
        Sequence[float],
        Option(
            "Share of the mined features to learn from, those that match best, K of the paper; give several to choose "
            "by validation (default: 0.8, 0.7, 0.6 and 0.5).",
            DATA,
        ),
    ] = ()
    rounds: Annotated[
        int, Option("Rounds of looking for the negatives of mined features that are hardest.", DATA, least=1)
    ] = 2
    samples: Annotated[
        int | None,
        Option(
            "Mined features to learn from, at most, drawn at random; 0: all (default: 12,000 for pooling regions, "
            "40,000 for projections and whitenings).",
            DATA,
            least=0,
        ),
    ] = None
    negatives: Annotated[
        int | None,
        Option(
            "Negatives of each mined feature that are learnt from, the nearest ones (default: 5 for pooling regions, "
            "10 for projections); one drawn at random is added.",
            DATA,
            least=1,
            most=1000,
        ),
    ] = None
    alternations: Annotated[
        int | None,
        Option(
            "Times, at most, that the descriptor, the match of each mined feature and the share of features are learnt "
            "in turn (default: 3).",
            TUNING,
            least=1,
        ),
    ] = None
    judge: Annotated[
        bool,
        Option(
            "In the end, search a collection with the learnt descriptor and with rootSIFT for what was held out.",
            RUNNING,
            flags=("--judge/--no-judge",),
        ),
    ] = True
    report: Annotated[
        Path | None,
        Option("HTML report with pictures of what was mined and learnt from photos; needs matplotlib.", OUTPUT),
    ] = None
    photos: Annotated[
        Path | None,
        Option("Folder of the photos that a file of matches was mined from, to be shown in the report.", OUTPUT),
    ] = None
    rival: str | None = None  # descriptor to compare searches with; None: rootSIFT

    @property
    def counts(self) -> dict[str, Any]:
        """Requested numbers of features, negatives and turns, by their names in `UnlabelledOptions`."""
        requested = {
            "pooling_features": self.samples,
            "projection_features": self.samples,
            "pooling_negatives": self.negatives,
            "projection_negatives": self.negatives,
            "alternations": self.alternations,
        }
        return {name: value for name, value in requested.items() if value is not None}


@dataclass(frozen=True)
class TuningChoices:
    """Options of describing patches, and of shrinking models."""

    smoothing: Annotated[
        float | None,
        Option(
            "Smoothing of patches: standard deviation, samples of 31 (default: 2; without labels 1.4).",
            TUNING,
            least=0,
            most=31,
        ),
    ] = None
    quantile: Annotated[
        float | None, Option("Quantile of gradients that patches are normalised by (default: 0.7).", TUNING)
    ] = None
    power: Annotated[
        float | None,
        Option("Power that pooled gradients are taken to (default: 0.5); 1: none, as in the paper.", TUNING),
    ] = None
    symmetric: Annotated[
        bool, Option("Select rings of regions, or each region by itself.", TUNING, flags=("--symmetric/--asymmetric",))
    ] = True
    balanced: Annotated[
        bool,
        Option(
            "Charge rings by their part in a distance, or by their weight alone as Simonyan et al. (2014) do.",
            TUNING,
            flags=("--balanced/--unbalanced",),
        ),
    ] = True
    keep: Annotated[
        float,
        Option(
            "Share of the dimensions kept at a time, until they are few enough; 0: all, as in the paper, where the "
            "norm alone makes them few.",
            TUNING,
            least=0,
            most=0.95,
        ),
    ] = 0.5
    pool_step: Annotated[
        float,
        Option("Step of the candidate regions' radius and width, samples of the patch.", TUNING, least=0.25, most=15),
    ] = 0.5
    patch_size: Annotated[
        int | None,
        Option(
            "Samples along the side of the patches that gradients are pooled in (default: 31; 64 as published).",
            MODEL,
            least=15,
            most=96,
        ),
    ] = None
    mu: Annotated[
        Sequence[float],
        Option(
            "Weight of the norm that selects pooling regions; at 1 none is selected; give several to choose by "
            "validation (default: 0.7, 0.5, 0.3 and 0.15; 0.3 and 0.1 without labels).",
            TUNING,
        ),
    ] = ()
    gamma: Annotated[
        Sequence[float],
        Option(
            "Slowness of the steps that select pooling regions; may be repeated (default: 0.03 and 0.1; 0.1 without "
            "labels).",
            TUNING,
        ),
    ] = ()
    projection_mu: Annotated[
        Sequence[float],
        Option(
            "Weight of the norm of projections; with the nuclear one, the larger the fewer dimensions, none at 1; may "
            "be repeated (default: five from 0.002 to 0.0001; 0.03 and 0.01 without labels).",
            TUNING,
        ),
    ] = ()
    projection_gamma: Annotated[
        Sequence[float],
        Option(
            "Slowness of the steps that learn projections; may be repeated (default: 0.03 and 0.1; 1 and 3 without "
            "labels).",
            TUNING,
        ),
    ] = ()

    @property
    def channels(self) -> dict[str, Any]:
        """Requested options of pooled gradients, by their names in `ChannelOptions`."""
        requested = some_of(self, "patch_size", "smoothing", "quantile", "power")
        return {name: value for name, value in requested.items() if value is not None}

    def channels_beside(self, usual: "ChannelOptions") -> "ChannelOptions":
        """The requested options, with defaults for the rest; widths are in samples of the usual patch."""
        channels = replace(usual, **self.channels)
        return replace(channels, smoothing=channels.smoothing * channels.patch_size / usual.patch_size)

    def grid(self, *, projections: bool) -> dict[str, Any]:
        """Requested μ and γ, by their names in `SelectionOptions` and `ProjectionOptions`."""
        mus, gammas = (self.projection_mu, self.projection_gamma) if projections else (self.mu, self.gamma)
        if not all(0 < value < 1e6 for value in (*(mus or ()), *(gammas or ()))):
            raise CairnError("The weights of norms ({--mu}) and the slowness of steps ({--gamma}) must be above 0.")
        requested = {"mus": mus, "gammas": gammas}
        return {name: tuple(dict.fromkeys(values)) for name, values in requested.items() if values}


@dataclass(frozen=True)
class LearningRunOptions:
    """Options of time limit, work folder and random numbers."""

    hours: Annotated[
        float, Option("Begin no further model after these, once one fits; 0: no limit.", RUNNING, least=0)
    ] = 0.0
    work: Annotated[
        Path | None,
        Option(
            "Folder of what is computed on the way, kept, to go on from or to try other settings. By default one "
            "next to the descriptor; only the table of models is kept.",
            RUNNING,
        ),
    ] = None
    workers: Annotated[int, WORKERS] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
    as_published: Annotated[bool, AS_PUBLISHED] = False


@dataclass(frozen=True)
class ImproveOptions:
    """Options of improving the search of a collection."""

    dry_run: Annotated[
        bool,
        Option(
            "Only learn and compare: report how much more would be found, and change nothing.", flags=("--dry-run",)
        ),
    ] = False
    drop_missing: Annotated[bool, option_of(RetrainOptions, "drop_missing")] = False
    workers: Annotated[int, WORKERS] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0


@dataclass(frozen=True, kw_only=True)
class RunChoices(LearningRunOptions):
    """Settings of the run, with the number of processes."""

    folder: Path  # folder of intermediate results
    keeps: bool  # whether to keep all of them
    goes: bool  # whether to keep nothing

    def named(self, name: str) -> str | None:
        """Path of a file in the folder, for reports; None if the folder is temporary."""
        return None if self.goes else str(self.folder / name)


def is_unlabelled(sources: Sequence[Path]) -> bool:
    """Return whether the sources have no labels: a collection or a file of matches."""
    unlabelled = [source for source in sources if source.suffix == ".npz" or (source / OPTIONS).is_file()]
    if unlabelled and len(sources) > 1:
        raise CairnError(
            f"{unlabelled[0]} cannot be learnt from together with something else: index all photos as one collection."
        )
    return bool(unlabelled)


@dataclass(frozen=True)
class ResolvedOptions:
    """Resolved options."""

    stage: str
    base: str
    dim: int  # of the projected descriptor, at most
    norm: str  # of the metric
    pooling: "Pooling | None"  # regions to project
    channels: "ChannelOptions"  # of making channels of patches


def settle(
    model: ModelChoices, tuning: TuningChoices, dim: int, channels: "ChannelOptions", *, whitens: bool = True
) -> ResolvedOptions:
    """Resolve defaults. `dim`, `channels`: usual values; `whitens`: whether a whitening is the default."""
    from retrieval.descriptors.learnt import load_model

    dim = model.dim or dim
    pooled = model.base == "pooled" or model.max_pooled_dim != ModelChoices.max_pooled_dim
    convex = pooled or bool(model.norm or model.pooling) or tuning != TuningChoices()
    stage = model.stage or ("whitening" if whitens and not convex else "both")
    base = model.base or ("rootsift" if stage == "whitening" else "pooled")
    if stage == "whitening" and model.norm:
        raise CairnError("{--norm} is of projections that are learnt step by step: a whitening takes none.")
    if tuning.quantile is not None and not 0 < tuning.quantile <= 1:
        raise CairnError(f"The quantile must lie above 0 and not above 1, and is {tuning.quantile}.")
    if tuning.power is not None and not 0.01 <= tuning.power <= 1:
        raise CairnError(f"The power must lie between 0.01 and 1, and is {tuning.power}.")
    if base != "pooled" and tuning.channels:
        raise CairnError(
            "{--smoothing}, {--quantile}, {--power} and {--patch-size} are of pooled gradients: the base {base} takes "
            "none.",
            base=base,
        )
    if stage not in ("pooling", "both") and (tuning.mu or tuning.gamma):
        raise CairnError(
            "{--mu} and {--gamma} are of pooling regions: for a projection name {--projection-mu} and -gamma."
        )
    if stage not in ("projection", "both") and (tuning.projection_mu or tuning.projection_gamma):
        raise CairnError("{--projection-mu} and {--projection-gamma} are of projections: ask for {--stage} projection.")
    if model.norm == "frobenius" and base != "pooled" and dim < 128:
        raise CairnError("The Frobenius norm keeps the 128 dimensions: ask for {--dim} 128, or for the nuclear norm.")
    pooling = None
    if model.pooling is not None:
        if stage != "projection" or base != "pooled":
            raise CairnError(
                "{--pooling} goes with {--stage} projection and the base pooled: regions are not learnt then."
            )
        if tuning.channels:
            raise CairnError(
                "{--smoothing}, {--quantile}, {--power} and {--patch-size} are those of the {--pooling} file: take "
                "them away."
            )
        pooling = load_model(model.pooling).pooling
        if pooling is None:
            raise CairnError(f"{model.pooling} has no pooling regions: name a descriptor file of the base pooled.")
    norm = model.norm or ("frobenius" if base != "pooled" and dim >= 128 else "nuclear")
    return ResolvedOptions(
        stage,
        base,
        dim,
        norm,
        pooling,
        pooling.channels if pooling is not None else tuning.channels_beside(channels),
    )
