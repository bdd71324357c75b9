"""Boosted descriptors: thresholded responses of boxes, weighted or projected (Trzcinski12)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from retrieval.descriptors.boxes import FAMILIES, VERSION, ResponseOptions, integral_images, responses

KINDS = ("bgm", "ssc", "lbgm", "lbgm-diag", "bgm-pca")
"""What they are called: boosted gradient maps; the same of grey values; and embeddings of the former."""

_MOST_LEARNERS = 8_192
_CHUNK = 32  # patches at a time: their integral images fit the third-level cache


@dataclass(frozen=True, eq=False)
class WeakLearners:
    """Weak learners h(x; R, e, T): 1 if the response φ of box R and orientation e is at most T, else -1 (eq. 9)."""

    boxes: NDArray[np.int32]  # (P, 4) int32: x0, y0, x1, y1 of R, see `boxes`
    channels: NDArray[np.int32]  # (P,) int32: e
    thresholds: NDArray[np.float32]  # (P,) float32: T
    weights: NDArray[np.float32]  # (P,) float32: α of AdaBoost, positive (equation 2)
    options: ResponseOptions

    def __len__(self) -> int:
        return len(self.boxes)

    def first(self, number: int) -> "WeakLearners":
        """Return the first learners."""
        part = slice(number)
        return WeakLearners(
            self.boxes[part], self.channels[part], self.thresholds[part], self.weights[part], self.options
        )

    def answers(self, patches: NDArray[np.float32]) -> NDArray[np.int8]:
        """Return h of patches (N, S, S) float32: (N, P) int8 of 1 and -1."""
        signs = np.empty((len(patches), len(self)), np.int8)
        with one_thread():
            for start in range(0, len(patches), _CHUNK):
                part = slice(start, start + _CHUNK)
                sums = integral_images(patches[part], self.options)
                above = responses(sums, self.boxes, self.channels) > self.thresholds
                signs[part] = 1 - 2 * above.astype(np.int8)
        return signs


@dataclass(frozen=True, eq=False)
class Boosted:
    """A boosted descriptor, under the contract of `bases.BaseModel`.

    Without an embedding its rows are √(α / Σα) h(x): their squared distances are 2 - 2 f / Σα, f being the boosted
    similarity (equation 2). With one they are Bᵀ h(x) (equation 8).
    """

    kind: str  # one of KINDS
    learners: WeakLearners
    embedding: NDArray[np.float32] | None = None  # (d, P) float32: Bᵀ
    # (d,) float32: the diagonal of W, 1 or -1; rows are compared by the inner product with it (equation 7), which is no
    # distance. None: by their distance.
    signs: NDArray[np.float32] | None = None

    @property
    def name(self) -> str:
        """How tables call it."""
        return self.kind if self.signs is None else f"{self.kind}-inner"

    @property
    def dim(self) -> int:
        """Entries of a row."""
        return len(self.learners) if self.embedding is None else len(self.embedding)

    @property
    def bytes(self) -> int:
        """Bytes of a row: a bit for each weak learner, as weights are stored once."""
        return (self.dim + 7) // 8 if self.embedding is None else 4 * self.dim

    @property
    def patch_size(self) -> int:
        """Samples along a patch's side."""
        return self.learners.options.patch_size

    def describe(self, patches: NDArray[np.float32]) -> NDArray[np.float32]:
        """Describe patches (N, S, S) float32 as rows (N, dim) float32."""
        answers = self.learners.answers(patches)
        if self.embedding is None:
            return answers * self._roots
        with one_thread():
            return answers.astype(np.float32) @ self.embedding.T

    def linear_map(self) -> NDArray[np.float32]:
        """Return the matrix (dim, P) float32 whose product with h(x) is a row."""
        return np.diag(self._roots) if self.embedding is None else self.embedding

    @property
    def _roots(self) -> NDArray[np.float32]:
        """Roots (P,) float32 of α / Σα."""
        weights = self.learners.weights.astype(np.float64)
        return np.asarray(np.sqrt(weights / weights.sum()).astype(np.float32))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that shape the rows."""
        learners = self.learners
        arrays = {
            "boxes": learners.boxes,
            "channels": learners.channels,
            "thresholds": learners.thresholds,
            "alphas": learners.weights,
        }
        more = {"embedding": self.embedding, "signs": self.signs}
        return arrays | {name: array for name, array in more.items() if array is not None}

    def meta(self) -> dict[str, Any]:
        """Other parameters of the rows."""
        return {"kind": self.kind, "version": VERSION, "responses": asdict(self.learners.options)}


def load_boosted(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Boosted:
    """Build a descriptor from an untrusted file; raises ValueError, KeyError or TypeError if it does not fit."""
    if meta["kind"] not in KINDS:
        raise ValueError(f"its kind {meta['kind']!r} is unknown")
    if meta["version"] != VERSION:
        raise ValueError("its responses are those of another version")
    options = _options(meta["responses"])
    boxes, channels = arrays["boxes"], arrays["channels"]
    thresholds, weights = arrays["thresholds"], arrays["alphas"]
    number = len(boxes)
    if boxes.shape != (number, 4) or any(array.shape != (number,) for array in (channels, thresholds, weights)):
        raise ValueError("its weak learners do not fit together")
    if not 0 < number <= _MOST_LEARNERS:
        raise ValueError(f"it has {number} weak learners")
    kinds = [array.dtype for array in (boxes, channels, thresholds, weights)]
    if kinds != [np.int32, np.int32, np.float32, np.float32]:
        raise ValueError("its weak learners are of the wrong type")
    if (boxes[:, :2] < 0).any() or (boxes[:, 2:] > options.patch_size).any() or (boxes[:, 2:] <= boxes[:, :2]).any():
        raise ValueError("a box is empty or lies outside the patch")
    if (channels < 0).any() or (channels >= options.channels).any() or not (weights > 0).all():
        raise ValueError("a weak learner has no such orientation, or no weight")
    embedding = arrays.get("embedding")
    if (embedding is None) != (meta["kind"] in ("bgm", "ssc")):
        raise ValueError("its embedding does not go with its kind")
    if embedding is not None and (
        embedding.dtype != np.float32 or embedding.shape[1:] != (number,) or not 0 < len(embedding) <= number
    ):
        raise ValueError("its embedding does not fit its weak learners")
    signs = arrays.get("signs")
    if signs is not None and (
        embedding is None
        or signs.dtype != np.float32
        or signs.shape != (len(embedding),)
        or not (np.abs(signs) == 1).all()
    ):
        raise ValueError("its signs do not fit its embedding")
    return Boosted(meta["kind"], WeakLearners(boxes, channels, thresholds, weights, options), embedding, signs)


def _options(values: Mapping[str, Any]) -> ResponseOptions:
    """Build options from an untrusted file."""
    options = ResponseOptions(**values)
    if options.family not in FAMILIES:
        raise ValueError(f"its family {options.family!r} is unknown")
    for item in fields(ResponseOptions):
        value = getattr(options, item.name)
        kinds: tuple[type, ...] = {str: (str,), int: (int,)}.get(type(item.default), (int, float))
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"{item.name} is {value!r}")
    problem = out_of_range(options)
    if problem:
        raise ValueError(problem)
    return options


def out_of_range(options: ResponseOptions) -> str:
    """Return the option of responses that is out of range; empty if all are valid."""
    if not 3 <= options.patch_size <= 128:
        return f"Patches have 3 to 128 samples along a side, and not {options.patch_size}."
    if not 2 <= options.orientations <= 64 or options.orientations % 2:
        return f"Orientations come in pairs, from 2 to 64, and not as {options.orientations}."
    if not 0 <= options.smoothing <= options.patch_size:
        return f"The smoothing lies between 0 and the patch's side, and is {options.smoothing}."
    if options.channels * options.patch_size**2 > 1 << 17:
        return "So many orientations of so many samples do not fit into memory: take fewer of either."
    if not 1e-3 <= options.floor <= 100:
        return f"The floor lies between 0.001 and 100, and is {options.floor}."
    return ""
