"""Options of labelled patches, of the methods of Brown11 and Trzcinski12, and of codes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from index.options.declaration import Option, option_of
from index.options.panels import CORRESPONDENCES, MODEL, REGIONS, RUNNING, TUNING
from index.parallel import WORKERS
from learning.building.options import DetectionOptions, MatchRule, SplitOptions
from learning.library.choices import AS_PUBLISHED, PatchChoices
from retrieval.collection.options import CollectionOptions


@dataclass(frozen=True)
class BoostedChoices:
    """Options of boosting; None means the default. See `learning.library.boosted.learn_boosted`."""

    kind: Annotated[
        str,
        Option(
            "bgm: weak learners of gradients, weighted; ssc: the same of grey values; lbgm: bgm projected to "
            "--dim by a learnt similarity; lbgm-diag: by one that only weights; bgm-pca: by principal axes.",
            MODEL,
            metavar="NAME",
        ),
    ] = "lbgm"
    learners: Annotated[int | None, Option("Weak learners (default: 512, or those of --from).", MODEL, least=1)] = None
    dim: Annotated[
        int | None, Option("Dimensions of lbgm, lbgm-diag or bgm-pca, at most (default: 64).", MODEL, least=1)
    ] = None
    start: Annotated[
        Path | None,
        Option(
            "Go on from the weak learners of this descriptor file, rather than look for them.",
            MODEL,
            flags=("--from",),
        ),
    ] = None
    pairs: Annotated[int, option_of(PatchChoices, "pairs")] = 0
    pair_file: Annotated[str | None, option_of(PatchChoices, "pair_file")] = None
    candidates: Annotated[
        int | None,
        Option(
            "Boxes and orientations that weak learners are chosen from, drawn at a time (default: 8,192, or as "
            "many as fit into memory).",
            TUNING,
            least=1,
        ),
    ] = None
    draws: Annotated[
        int, Option("How often candidates are drawn; each draw chooses as many learners.", TUNING, least=1)
    ] = 4
    orientations: Annotated[
        int | None, Option("Orientations of the gradient, an even number (default: 24).", TUNING, least=2, most=64)
    ] = None
    patch_size: Annotated[
        int | None,
        Option("Samples along a patch's side (default: 31; 64 as published).", MODEL, least=15, most=72),
    ] = None
    smoothing: Annotated[
        float | None,
        Option("Smoothing of patches: standard deviation, samples of 31 (default: 2).", TUNING, least=0, most=31),
    ] = None
    floor: Annotated[
        float | None,
        Option(
            "Energy that each sample adds to that of all orientations, in units of the patch's mean gradient "
            "(default: 3): faint gradients count for little then. 0.001: hardly any, as in the paper.",
            TUNING,
        ),
    ] = None
    offset: Annotated[
        bool,
        Option(
            "Boost, and learn the similarity, with an added constant, or without, as in the paper.",
            TUNING,
            flags=("--offset/--no-offset",),
        ),
    ] = True
    positive: Annotated[
        bool,
        Option(
            "Keep the similarity positive semi-definite while it is learnt, or drop what is negative in the end: no "
            "distance could tell it.",
            TUNING,
            flags=("--positive/--any-sign",),
        ),
    ] = True
    form: Annotated[
        str,
        Option(
            "What the similarity is learnt from: distance, as descriptors are compared, or inner, inner products "
            "as in the paper.",
            TUNING,
            metavar="NAME",
        ),
    ] = "distance"
    comparison: Annotated[
        str | None,
        Option(
            "How descriptors of lbgm and lbgm-diag are compared: distance (default), or inner, a signed inner "
            "product as in the paper (with --form inner and --keep eigenvalues; default with --as-published): cairn "
            "evaluate patches measures such a one, but no collection can be searched by it.",
            MODEL,
            metavar="NAME",
        ),
    ] = None
    keep: Annotated[
        str,
        Option(
            "What --dim dimensions keep: variance, what differs most among patches, or eigenvalues, the "
            "similarity's largest as in the paper.",
            TUNING,
            metavar="NAME",
        ),
    ] = "variance"
    scale: Annotated[
        float, Option("What the weak learners' weights are taken times to begin with; the paper: 1.", TUNING)
    ] = 0.3
    step: Annotated[
        float,
        Option("Step of the descent, a share of the mean weight; inner needs 5 over the learners at most.", TUNING),
    ] = 0.02
    epochs: Annotated[int, Option("Epochs of learning the similarity, at most.", TUNING, least=0)] = 60
    workers: Annotated[int, WORKERS] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
    as_published: Annotated[bool, AS_PUBLISHED] = False


@dataclass(frozen=True)
class BlockChoices:
    """Options of learning blocks; None means the default. See `learning.library.blocks.learn_blocks`."""

    blocks: Annotated[
        str | None,
        Option(
            "T- and S-block, as T3h-S4-25 (default) or any other two. T: T1a, T1b or T1c (4, 8 or 16 directions "
            "of the gradient), T2a or T2b (rectified gradients), T3g, T3h, T3i or T3j (steerable filters), T4 "
            "(differences of Gaussians), pixels or gradients. S: S1-16 (SIFT), S2-3, S2-9 or S2-17 (polar), S3-9, "
            "S3-16 or S3-25 (Gaussians on a square), S4-17 or S4-25 (on circles). A T-block alone, as T3h, is sampled "
            "on a grid of 10 x 10 and left to the embedding; T3h-grid-8: of 8 x 8, from 2 to 32.",
            MODEL,
            metavar="NAME",
        ),
    ] = None
    embedding: Annotated[
        str | None,
        Option(
            "E-block: none (default), pca, lpp, olpp, lde, olde, glde or golde (o: orthogonal).", MODEL, metavar="NAME"
        ),
    ] = None
    dim: Annotated[
        int | None,
        Option("Dimensions of the embedding (default: as many as do best on validation pairs).", MODEL, least=1),
    ] = None
    preset: Annotated[
        str | None,
        Option(
            "One of the paper's best instead of --blocks, --embedding and --dim: T1c-S2-17, T3h-S4-25, T3h-S2-17 "
            "or T3j-S2-17 (parametric is T3h-S4-25), non-parametric (T3h, lpp, 32 dimensions), composite (T3h-S4-25, "
            "pca, 29) or composite-polar (T3j-S2-17, pca, 36).",
            MODEL,
            metavar="NAME",
        ),
    ] = None
    powell: Annotated[
        bool,
        Option(
            "Learn the blocks' parameters, or take those learning begins with.", TUNING, flags=("--powell/--no-powell",)
        ),
    ] = True
    evaluations: Annotated[int | None, Option("Evaluations of the area, at most (default: 400).", TUNING, least=1)] = (
        None
    )
    powell_pairs: Annotated[
        int | None,
        Option("Training pairs that the area is computed on, at most; 0: all (default: 10000).", TUNING, least=0),
    ] = None
    alpha: Annotated[
        Sequence[float],
        Option(
            "Part of the power of matches' differences that is taken for noise; give several to choose by "
            "validation (default: 0.02, 0.05, 0.1, 0.2 and 0.3).",
            TUNING,
        ),
    ] = ()
    centre: Annotated[
        bool,
        Option(
            "Take the mean off what an embedding is learnt from, and off samples on a grid before they are "
            "projected, or leave it, as the paper's equations do.",
            TUNING,
            flags=("--centre/--no-centre",),
        ),
    ] = True
    bits: Annotated[
        int,
        Option("Bits that each dimension is kept in, without an embedding; 0: a real number.", MODEL, least=0, most=8),
    ] = 0
    patch_size: Annotated[
        int,
        Option(
            "Samples along a patch's side: 64, as in the paper. All lengths go by it but those of the steerable "
            "filters (T3), which at 32 are twice as wide, and do worse.",
            MODEL,
            least=8,
            most=256,
        ),
    ] = 64
    pairs: Annotated[int, option_of(PatchChoices, "pairs")] = 0
    pair_file: Annotated[str | None, option_of(PatchChoices, "pair_file")] = None
    work: Annotated[
        Path | None,
        Option("Folder of what is computed on the way, to go on from. By default one next to the file.", RUNNING),
    ] = None
    workers: Annotated[int, WORKERS] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
    as_published: Annotated[bool, AS_PUBLISHED] = False


@dataclass(frozen=True)
class EmbeddingChoices:
    """Options of projecting SIFT; None means the default. See `learning.library.embedding.learn_embedding`."""

    base: Annotated[str, Option("What is projected: sift or rootsift.", MODEL, metavar="NAME")] = "sift"
    embedding: Annotated[
        str, Option("pca, lpp, olpp, lde, olde, glde or golde (o: orthogonal).", MODEL, metavar="NAME")
    ] = "pca"
    dim: Annotated[
        int | None, Option("Dimensions (default: as many as do best on validation pairs).", MODEL, least=1, most=128)
    ] = None
    alpha: Annotated[
        Sequence[float],
        Option(
            "Part of the power of matches' differences that is taken for noise; give several to choose by "
            "validation (default: 0, 0.02, 0.05, 0.1, 0.2 and 0.3; none with pca).",
            TUNING,
        ),
    ] = ()
    centre: Annotated[
        bool,
        Option(
            "Take the mean off what an embedding is learnt from, or leave it, as the paper's equations do.",
            TUNING,
            flags=("--centre/--no-centre",),
        ),
    ] = True
    footprint: Annotated[
        float,
        Option(
            "Share of a patch's side, about its middle, that is described (see cairn evaluate footprint); measure with "
            "the same --footprint.",
            MODEL,
            least=0.1,
            most=1,
        ),
    ] = 1.0
    pairs: Annotated[int, option_of(PatchChoices, "pairs")] = 0
    pair_file: Annotated[str | None, option_of(PatchChoices, "pair_file")] = None
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
    as_published: Annotated[bool, AS_PUBLISHED] = False


@dataclass(frozen=True)
class PatchSetChoices:
    """Options of labelled patches. See `learning.library.patch_sets.build_patches`."""

    photos: Annotated[Path | None, Option("Folder of the photos that the .npz names.", CORRESPONDENCES)] = None
    images: Annotated[
        str,
        Option("Which of the photos that the .npz names: 'castle_*'.", CORRESPONDENCES, metavar="PATTERN"),
    ] = "*"
    min_angle: Annotated[
        float,
        Option(
            "Smallest angle between the viewing directions of a match of the .npz, degrees.",
            CORRESPONDENCES,
            metavar="DEGREES",
            least=0,
        ),
    ] = 0.0
    detection: DetectionOptions = field(default_factory=DetectionOptions)
    rule: MatchRule = field(default_factory=MatchRule)
    jitter: Annotated[
        float | None,
        Option(
            "Of sequences: detect in the first image alone, and miss its points in the others by chance, by this "
            "part of what a match allows (standard deviation; try 0.4).",
            REGIONS,
            least=0,
        ),
    ] = None
    splits: SplitOptions = field(default_factory=SplitOptions)


@dataclass(frozen=True)
class CodeChoices:
    """Options of compressing a descriptor. See `learning.library.compressing.compress_descriptor`."""

    bits: Annotated[
        int | None, Option("Binary code of so many bits: 64, 128, 1024, or any from its dimensions up.")
    ] = None
    product: Annotated[
        int | None, Option("Product-quantised code of at most so many bits: 64, 1024, or any multiple of 8.")
    ] = None
    method: Annotated[
        str | None,
        Option(
            "Binary: spread (Parseval frame, thresholds spread out), frame (all at zero, as in the paper), "
            "or lsh (random projections). Product: balanced (principal axes, "
            "dealt by their variances) or plain (dimensions as they stand). The first is the default."
        ),
    ] = None
    patches: Annotated[
        Path | None,
        Option(
            "Learn from these patches, a folder in the PhotoTour layout, rather than from the mean and covariance "
            "of the training patches that the descriptor file holds."
        ),
    ] = None
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0


def embedding_named(name: str) -> str:
    """The paper's name of an embedding: golde for our oglde, whose name follows the pattern of the others."""
    return "golde" if name == "oglde" else name
