"""Learnt descriptors: their file format and application."""

from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.archive import open_archive
from index.arrays import check_format, fingerprint, reading, save_arrays
from index.errors import CairnError
from index.kernels.products import product
from index.messages import said
from index.parallel import one_thread
from retrieval.descriptors.bases import LOADERS, NESTED, BaseModel
from retrieval.descriptors.codes import Code, load_code
from retrieval.descriptors.contract import Both, check_patches
from retrieval.descriptors.nested import NestedSift
from retrieval.descriptors.pooling import VERSION, ChannelOptions, normalised_channels, pool, region_kernels
from retrieval.descriptors.sift import Sift

FORMAT = 3
"""Version of the file. The second brought centre and extent, the third signs; one without these is of an earlier."""

BASES = ("pooled", "rootsift", "sift", NESTED)
"""What a projection is learnt on: pooled gradient channels, SIFT of either normalisation, or nested rootSIFT."""

_LARGEST_FILE = 1 << 28  # bytes, of the file and of its unpacked contents
_MOST_REGIONS = 4_096
_MOST_SAMPLES = 1 << 24  # of all regions' kernels together
_LARGEST_VALUE = 6e4  # within half precision
_CODE = "code_"  # prefix of the names of a code's arrays
_SHORTEST = np.float32(1e-6)  # shorter rows have no direction
_LARGEST_EXTENT = 100.0
_CHUNK = 128  # patches at a time: their channels fit the second-level cache


@dataclass(frozen=True)
class Pooling:
    """A configuration of pooling regions."""

    regions: NDArray[np.float32]  # (R, 3) float32: centre x, y from the patch's centre and σ, in samples
    weights: NDArray[np.float32]  # (R,) float32: w of the region's ring, positive
    rings: NDArray[np.int32]  # (R,) int32: the ring of each, counted from 0
    channels: ChannelOptions

    @property
    def dim(self) -> int:
        """Entries of the pooled descriptor φ."""
        return len(self.regions) * self.channels.orientations


@dataclass(frozen=True)
class LearntModel:
    """All parameters of a learnt descriptor."""

    base: str  # one of BASES, or of bases.LOADERS
    pooling: Pooling | None = None  # with the base "pooled", and with no other
    projection: NDArray[np.float32] | None = None  # (m, n) float32: W; None: the base's own rows are the descriptor
    mean: NDArray[np.float32] | None = None  # (m,) float32: of the training patches' descriptors, before they are coded
    covariance: NDArray[np.float32] | None = None  # (m, m) float32: of the same
    code: Code | None = None  # how the rows are compressed
    provenance: dict[str, Any] = field(default_factory=dict)  # training data and options
    base_model: BaseModel | None = None  # with a base of bases.LOADERS, and with no other
    # (m,) float32: subtracted from W φ, which is then normalised to unit length; with a projection. None: W φ
    # unchanged.
    centre: NDArray[np.float32] | None = None
    extent: float = 1.0  # side of the patches over that of the detector's own measurement regions

    @property
    def name(self) -> str:
        """How tables call it."""
        way = "-proj" if self.centre is None else "-white"
        name = self.base if self.base_model is None else self.base_model.name
        name += way if self.projection is not None else ""
        return name + (f"-{self.code.meta()['kind']}" if self.code is not None else "")

    @property
    def base_dim(self) -> int:
        """Entries of the base's rows, before the projection."""
        if self.base_model is not None:
            return self.base_model.dim
        return Sift.dim if self.pooling is None else self.pooling.dim

    def with_code(self, code: Code) -> "LearntModel":
        """Return the same descriptor, compressed."""
        return replace(self, code=code)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all data that determines the descriptor's rows, without its provenance."""
        return fingerprint(_arrays(self), _shape(self))


class LearntDescriptor:
    """A learnt descriptor (Simonyan14 sections 3, 8, and `bases`), under the contract of `descriptors.Descriptor`."""

    def __init__(self, model: LearntModel) -> None:
        self.model = model
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.extent = model.extent
        self.signs: NDArray[np.float32] | None = getattr(model.base_model, "signs", None)  # see `contract.signs_of`
        self._sift: Sift | None = None
        if model.base_model is not None:
            self.patch_size, dim = model.base_model.patch_size, model.base_model.dim
        elif model.pooling is None:
            self._sift = Sift(root=model.base == "rootsift")
            self.patch_size, dim = self._sift.patch_size, self._sift.dim
        else:
            self.patch_size, dim = model.pooling.channels.patch_size, model.pooling.dim
            self._kernels = region_kernels(model.pooling.regions, self.patch_size)
            # √w (equation 2), one entry a region and channel.
            self._roots = np.repeat(np.sqrt(model.pooling.weights), model.pooling.channels.orientations)
        if model.projection is not None:
            dim = len(model.projection)
        self.dim = model.code.dim if model.code is not None else dim
        if model.code is not None:
            self.bytes = model.code.bytes
        elif model.base_model is not None and model.projection is None:
            self.bytes = model.base_model.bytes
        else:
            self.bytes = 4 * dim

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches; see `descriptors.Descriptor.describe`. A coded descriptor returns decoded rows."""
        return self._coded(self.describe_uncoded(patches))

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        """Describe patches both ways up in one pass if SIFT is the base; see `Descriptor`."""
        base = self._sift or self.model.base_model
        if not isinstance(base, Sift | NestedSift):
            return self.describe(patches), None
        both = base.describe_both(check_patches(patches, self.patch_size))
        upright, turned = (self._coded(self.projected(rows)) for rows in both if rows is not None)
        return upright, turned

    def encode(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.uint8]:
        """Describe patches as packed codes (N, bytes) uint8; raises ValueError without a code."""
        if self.model.code is None:
            raise ValueError("the descriptor has no code: its rows are real numbers")
        return self.model.code.encode(self.describe_uncoded(patches))

    def describe_uncoded(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches by Ψ = W φ, without a code, centred and of unit length with a centre: (N, m)."""
        return self.projected(self.base_rows(check_patches(patches, self.patch_size)))

    def projected(self, base: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Ψ (N, m) float32 of the base's rows φ (N, n)."""
        if self.model.projection is None:
            return base
        rows = product(base, self.model.projection.T)
        return rows if self.model.centre is None else centred(rows, self.model.centre)

    def _coded(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Encode and decode rows, if there is a code."""
        return rows if self.model.code is None else self.model.code.apply(rows)

    def base_rows(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Describe patches by φ, before the projection: (N, n) float32."""
        patches = check_patches(patches, self.patch_size)
        if self.model.base_model is not None:
            return self.model.base_model.describe(patches)
        if self._sift is not None:
            return self._sift.describe(patches)
        assert self.model.pooling is not None
        rows = np.empty((len(patches), self.model.pooling.dim), np.float32)
        options = self.model.pooling.channels
        with one_thread():
            for start in range(0, len(patches), _CHUNK):
                part = slice(start, start + _CHUNK)
                rows[part] = pool(normalised_channels(patches[part], options), self._kernels, options.power)
        rows *= self._roots
        return rows


def centred(rows: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract a centre (m,) from rows (N, m), and normalise them to unit length, in place."""
    rows -= centre
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), _SHORTEST)
    return rows


def check_model_path(path: Path) -> None:
    """Raise CairnError if no descriptor file can be written to a path; call it before the work."""
    if path.suffix != ".npz":
        raise CairnError(f"{path} must end with .npz, by which a descriptor file is known: choose {path}.npz.")
    if not path.parent.is_dir():
        raise CairnError(f"{path.parent} is not a folder: make it first, or write the descriptor elsewhere.")
    if path.is_dir():
        raise CairnError(f"{path} is a folder: choose another name for the descriptor file.")


def save_model(path: Path, model: LearntModel) -> None:
    """Write a descriptor file (.npz) atomically."""
    path = Path(path)
    check_model_path(path)
    arrays = _arrays(model)
    if model.mean is not None and model.covariance is not None:
        arrays |= {"mean": model.mean, "covariance": model.covariance}
    version = 2 if model.centre is not None or model.extent != 1 else 1
    version = FORMAT if getattr(model.base_model, "signs", None) is not None else version
    meta = {"format": version, **_shape(model), "provenance": model.provenance}
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_arrays(path, plain, meta, deflated=True)


def load_model(path: Path) -> LearntModel:
    """Read a descriptor file."""
    path = Path(path)
    with reading(path, said("descriptor file"), "cairn learn descriptor"):
        meta, arrays = _read(path)
        if meta.get("format") not in (1, 2):
            check_format(path, meta.get("format"), FORMAT)
        model = _build(meta, arrays)
    return model


def read_model_file(path: Path) -> bytes:
    """Read the bytes of a valid descriptor file; raises as `load_model` does."""
    load_model(path)
    return path.read_bytes()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    arrays = {}
    with open_archive(path, _LARGEST_FILE) as archive:
        meta = archive.table("meta.json")
        for name in archive.names:
            if name.endswith(".npy"):
                array = archive.array(name.removesuffix(".npy"))
                # NaN fails the comparison too.
                if array.dtype.kind == "f" and not (np.abs(array.astype(np.float64)) < _LARGEST_VALUE).all():
                    raise ValueError("an array holds what is no number, or far too large a one")
                arrays[name.removesuffix(".npy")] = array
    return meta, arrays


def _build_pooling(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Pooling:
    """Build pooling regions from the contents of a file; may raise anything if these are inconsistent."""
    options = ChannelOptions(**meta["channels"])
    for item in fields(ChannelOptions):
        value = getattr(options, item.name)
        kinds = (int,) if isinstance(item.default, int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 1e6:
            raise ValueError(f"{item.name} is {value!r}")
    if not 0.01 <= options.power <= 1:
        raise ValueError(f"power is {options.power}")
    if not 3 <= options.patch_size <= 256 or not 2 <= options.orientations <= 64 or not 0 < options.quantile <= 1:
        raise ValueError("its channels are out of range")
    if options.smoothing > options.patch_size or options.orientations * options.patch_size**2 > 1 << 18:
        raise ValueError("its channels are out of range")
    if meta.get("version") != VERSION:
        raise ValueError("its gradients are those of another version")
    regions, weights, rings = arrays["regions"], arrays["weights"], arrays["rings"]
    number = len(regions)
    shapes = [array.shape for array in (regions, weights, rings)]
    if shapes != [(number, 3), (number,), (number,)] or not 0 < number <= _MOST_REGIONS:
        raise ValueError("its regions and weights do not fit together")
    if number * options.patch_size**2 > _MOST_SAMPLES:
        raise ValueError("its regions are far more than any descriptor's")
    if regions.dtype != np.float32 or weights.dtype != np.float32 or rings.dtype != np.int32:
        raise ValueError("its regions and weights are of the wrong type")
    if (regions[:, 2] <= 0).any() or (weights <= 0).any():
        raise ValueError("a region has no extent or no weight")
    return Pooling(regions, weights, rings, options)


def _build(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LearntModel:
    """Build a model from the contents of a file; may raise anything if these are inconsistent."""
    base = meta["base"]
    if base not in BASES and base not in LOADERS:
        raise ValueError(f"its base {base!r} is unknown")
    pooling, base_model, dim = None, None, Sift.dim
    if base in LOADERS:
        base_model = LOADERS[base](meta["base_model"], arrays)
        dim = base_model.dim
    if base == "pooled":
        pooling = _build_pooling(meta, arrays)
        dim = pooling.dim
    projection = arrays.get("projection")
    if projection is not None:
        if projection.ndim != 2 or projection.shape[1] != dim or projection.dtype != np.float32 or not len(projection):
            raise ValueError("its projection does not fit what it projects")
        dim = len(projection)
    centre, extent = arrays.get("centre"), meta.get("extent", 1.0)
    if centre is not None and (projection is None or centre.shape != (dim,) or centre.dtype != np.float32):
        raise ValueError("its centre does not fit its rows")
    if type(extent) not in (int, float) or not 0 < extent < _LARGEST_EXTENT:
        raise ValueError(f"its extent is {extent!r}")
    mean, covariance = arrays.get("mean"), arrays.get("covariance")
    if (mean is None) != (covariance is None):
        raise ValueError("its mean or its covariance is missing")
    if mean is not None and covariance is not None and (mean.shape != (dim,) or covariance.shape != (dim, dim)):
        raise ValueError("its mean does not fit its rows")
    if any(array is not None and array.dtype != np.float32 for array in (mean, covariance)):
        raise ValueError("its mean and covariance are of the wrong type")
    code = None
    if meta.get("code") is not None:
        parts = {name.removeprefix(_CODE): array for name, array in arrays.items() if name.startswith(_CODE)}
        code = load_code(meta["code"], parts)
        rows = np.zeros((1, dim), np.float32)
        if code.apply(rows).shape != (1, code.dim):
            raise ValueError("its code does not fit its rows")
    provenance = meta.get("provenance", {})
    if not isinstance(provenance, dict):
        raise ValueError("its provenance is no table")
    return LearntModel(base, pooling, projection, mean, covariance, code, provenance, base_model, centre, float(extent))


def _arrays(model: LearntModel) -> dict[str, NDArray[Any]]:
    """Arrays that shape the descriptor's rows, by their names in the file."""
    arrays: dict[str, NDArray[Any]] = {}
    if model.pooling is not None:
        arrays |= {"regions": model.pooling.regions, "weights": model.pooling.weights, "rings": model.pooling.rings}
    if model.base_model is not None:
        arrays |= model.base_model.arrays()
    if model.projection is not None:
        arrays["projection"] = model.projection
    if model.centre is not None:
        arrays["centre"] = model.centre
    if model.code is not None:
        arrays |= {f"{_CODE}{name}": array for name, array in model.code.arrays().items()}
    return arrays


def _shape(model: LearntModel) -> dict[str, Any]:
    """Options that shape the descriptor's rows."""
    shape = {
        "base": model.base,
        "version": VERSION if model.pooling is not None else 1,
        "channels": asdict(model.pooling.channels) if model.pooling is not None else None,
        "code": model.code.meta() if model.code is not None else None,
    }
    # No entry otherwise, which would change the fingerprints of all others.
    if model.base_model is not None:
        shape["base_model"] = model.base_model.meta()
    if model.extent != 1:
        shape["extent"] = model.extent
    return shape
