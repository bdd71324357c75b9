"""Learn descriptors made of building blocks: the three pipelines of Brown11 (figure 3)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, save_json
from index.errors import CairnError
from index.progress import Progress, silent
from learning.blocks.embedding import Moments, learn_embedding
from learning.blocks.pairs import BlockPairs, load_pairs, pairs_of_each
from learning.blocks.powell import PowellOptions, Trial, Trials, best_of, maximise_area
from learning.codes.moments import with_moments
from learning.patches.sources import PatchFolder
from retrieval.descriptors.blocks.descriptor import (
    BEST,
    EMBEDDINGS,
    VERSION,
    Blocks,
    block_parameters,
    can_be_levels,
    named_blocks,
)
from retrieval.descriptors.blocks.parameters import REFERENCE
from retrieval.descriptors.blocks.regions import is_grid
from retrieval.descriptors.learnt import LearntModel

TRIALS, EMBEDDED = "powell.json", "embeddings.json"
"""Files in the folder of a run: all evaluations of the area, and all candidate embeddings."""

_MOMENTS = 20_000  # training patches for the stored mean and covariance of descriptors
_LARGEST_MOMENTS = 1_024  # largest row length for which they are stored
_MOST_DIMENSIONS = 128  # most dimensions to try by default
_FEWEST_DIMENSIONS, _STEP = 8, 4


@dataclass(frozen=True)
class Preset:
    """A combination chosen by Brown11 (section VI.A), or the best of its kind (table V)."""

    blocks: str
    embedding: str
    dim: int | None


PRESETS = {
    "parametric": Preset("T3h-S4-25", "none", None),
    "non-parametric": Preset("T3h", "lpp", 32),
    "composite": Preset("T3h-S4-25", "pca", 29),
    "composite-polar": Preset("T3j-S2-17", "pca", 36),
    **{name: Preset(name, "none", None) for name in BEST},
}
"""Presets by name; the four parametric ones of table I have the name of their blocks."""


@dataclass(frozen=True)
class BlockOptions:
    """Options of learning."""

    blocks: str = "T3h-S4-25"  # T- and S-block, see blocks.is_blocks
    embedding: str = "pca"  # E-block, one of blocks.EMBEDDINGS
    dim: int | None = None  # of the E-block; None: the number with the least validation error
    powell: bool = True  # learn the parameters of the blocks; else use the initial ones
    patch_size: int = REFERENCE  # samples along a patch's side
    powell_pairs: int = 10_000  # most pairs for computing the area (the paper: 10,000 to 500,000); 0: all
    alphas: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.3)  # α of power regularisation, chosen on validation pairs
    # Subtract the mean from the training data of an E-block, and from samples on a grid; False: x as in equations 2 to
    # 9.
    centre: bool = True
    bits: int = 0  # bits of each stored entry, without an E-block; 0: a real number
    search: PowellOptions = field(default_factory=PowellOptions)
    seed: int = 0

    def __post_init__(self) -> None:
        blocks = named_blocks(self.blocks, self.patch_size)
        if self.embedding not in EMBEDDINGS:
            raise CairnError(f"There is no embedding {self.embedding!r}; choose one of {', '.join(EMBEDDINGS)}.")
        if self.dim is not None and self.embedding == "none":
            raise CairnError(f"{self.blocks} has {blocks.pooled_dim} dimensions: for fewer, choose an embedding.")
        if self.dim is not None and not 1 <= self.dim <= blocks.pooled_dim:
            raise CairnError(f"{self.blocks} has {blocks.pooled_dim} dimensions to embed: ask for 1 to as many.")
        if self.search.evaluations < 1:
            raise CairnError("Parameters are learnt by 1 evaluation at least.")
        if not self.alphas or not all(0 <= alpha < 1 for alpha in self.alphas):
            raise CairnError("The part of the power that is taken for noise lies between 0 and 1.")
        if not 0 <= self.bits <= 8 or (self.bits and (self.embedding != "none" or not can_be_levels(blocks))):
            raise CairnError(
                "Entries are kept in 1 to 8 bits where they are pooled by an S-block, are not negative and are not "
                "embedded: of an embedded descriptor make a code with {cairn compress}."
            )


@dataclass(frozen=True)
class EmbeddingRecord:
    """One candidate embedding."""

    embedding: str
    alpha: float
    dim: int
    fpr95: float  # on the validation pairs


@dataclass(frozen=True)
class LearntBlocks:
    """A descriptor made of blocks, and the candidates it was chosen from."""

    model: LearntModel
    trials: list[Trial]  # of Powell's method, on the training pairs; the first is the start
    embeddings: list[EmbeddingRecord]
    before: float  # false positives at 95% recall on the validation pairs, with the initial parameters
    pooled: float  # … with the learnt ones, before the E-block
    fpr95: float  # … of the final descriptor
    seconds_per_trial: float  # 0 if nothing was computed in this run

    @property
    def worse(self) -> bool:
        """Whether the learnt parameters do worse on validation pairs than the initial ones."""
        return bool(self.trials) and self.pooled > self.before


def learn_blocks(
    sources: Sequence[PatchFolder],
    work: Path,
    options: BlockOptions,
    *,
    workers: int = 1,
    progress: Progress = silent,
) -> LearntBlocks:
    """Learn a descriptor made of building blocks. With an S-block: its parameters, and those of G-, T- and N-block, by
    Powell's method (pipeline 1), then an E-block on its rows, if any (pipeline 3). With a T-block on a grid: an E-block
    on the samples (pipeline 2), after the G-block's parameters, if they are to be learnt. Rows are centred and
    normalised before and after the projection, which the paper does not specify. Learnt parameters are those of the
    largest area on training pairs, even if they do worse on validation pairs: `LearntBlocks.worse`.
    """
    if options.powell:
        pairs_of_each(options.powell_pairs, len(sources))  # before any work
    work.mkdir(parents=True, exist_ok=True)
    size = options.patch_size
    blocks = named_blocks(options.blocks, size)
    validation = load_pairs(sources, "validation", size)
    before = validation.error(blocks.normalised(validation.pooled(blocks, workers)))
    trials: list[Trial] = []
    seconds = 0.0
    if options.powell:
        pairs = load_pairs(
            sources, "train", size, limit=options.powell_pairs, seed=options.seed, progress=partial(progress, "read")
        )
        trials, seconds = _search(blocks, pairs, work, options, workers, progress)
        blocks = blocks.with_parameters(best_of(trials).parameters)
    train = load_pairs(sources, "train", size, progress=partial(progress, "read"))
    progress("embed", 0, 1)
    rows, held_out = (blocks.normalised(pairs.pooled(blocks, workers)) for pairs in (train, validation))
    pooled = error = validation.error(held_out)
    embeddings: list[EmbeddingRecord] = []
    if options.embedding != "none":
        blocks, embeddings = _embed(blocks, rows, train, held_out, validation, options)
        save_json(work / EMBEDDED, embeddings)
        error = min(record.fpr95 for record in embeddings)
        rows = blocks.finished(blocks.projected(rows))
    elif options.bits:
        blocks = replace(blocks, bits=options.bits)
        error = validation.error(blocks.levels(held_out))
        rows = blocks.levels(rows)
    progress("embed", 1, 1)
    model = LearntModel("blocks", base_model=blocks)
    if blocks.dim <= _LARGEST_MOMENTS:
        sample = np.random.default_rng(options.seed).permutation(len(rows))[:_MOMENTS]
        model = with_moments(model, rows[np.sort(sample)])
    return LearntBlocks(model, trials, embeddings, before, pooled, error, seconds)


def _search(
    blocks: Blocks, pairs: BlockPairs, work: Path, options: BlockOptions, workers: int, tell: Progress
) -> tuple[list[Trial], float]:
    """Learn the blocks' parameters; return all trials, and the seconds per trial."""
    parameters = block_parameters(blocks.transform, blocks.spatial, blocks.patch_size)
    key = fingerprint(
        {}, {"blocks": blocks.meta(), "parameters": parameters, "pairs": pairs.fingerprint, "version": VERSION}
    )
    computed: list[float] = []
    # Pooled rows, which do not depend on the clipping threshold.
    cached: tuple[dict[str, float], NDArray[np.float32]] | None = None

    def area(values: dict[str, float]) -> float:
        nonlocal cached
        began = perf_counter()
        candidate = blocks.with_parameters(values)
        pooling = {name: value for name, value in values.items() if name != "clip"}
        if cached is None or cached[0] != pooling:
            cached = pooling, pairs.pooled(candidate, workers)
        auc = pairs.area(candidate.normalised(cached[1]))
        computed.append(perf_counter() - began)
        return auc

    trials = maximise_area(
        area, parameters, blocks.parameters, options.search, Trials(work / TRIALS, key), partial(tell, "powell")
    )
    return trials, float(np.mean(computed)) if computed else 0.0


def _embed(
    blocks: Blocks,
    rows: NDArray[np.float32],
    train: BlockPairs,
    held_out: NDArray[np.float32],
    validation: BlockPairs,
    options: BlockOptions,
) -> tuple[Blocks, list[EmbeddingRecord]]:
    """Learn an E-block on rows (U, D) of the training patches; choose α and dimension by the validation patches."""
    # Principal axes are those of the covariance.
    centred = options.centre or options.embedding == "pca"
    moments = Moments.of(rows, train.first, train.second, train.match, centred=centred)
    most = options.dim or min(_MOST_DIMENSIONS, blocks.pooled_dim)
    dims = [options.dim] if options.dim else sorted({*range(_FEWEST_DIMENSIONS, most, _STEP), most})
    records: list[EmbeddingRecord] = []
    candidates = []
    # If rows are not normalised afterwards, the mean changes no distance.
    mean = moments.mean.astype(np.float32) if options.centre and is_grid(blocks.spatial) else None
    for alpha in options.alphas if options.embedding != "pca" else (0.0,):
        projection = learn_embedding(options.embedding, moments, most, alpha)
        candidate = replace(blocks, embedding=options.embedding, projection=projection, mean=mean)
        embedded = candidate.projected(held_out)
        for dim in dims:
            error = validation.error(candidate.finished(embedded[:, :dim]))
            records.append(EmbeddingRecord(options.embedding, alpha, dim, error))
            candidates.append(replace(candidate, projection=projection[:dim]))
    best = min(range(len(records)), key=lambda row: (records[row].fpr95, records[row].dim, records[row].alpha))
    return candidates[best], records


def provenance(sources: Sequence[PatchFolder], options: BlockOptions, learnt: LearntBlocks) -> dict[str, object]:
    """Provenance for the descriptor file; the same for every run."""
    return {
        "sources": [source.describe() for source in sources],
        "options": asdict(options),
        "powell": {
            "evaluations": len(learnt.trials),
            "area": [learnt.trials[0].area, best_of(learnt.trials).area],
        }
        if learnt.trials
        else None,
        "embedding": asdict(min(learnt.embeddings, key=lambda record: (record.fpr95, record.dim, record.alpha)))
        if learnt.embeddings
        else None,
        "validation": {"before": learnt.before, "pooled": learnt.pooled, "fpr95": learnt.fpr95},
    }
