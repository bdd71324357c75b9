"""What may be said of a descriptor to be learnt, and what follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from retrieval.collection.layout import OPTIONS

if TYPE_CHECKING:
    from retrieval.descriptors.learnt import Pooling
    from retrieval.descriptors.pooling import ChannelOptions


@dataclass(frozen=True)
class ModelChoices:
    """What is learnt; None is left open. See `learning.library.descriptor.learn_descriptor`."""

    stage: str | None = None
    base: str | None = None
    dim: int | None = None
    max_pooled_dim: int = 640
    norm: str | None = None
    pooling: Path | None = None


@dataclass(frozen=True)
class PatchChoices:
    """What is for labelled patches alone."""

    pairs: int = 0
    augment: int | None = None
    test: Sequence[Path] = ()


@dataclass(frozen=True)
class PhotoChoices:
    """What is for photos without labels alone."""

    geometry: str | None = None
    share: Sequence[float] = ()
    rounds: int = 2
    samples: int | None = None
    negatives: int | None = None
    alternations: int | None = None
    judge: bool = True
    report: Path | None = None
    photos: Path | None = None
    beside: str | None = None  # descriptor that searches are compared with; None: rootSIFT

    @property
    def counts(self) -> dict[str, Any]:
        """How many features, negatives and turns are asked for, by their names in `UnlabelledOptions`."""
        asked = {
            "pooling_features": self.samples,
            "projection_features": self.samples,
            "pooling_negatives": self.negatives,
            "projection_negatives": self.negatives,
            "alternations": self.alternations,
        }
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True)
class TuningChoices:
    """How patches become descriptors, and how models are made small."""

    smoothing: float | None = None
    quantile: float | None = None
    power: float | None = None
    symmetric: bool = True
    balanced: bool = True
    keep: float = 0.5
    pool_step: float = 0.5
    patch_size: int | None = None
    mu: Sequence[float] = ()
    gamma: Sequence[float] = ()
    projection_mu: Sequence[float] = ()
    projection_gamma: Sequence[float] = ()

    @property
    def channels(self) -> dict[str, Any]:
        """Those of pooled gradients that are asked for, by their name in `ChannelOptions`."""
        asked = {
            "patch_size": self.patch_size,
            "smoothing": self.smoothing,
            "quantile": self.quantile,
            "power": self.power,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def channels_beside(self, usual: "ChannelOptions") -> "ChannelOptions":
        """What is asked for, and the usual for the rest; widths are told in samples of the usual patch."""
        found = replace(usual, **self.channels)
        return replace(found, smoothing=found.smoothing * found.patch_size / usual.patch_size)

    def grid(self, *, projections: bool) -> dict[str, Any]:
        """μ and γ that are asked for, by their names in `SelectionOptions` and `ProjectionOptions`.

        Raises
        ------
        CairnError
            One is not positive.
        """
        mus, gammas = (self.projection_mu, self.projection_gamma) if projections else (self.mu, self.gamma)
        if not all(0 < value < 1e6 for value in (*(mus or ()), *(gammas or ()))):
            raise CairnError("The weights of norms (--mu) and the slowness of steps (--gamma) must be above 0.")
        asked = {"mus": mus, "gammas": gammas}
        return {name: tuple(dict.fromkeys(values)) for name, values in asked.items() if values}


@dataclass(frozen=True)
class RunChoices:
    """How the run goes."""

    folder: Path  # of what is computed on the way
    keeps: bool  # whether all of that is kept
    goes: bool  # whether none of it is
    hours: float = 0.0
    workers: int = 1
    seed: int = 0
    as_published: bool = False

    def named(self, name: str) -> str | None:
        """Path of a file of the folder, to be told of; None where it goes."""
        return None if self.goes else str(self.folder / name)


def is_unlabelled(sources: Sequence[Path]) -> bool:
    """Say whether there are no labels in what is to be learnt from: it is a collection or a file of matches.

    Raises
    ------
    CairnError
        It is, and something else is there too.
    """
    found = [source for source in sources if source.suffix == ".npz" or (source / OPTIONS).is_file()]
    if found and len(sources) > 1:
        raise CairnError(
            f"{found[0]} cannot be learnt from together with something else: index all photos as one collection."
        )
    return bool(found)


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
    model: ModelChoices, tuning: TuningChoices, dim: int, channels: "ChannelOptions", *, whitens: bool = True
) -> Settled:
    """Settle what is left open, given the usual dimensions and channels, and whether a whitening is what is usual.

    Raises
    ------
    CairnError
        Options do not go together, or the file of pooling regions has none.
    """
    from retrieval.descriptors.learnt import load_model

    dim = model.dim or dim
    pooled = model.base == "pooled" or model.max_pooled_dim != ModelChoices.max_pooled_dim
    convex = pooled or bool(model.norm or model.pooling) or tuning != TuningChoices()
    stage = model.stage or ("whitening" if whitens and not convex else "both")
    base = model.base or ("rootsift" if stage == "whitening" else "pooled")
    if stage == "whitening" and model.norm:
        raise CairnError("--norm is of projections that are learnt step by step: a whitening takes none.")
    if tuning.quantile is not None and not 0 < tuning.quantile <= 1:
        raise CairnError(f"The quantile must lie above 0 and not above 1, and is {tuning.quantile}.")
    if tuning.power is not None and not 0.01 <= tuning.power <= 1:
        raise CairnError(f"The power must lie between 0.01 and 1, and is {tuning.power}.")
    if base != "pooled" and tuning.channels:
        raise CairnError(
            f"--smoothing, --quantile, --power and --patch-size are of pooled gradients: the base {base} takes none."
        )
    if stage not in ("pooling", "both") and (tuning.mu or tuning.gamma):
        raise CairnError("--mu and --gamma are of pooling regions: for a projection name --projection-mu and -gamma.")
    if stage not in ("projection", "both") and (tuning.projection_mu or tuning.projection_gamma):
        raise CairnError("--projection-mu and --projection-gamma are of projections: ask for --stage projection.")
    if model.norm == "frobenius" and base != "pooled" and dim < 128:
        raise CairnError("The Frobenius norm keeps the 128 dimensions: ask for --dim 128, or for the nuclear norm.")
    pooling = None
    if model.pooling is not None:
        if stage != "projection" or base != "pooled":
            raise CairnError("--pooling goes with --stage projection and the base pooled: regions are not learnt then.")
        if tuning.channels:
            raise CairnError(
                "--smoothing, --quantile, --power and --patch-size are those of the --pooling file: take them away."
            )
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
        pooling.channels if pooling is not None else tuning.channels_beside(channels),
    )
