"""E-blocks on SIFT: an existing descriptor projected to few dimensions (Brown11 figure 6)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Progress, silent
from learning.blocks.descriptor import EmbeddingRecord
from learning.blocks.embedding import Moments, learn_embedding
from learning.codes.moments import with_moments
from learning.measures.roc import fpr95
from learning.patches.sources import PatchFolder, describe_patches, patches_used
from retrieval.descriptors.blocks.descriptor import EMBEDDINGS
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel

EMBEDDED_BASES = ("sift", "rootsift")
"""Descriptors that can be embedded; for building blocks see `blocks.descriptor`."""

_FEWEST = 4  # dimensions to try
_MOMENTS = 20_000  # training patches for the stored mean and covariance of descriptors
_PAIRS = 8_192  # measured at a time


@dataclass(frozen=True)
class EmbeddingOptions:
    """Options of learning."""

    base: str = "sift"  # one of EMBEDDED_BASES
    embedding: str = "pca"  # one of blocks.EMBEDDINGS, but none
    dim: int | None = None  # None: the number with the least validation error
    alphas: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)  # of power regularisation, chosen likewise
    centre: bool = True  # see `Moments.of`
    seed: int = 0
    footprint: float = 1.0  # described share of a patch's side

    def __post_init__(self) -> None:
        known = [name for name in EMBEDDINGS if name != "none"]
        if self.base not in EMBEDDED_BASES:
            raise CairnError(f"There is no base {self.base!r}; choose one of {', '.join(EMBEDDED_BASES)}.")
        if self.embedding not in known:
            raise CairnError(f"There is no embedding {self.embedding!r}; choose one of {', '.join(known)}.")
        if self.dim is not None and not 1 <= self.dim <= 128:
            raise CairnError(f"{self.base} has 128 dimensions to embed: ask for 1 to as many.")
        if not self.alphas or not all(0 <= alpha < 1 for alpha in self.alphas):
            raise CairnError("The part of the power that is taken for noise lies between 0 and 1.")


@dataclass(frozen=True)
class EmbeddedBase:
    """A projected descriptor, and the candidates it was chosen from."""

    model: LearntModel
    tried: list[EmbeddingRecord]
    chosen: EmbeddingRecord
    before: float  # false positives at 95% recall of the base on the validation pairs


def learn_base_embedding(
    sources: Sequence[PatchFolder], options: EmbeddingOptions, progress: Progress = silent
) -> EmbeddedBase:
    """Learn an E-block on the rows of SIFT or rootSIFT; α and dimension are chosen by the validation pairs."""
    plain = LearntDescriptor(LearntModel(options.base))
    rows, first, second, match = _describe_split(sources, "train", plain, options.footprint, progress)
    held = _describe_split(sources, "validation", plain, options.footprint, progress)
    centred = options.centre or options.embedding == "pca"
    moments = Moments.of(rows, first, second, match, centred=centred)
    most = options.dim or plain.dim
    dims = [options.dim] if options.dim else list(range(_FEWEST, most + 1))
    alphas = options.alphas if options.embedding != "pca" else (0.0,)
    records: list[EmbeddingRecord] = []
    projections = []
    for number, alpha in enumerate(alphas):
        progress("embed", number, len(alphas))
        projections.append(learn_embedding(options.embedding, moments, most, alpha))
        errors = _errors(*held, projections[-1], dims)
        records += [
            EmbeddingRecord(options.embedding, alpha, dim, error) for dim, error in zip(dims, errors, strict=True)
        ]
    progress("embed", len(alphas), len(alphas))
    chosen = min(records, key=lambda record: (record.fpr95, record.dim, record.alpha))
    projection = projections[alphas.index(chosen.alpha)][: chosen.dim]
    model = LearntModel(options.base, projection=np.ascontiguousarray(projection))
    some = np.sort(np.random.default_rng(options.seed).permutation(len(rows))[:_MOMENTS])
    model = with_moments(model, LearntDescriptor(model).projected(rows[some]))
    model.provenance.update(_provenance(sources, options, chosen))
    before = _errors(*held, np.eye(plain.dim, dtype=np.float32), [plain.dim])[0]
    return EmbeddedBase(model, records, chosen, before)


def _describe_split(
    sources: Sequence[PatchFolder], split: str, descriptor: LearntDescriptor, footprint: float, progress: Progress
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of all patches that the pairs of a split name, and these pairs."""
    used, first, second, match = patches_used([getattr(source, split) for source in sources])
    describe, size, rows = descriptor.base_rows, descriptor.patch_size, []
    for number, (source, numbers) in enumerate(zip(sources, used, strict=True)):
        progress("describe", number, len(sources))
        rows.append(describe_patches(source.patches, numbers, describe, size, footprint=footprint))
    return np.concatenate(rows), first, second, match


def _errors(
    rows: NDArray[np.float32],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    match: NDArray[np.bool_],
    projection: NDArray[np.float32],
    dims: Sequence[int],
) -> list[float]:
    """False positives at 95% recall of the first entries of projected rows, for each number of them."""
    with one_thread():
        embedded = rows @ projection.T
    distances = np.empty((len(dims), len(match)), np.float32)
    for start in range(0, len(match), _PAIRS):
        part = slice(start, start + _PAIRS)
        squared = np.square(embedded[first[part]] - embedded[second[part]]).cumsum(axis=1)
        distances[:, part] = squared[:, np.array(dims) - 1].T
    return [fpr95(row, match) for row in distances]


def _provenance(sources: Sequence[PatchFolder], options: EmbeddingOptions, chosen: EmbeddingRecord) -> dict[str, Any]:
    return {
        "sources": [source.describe() for source in sources],
        "options": asdict(options),
        "embedding": asdict(chosen),
        "validation": {"fpr95": chosen.fpr95},
    }
