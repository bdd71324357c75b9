"""Building-block descriptors (Brown, Hua, Winder, *Discriminative Learning of Local Image Descriptors*, PAMI 2011).

A descriptor is named by its blocks: ``T3h-S4-25`` has steerable filters pooled over 25 Gaussian regions. A T-block
alone, as in ``T3h``, is sampled on a grid and left to an E-block.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread
from retrieval.descriptors.blocks.parameters import REFERENCE, Parameter, check_parameters, defaults
from retrieval.descriptors.blocks.regions import (
    ARRANGEMENTS,
    GRID,
    is_grid,
    is_spatial,
    spatial_kernels,
    spatial_parameters,
)
from retrieval.descriptors.blocks.regions import spatial_regions as regions_of
from retrieval.descriptors.blocks.transforms import (
    SURROUND,
    TRANSFORMS,
    Transform,
    transform_dim,
    transform_parameters,
)

VERSION = 1
"""Of what is computed here and in the blocks; to be raised with any change of the numbers they give."""

BEST = ("T1c-S2-17", "T3h-S4-25", "T3h-S2-17", "T3j-S2-17")
"""The four combinations that Brown11 chose (section VI.A)."""

EMBEDDINGS = {
    "none": "",
    "pca": "E1",
    "lpp": "E2",
    "olpp": "E3",
    "lde": "E4",
    "olde": "E5",
    "glde": "E6",
    "golde": "E7",
}
"""E-blocks, by the names of Brown11's tables."""

_CLIP = Parameter("clip", 1.6, 1.05, 8.0, length=False)  # κ √D (section VI.F)
_DEFAULT_GRID = 10
_LARGEST_GRID_ROW = 1 << 14
_MOST_SAMPLES = 1 << 20  # of all channels of a patch
_WIDEST = 4  # sides of a patch: no Gaussian is wider
_CHUNK = 1 << 21  # samples of all channels of the patches at a time: they fit the cache
_FAINTEST = 1e-3  # grey values: rows are never divided by less
_ROUNDS, _CONVERGED = 20, 1e-6  # rounds of clipping, and tolerance of unit length at the end


@dataclass(frozen=True)
class Blocks:
    """All parameters of a descriptor made from building blocks, with the contract of `bases.BaseModel`."""

    transform: str  # G- and T-block: one of block_transforms.TRANSFORMS
    spatial: str  # S-block: one of block_regions.ARRANGEMENTS, or grid-n
    parameters: Mapping[str, float]  # of `block_parameters`, by name; lengths in samples of this patch
    patch_size: int = REFERENCE  # samples along a patch's side
    embedding: str = "none"  # E-block: one of EMBEDDINGS
    projection: NDArray[np.float32] | None = None  # (m, n) float32: its W
    mean: NDArray[np.float32] | None = None  # (n,) float32: mean μ of its input, on a grid; None: nothing is subtracted
    bits: int = 0  # of each stored entry (section VI.G), without an E-block; 0: as a real number

    @property
    def name(self) -> str:
        """How tables call the descriptor."""
        name = self.transform + ("" if self.spatial == f"{GRID}-{_DEFAULT_GRID}" else f"-{self.spatial}")
        name += "" if self.embedding == "none" else f"-{self.embedding}"
        return name + (f"-{self.bits}bit" if self.bits else "")

    @property
    def pooled_dim(self) -> int:
        """Entries D = k N of a row before the E-block."""
        return transform_dim(self.transform) * regions_of(self.spatial)

    @property
    def dim(self) -> int:
        """Entries of a row."""
        return self.pooled_dim if self.projection is None else len(self.projection)

    @property
    def threshold(self) -> float:
        """κ of the N-block; infinite if it does not clip."""
        return float("inf") if is_grid(self.spatial) else self.parameters[_CLIP.name] / self.pooled_dim**0.5

    @property
    def bytes(self) -> int:
        """Of one stored row."""
        return -(-self.dim * (self.bits or 32) // 8)

    @cached_property
    def applied(self) -> tuple[Transform, NDArray[np.float32]]:
        """The T-block, and the S-block's kernels (S², N), with these parameters."""
        transform = Transform(self.transform, self.patch_size, self.parameters)
        return transform, spatial_kernels(self.spatial, self.parameters, self.patch_size)

    def describe(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Describe patches (N, S, S) as rows (N, dim) float32."""
        rows = self.normalised(self.pooled(patches))
        return self.levels(rows) if self.projection is None else self.finished(self.projected(rows))

    def pooled(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the rows (N, D) float32 that the S-block makes of patches (N, S, S), region by region."""
        transform, kernels = self.applied
        channels, samples = transform.dim, self.patch_size**2
        rows = np.empty((len(patches), kernels.shape[1], channels), np.float32)
        chunk = max(1, _CHUNK // (channels * samples))
        with one_thread():
            for start in range(0, len(patches), chunk):
                responses = transform(patches[start : start + chunk].astype(np.float32, copy=False))
                pooled = responses.reshape(-1, samples) @ kernels
                rows[start : start + chunk] = pooled.reshape(channels, -1, kernels.shape[1]).transpose(1, 2, 0)
        return rows.reshape(len(patches), self.pooled_dim)

    def normalised(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return pooled rows (N, D) as the N-block makes them.

        Samples on a grid get unit length, which normalises contrast before the E-block (ours: the paper's figure 3
        normalises them only after it).
        """
        return to_unit(rows, _FAINTEST) if is_grid(self.spatial) else clipped_to_unit(rows, self.threshold)

    def projected(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows (N, D) of the N-block as the E-block projects them, W x or W (x - μ): (N, m) float32."""
        assert self.projection is not None
        with one_thread():
            projected: NDArray[np.float32] = rows @ self.projection.T
            # W x - W μ, without a copy of all rows.
            return projected if self.mean is None else projected - self.projection @ self.mean

    def finished(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows (N, m) of the E-block, or their first entries, as the descriptor's.

        Descriptors that pool only by their E-block are normalised after it, others before (section VI.F). Lengths are
        relative to the mean μ, on which the paper is silent: samples are mostly positive, so a large part is the same
        in all patches, and would dominate a row of unit length.
        """
        return to_unit(rows, _FAINTEST) if is_grid(self.spatial) else rows

    def levels(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows (N, D) of the N-block in stored form."""
        return in_levels(rows, self.threshold, self.bits) if self.bits else rows

    def with_parameters(self, values: Mapping[str, float]) -> "Blocks":
        """Return the same blocks with some parameters of other values, and no E-block."""
        changed = {**self.parameters, **values}
        return replace(self, parameters=changed, embedding="none", projection=None, mean=None, bits=0)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Arrays that shape the rows, by their names in a descriptor file."""
        parts = {"embedding": self.projection, _MEAN: self.mean}
        return {name: array for name, array in parts.items() if array is not None}

    def meta(self) -> dict[str, Any]:
        """Other parameters of the rows, for JSON."""
        facts = {item: getattr(self, item) for item in _META}
        return {
            **facts,
            "parameters": {name: float(value) for name, value in self.parameters.items()},
            "version": VERSION,
        }


_META = ("transform", "spatial", "patch_size", "embedding", "bits")
_MEAN = "embedding_mean"  # "mean" is that of the descriptor's own rows


def block_parameters(transform: str, spatial: str, size: int = REFERENCE) -> list[Parameter]:
    """Learnable parameters of the G-, T-, S- and N-block, for patches of this many samples along a side."""
    parameters = transform_parameters(transform) + spatial_parameters(spatial)
    # Rows of an E-block that pools are only normalised to unit length (section III.E).
    if not is_grid(spatial):
        parameters.append(_CLIP)
    return [parameter.scaled(size) for parameter in parameters]


def is_blocks(name: str) -> bool:
    """Whether a name is one of blocks: ``T3h-S4-25``, ``T3h``, ``T3h-grid-12``, ``pixels`` or the like."""
    transform, hyphen, spatial = name.partition("-")
    return transform in TRANSFORMS and (is_spatial(spatial) if hyphen else True)


def named_blocks(name: str, size: int = REFERENCE) -> Blocks:
    """Return the blocks of a name, with the parameters that learning begins with."""
    if not is_blocks(name):
        raise CairnError(
            f"There are no blocks {name!r}: name a T-block ({', '.join(TRANSFORMS)}), and an S-block "
            f"({', '.join(ARRANGEMENTS)}) after a hyphen where it is not left to an embedding, as in T3h-S4-25."
        )
    transform, _, spatial = name.partition("-")
    spatial = spatial or f"{GRID}-{_DEFAULT_GRID}"
    blocks = Blocks(transform, spatial, defaults(block_parameters(transform, spatial, size)), size)
    try:
        _check_sizes(blocks)
    except ValueError as error:
        raise CairnError(f"{name} does not go with patches of {size} samples: {error}.") from error
    return blocks


def to_unit(rows: NDArray[np.float32], faintest: float = 0.0) -> NDArray[np.float32]:
    """Divide rows (N, D) by their length; rows shorter than the faintest stay shorter than one."""
    return np.asarray(rows / np.maximum(_lengths(rows), np.float32(max(faintest, 1e-30)))[:, None])


def _lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.sqrt(np.einsum("nd,nd->n", rows, rows)))


def clipped_to_unit(rows: NDArray[np.float32], threshold: float, rounds: int = _ROUNDS) -> NDArray[np.float32]:
    """Normalise rows (N, D), clip at `threshold` κ and repeat until nothing is clipped (N-block,
    Brown11 III.E); negative entries are clipped alike. Rows are shorter where a patch has next to no contrast, zero
    where it has none.

    `rounds`: at most, as in the paper; there a row stays as it is. After 20, rows of random parts of photos lie, in the
    mean, 0.003 (T3h, T3j) or 0.04 (T1c) from where the rounds would end at κ √D = 1.6, and 0.05 or 0.24 at 1.1.
    """
    bright = _lengths(rows) >= np.float32(_FAINTEST)
    rows = to_unit(rows, _FAINTEST)
    active = np.arange(len(rows))
    for _ in range(rounds):
        part = rows[active]
        np.clip(part, -threshold, threshold, out=part)
        lengths = _lengths(part)
        # Each row separately, so that it does not depend on its batch. Faint ones are clipped once.
        going = (lengths < 1 - _CONVERGED) & (lengths > 0.5 * threshold) & bright[active]
        part[going] /= lengths[going, None]
        rows[active] = part
        active = active[going]
        if not len(active):
            break
    return rows


def in_levels(rows: NDArray[np.float32], top: float, bits: int) -> NDArray[np.float32]:
    """Entries as the middles of the 2^bits equal steps from 0 to `top` (κ) that they lie in (section VI.G), those
    beyond in the last. The squared distance of two rows is that of their level numbers, times a constant.
    """
    levels = 1 << bits
    numbers = np.clip(np.floor(rows * np.float32(levels / top)), 0, levels - 1)
    return np.asarray((numbers + np.float32(0.5)) * np.float32(top / levels), np.float32)


def load_blocks(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Blocks:
    """Build blocks from untrusted `meta` and `arrays`; raises ValueError, KeyError or TypeError if they do not fit."""
    if meta["version"] != VERSION:
        raise ValueError("its blocks are those of another version")
    transform, spatial, size = meta["transform"], meta["spatial"], meta["patch_size"]
    if transform not in TRANSFORMS or not isinstance(spatial, str) or not is_spatial(spatial):
        raise ValueError("its blocks are unknown")
    if type(size) is not int or not 8 <= size <= 256:
        raise ValueError(f"its patch size is {size!r}")
    check_parameters(meta["parameters"], block_parameters(transform, spatial, size))
    parameters = {name: float(value) for name, value in meta["parameters"].items()}
    if parameters["smoothing"] > size:
        raise ValueError("its smoothing is wider than a patch")
    if parameters["smoothing"] * parameters.get("second_centre", 1.0) * SURROUND > _WIDEST * size:
        raise ValueError("its differences of Gaussians are far wider than a patch")
    embedding, projection, mean = meta["embedding"], arrays.get("embedding"), arrays.get(_MEAN)
    if embedding not in EMBEDDINGS or (embedding == "none") != (projection is None):
        raise ValueError("its embedding is unknown, or has no projection")
    bits = meta["bits"]
    if type(bits) is not int or not 0 <= bits <= 8:
        raise ValueError(f"its bits are {bits!r}")
    blocks = Blocks(transform, spatial, parameters, size, embedding, projection, mean, bits)
    _check_sizes(blocks)
    if bits and not can_be_levels(blocks):
        raise ValueError("its entries cannot be kept in bits")
    if projection is not None:
        fits = projection.ndim == 2 and projection.shape[1] == blocks.pooled_dim
        if not fits or not 0 < len(projection) <= blocks.pooled_dim or projection.dtype != np.float32:
            raise ValueError("its embedding does not fit what it projects")
    if mean is not None:
        fits = projection is not None and is_grid(spatial) and mean.shape == (blocks.pooled_dim,)
        if not fits or mean.dtype != np.float32:
            raise ValueError("its mean does not fit what is projected")
    return blocks


def can_be_levels(blocks: Blocks) -> bool:
    """Whether entries can be stored in bits: they are those of the N-block, and none is negative."""
    plain = blocks.transform in ("pixels", "gradients")
    return blocks.projection is None and not is_grid(blocks.spatial) and not plain


def _check_sizes(blocks: Blocks) -> None:
    if not 8 <= blocks.patch_size <= 256:
        raise ValueError("patches have 8 to 256 samples along a side")
    if is_grid(blocks.spatial) and regions_of(blocks.spatial) > blocks.patch_size**2:
        raise ValueError("the grid has more points than a patch has samples")
    if blocks.pooled_dim > _LARGEST_GRID_ROW:
        raise ValueError(f"rows would have {blocks.pooled_dim} entries")
    if transform_dim(blocks.transform) * blocks.patch_size**2 > _MOST_SAMPLES:
        raise ValueError("its responses are far more than any descriptor's")
