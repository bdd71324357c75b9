"""Synthetic learnt descriptors: a plausible layout of regions, and parameters drawn by a seed."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from retrieval.descriptors.bases import NESTED
from retrieval.descriptors.blocks.descriptor import named_blocks
from retrieval.descriptors.boosted import Boosted, WeakLearners
from retrieval.descriptors.boxes import ResponseOptions, integral_images, responses
from retrieval.descriptors.codes import BinaryCode, ProductCode
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, Pooling
from retrieval.descriptors.nested import NestedSift
from retrieval.descriptors.pooling import ChannelOptions
from retrieval.library.testing import textures as textures

BITS, PARTS, DIM, WEAK = 256, 8, 40, 192


@dataclass(frozen=True)
class Case:
    """One kind of learnt descriptor, with properties for tests."""

    model: LearntModel
    longest: float = 1.0  # largest length of a row
    coded: bool = False  # rows are decoded codes: a small change of a patch changes nothing, or a part


def circles(radii: tuple[float, ...] = (4, 8, 12), angles: int = 8) -> np.ndarray:
    """Regions (R, 3): one in the middle, and circles of wider ones around it, as in DAISY."""
    angle = 2 * np.pi * np.arange(angles) / angles
    rows = [np.array([[0, 0, 1.5]])]
    rows += [np.column_stack([r * np.cos(angle), r * np.sin(angle), np.full(angles, 0.3 * r + 0.5)]) for r in radii]
    return np.concatenate(rows).astype(np.float32)


def pooling(seed: int = 0, regions: np.ndarray | None = None, **channels: Any) -> Pooling:
    """Regions with weights of about one over their number, so that rows are no longer than 1."""
    regions = circles() if regions is None else regions
    options = ChannelOptions(**({"smoothing": 1.0, "quantile": 0.8} | channels))
    rings = np.concatenate([[0], 1 + np.arange(len(regions) - 1) // 8]).astype(np.int32)
    weights = np.random.default_rng(seed).uniform(0.5, 1, rings.max() + 1)[rings]
    weights /= weights.sum() * options.orientations
    return Pooling(regions, weights.astype(np.float32), rings, options)


def orthogonal_rows(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """A projection (m, n) float32 that lengthens no vector."""
    drawn = np.random.default_rng(seed).normal(size=(columns, rows))
    return np.ascontiguousarray(np.linalg.qr(drawn)[0].T, np.float32)  # rounded as in a file


@cache
def projected(base: str = "pooled", seed: int = 0, dim: int = DIM) -> LearntModel:
    """A projection of either base, with moments for coding."""
    regions = pooling(seed) if base == "pooled" else None
    length = regions.dim if regions is not None else 128
    bare = LearntModel(base, regions, orthogonal_rows(dim, length, seed))
    rows = LearntDescriptor(bare).describe(textures(400, 31, seed + 100))
    mean, covariance = rows.mean(axis=0), np.cov(rows.T).astype(np.float32)
    provenance = {"trained_on": ["textures"], "seed": seed}
    return LearntModel(base, regions, bare.projection, mean, covariance, provenance=provenance)


def whitened(seed: int = 0) -> LearntModel:
    """Centred rows of unit length, of patches half as large again."""
    bare = projected("rootsift", seed)
    assert bare.projection is not None and bare.mean is not None
    return replace(bare, projection=3 * bare.projection, centre=3 * bare.mean, extent=1.5)


def binary(seed: int = 0, bits: int = BITS) -> LearntModel:
    """Signs of random directions."""
    model = projected(seed=seed)
    assert model.mean is not None
    frame = np.random.default_rng(seed).normal(size=(bits, DIM)).astype(np.float32)
    return model.with_code(BinaryCode(model.mean, frame))


def product(seed: int = 0, *, rotated: bool = True) -> LearntModel:
    """Codewords from parts of other patches' rows."""
    model = projected(seed=seed)
    rotation = orthogonal_rows(DIM, DIM, seed + 1) if rotated else np.eye(DIM, dtype=np.float32)
    words = LearntDescriptor(model).describe(textures(256, 31, seed + 200)) @ rotation
    return model.with_code(ProductCode(words, np.full(PARTS, DIM // PARTS, np.int32), rotation if rotated else None))


@cache
def weak_learners(seed: int = 0, number: int = WEAK, options: ResponseOptions | None = None) -> WeakLearners:
    """Weak learners that answer 1 as often as -1."""
    options = options or ResponseOptions()
    rng = np.random.default_rng(seed)
    sides = rng.integers(4, options.patch_size // 2, (number, 2))
    corner = rng.integers(0, options.patch_size + 1 - sides)
    boxes = np.concatenate([corner, corner + sides], axis=1).astype(np.int32)
    channels = rng.integers(0, options.channels, number).astype(np.int32)
    found = responses(integral_images(textures(200, options.patch_size, seed + 300), options), boxes, channels)
    weights = rng.uniform(0.5, 1, number).astype(np.float32)
    return WeakLearners(boxes, channels, np.median(found, axis=0), weights, options)


def boosted(kind: str = "bgm", seed: int = 0) -> LearntModel:
    """A boosted descriptor of a kind."""
    learners = weak_learners(seed, options=ResponseOptions("intensity" if kind == "ssc" else "gradient"))
    embedding = None
    if kind not in ("bgm", "ssc"):
        # No row of responses is longer than the root of their number.
        embedding = (orthogonal_rows(40, WEAK, seed) / np.sqrt(WEAK)).astype(np.float32)
    return LearntModel("boosted", provenance={"seed": seed}, base_model=Boosted(kind, learners, embedding))


def blocks(name: str, embedding: str = "none", bits: int = 0) -> LearntModel:
    """Building blocks with initial parameters, and a projection drawn by a seed."""
    found = named_blocks(name, 31)
    projection = None if embedding == "none" else orthogonal_rows(DIM, found.pooled_dim)
    return LearntModel("blocks", base_model=replace(found, embedding=embedding, projection=projection, bits=bits))


def nested() -> LearntModel:
    """A whitening of nested rootSIFT."""
    base, rng = NestedSift(), np.random.default_rng(4)
    projection = orthogonal_rows(DIM, base.dim)
    centre = rng.normal(0, 0.01, DIM).astype(np.float32)
    return LearntModel(NESTED, projection=projection, centre=centre, base_model=base, extent=2.0)


@cache
def cases() -> dict[str, Case]:
    """Every kind, by its own name."""
    found = [
        Case(LearntModel("pooled", pooling())),
        Case(projected()),
        Case(projected("rootsift")),
        Case(projected("sift")),
        Case(whitened(), longest=1 + 1e-6),
        Case(nested(), longest=1 + 1e-6),
        Case(binary(), longest=BITS**0.5, coded=True),
        Case(product(), longest=PARTS**0.5, coded=True),
        *(Case(boosted(kind), coded=True) for kind in ("bgm", "ssc", "lbgm")),
        Case(blocks("T1b-S4-17")),
        Case(blocks("T3h-S2-17", "pca")),
        Case(blocks("T2a", "lpp")),
        Case(blocks("T3h-S4-25", bits=3), longest=1.6, coded=True),
    ]
    return {case.model.name: case for case in found}
