"""Measurement of descriptors on matching and other patches, as a function of `import cairn`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray

from eval.library.patch_options import PatchMeasurement
from index.attributes import some_of
from index.docstrings import documented
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from learning.library.array_patches import are_arrays, as_labels, pairs_of_arrays
from learning.measures.roc import auc, fpr95, roc_curve
from retrieval.library.parts.arguments import as_array
from retrieval.library.parts.descriptor import Descriptor, contract_of
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from eval.descriptions import Descriptions
    from learning.patches.phototour import PatchPairs
    from learning.patches.sources import Patches
    from retrieval.descriptors import contract

TITLES = {"describe": "Describing"}
"""Titles of the steps."""


@documented
@dataclass(frozen=True, eq=False)
class PatchEvaluation:
    """Separation of matching pairs of patches from others by distances.

    Examples
    --------
    >>> import cairn
    >>> found = cairn.evaluate_patches([0.1, 0.2, 0.15, 0.9], same=[True, True, False, False])
    >>> found.false_positive_rate.tolist(), found.true_positive_rate.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """

    fpr95: Annotated[
        float, "False positive rate at 95% recall, 0 to 1: the figure of Brown11 and Simonyan14. Smaller is better."
    ]
    auc: Annotated[float, "Area under the ROC curve, 0 to 1."]
    false_positive_rate: Annotated[
        NDArray[np.float64], "(T,)", "Of the ROC curve, a point for each distinct distance, from (0, 0) to (1, 1)."
    ] = field(repr=False)
    true_positive_rate: Annotated[NDArray[np.float64], "(T,)", "True positive rate at each of these points."] = field(
        repr=False
    )
    distances: Annotated[
        NDArray[np.floating],
        "(M,)",
        "Of each pair: squared Euclidean or Hamming, float32; or the distances passed in.",
    ] = field(repr=False)
    same: Annotated[NDArray[np.bool_], "(M,)", "Whether the two of each pair show the same."] = field(repr=False)
    _facts: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures without the arrays: of a descriptor, what `cairn evaluate patches --json` prints."""
        figures = {"fpr95": self.fpr95, "auc": self.auc, "pairs": len(self.same), "matching": int(self.same.sum())}
        return dict(self._facts or figures)


@takes_options(PatchMeasurement)
def evaluate_patches(
    descriptor: Any, patches: Any = None, same: Any = None, *, progress: Telling = None, **options: Any
) -> PatchEvaluation:
    """Measure how well a descriptor, or distances, separate matching pairs of patches from others.

    Parameters
    ----------
    descriptor : str, Path, descriptor, callable, tuple of ndarray, or ndarray
        One of these.

        - With `patches`: the name of a descriptor or its file (.npz), a descriptor (anything with ``describe``), or a
          function from patches (N, S, S) float32, 0 to 255, to rows (N, D), which is called in batches.
        - With a folder as `patches`: also rows (N, D) that describe all of its patches, in order.
        - With `same` alone: rows ``(first, second)`` of the two patches of each pair, (M, D) each.
        - With `same` alone: distances (M,) of the pairs; smaller is more similar.
    patches : path or tuple, optional
        A folder of labelled patches in the layout of PhotoTour; or ``(first, second)``, patches (M, S, S) uint8, with
        `same`; or ``(patches, point_ids)``, patches (N, S, S) uint8 and the point of each (N,), with all matches and as
        many other pairs.
    same : array_like, shape (M,), bool, optional
        Whether the two of each pair show the same.
    progress : None, bool or callable
        Progress: none, bars, or a function of (step, done, of).
    {options}

    Returns
    -------
    PatchEvaluation

    Raises
    ------
    CairnError
        Arrays have other shapes or types, pairs are all of one kind, or a folder or descriptor cannot be read.

    Notes
    -----
    Source: Brown, Hua, Winder, Discriminative Learning of Local Image Descriptors, TPAMI 2011, section II; Simonyan,
    Vedaldi, Zisserman, TPAMI 2014, section 10.1. The threshold is the smallest distance whose recall is 95% or more;
    pairs at the same distance enter together.

    Examples
    --------
    Of distances, and of rows that any program made:

    >>> import cairn
    >>> import numpy as np
    >>> found = cairn.evaluate_patches([0.1, 0.2, 0.15, 0.9], same=[True, True, False, False])
    >>> found.fpr95, found.auc
    (0.5, 0.75)
    >>> first, second = np.eye(3), np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    >>> cairn.evaluate_patches((first, second), same=[True, True, False]).fpr95
    0.0

    Of a descriptor:

    >>> rng = np.random.default_rng(0)
    >>> scene = rng.integers(0, 256, (20, 64, 64)).astype(np.uint8)
    >>> patches, points = np.concatenate([scene, scene // 2 + 40]), np.tile(np.arange(20), 2)
    >>> cairn.evaluate_patches("rootsift", (patches, points)).fpr95
    0.0
    >>> cairn.evaluate_patches(lambda patches: patches.reshape(len(patches), -1), (patches, points)).fpr95
    0.0
    """
    how = build(PatchMeasurement, options)
    with telling(progress, TITLES) as tell:
        if patches is None:
            return _of_distances(_distances(descriptor, same, how.binary), same)
        from eval.patches import evaluate_patches as measure
        from learning.patches.phototour import PatchSet

        labelled: Patches
        chosen: PatchPairs | str | None = how.pairs
        if are_arrays(patches):
            if same is not None:
                patches = (*patches, same)
            elif len(patches) == 2 and np.ndim(patches[1]) == 3:
                raise CairnError("With patches (first, second) give same, too: whether each pair shows the same.")
            labelled, chosen = pairs_of_arrays(patches, how.seed)
        elif not isinstance(patches, str | Path):
            raise CairnError("patches is a folder, (first, second) with same, or (patches, point_ids).")
        elif same is not None:
            raise CairnError("A folder of patches has labels of its own: leave same out.")
        else:
            labelled = PatchSet.open(Path(patches))
        report = measure(
            labelled,
            _descriptor(descriptor, how.binary, labelled),
            chosen,
            tell,
            **some_of(how, "comparison", "footprint", "max_pairs", "seed"),
        )
    facts = report.as_json()
    if are_arrays(patches):
        del facts["folder"], facts["pair_file"]
    return _of_distances(report.distances, report.match, facts)


def _distances(source: Any, same: Any, binary: bool) -> NDArray[np.floating]:
    """Distances (M,) from the caller, or of rows (first, second)."""
    if same is None:
        raise CairnError("Without patches give same, too: whether the two of each pair show the same.")
    if isinstance(source, tuple | list) and len(source) == 2 and (isinstance(source, tuple) or are_arrays(source)):
        from eval.descriptions import Descriptions

        first, second = as_array(source[0], "first"), as_array(source[1], "second")
        if first.ndim != 2 or first.shape != second.shape or not first.size:
            raise CairnError(
                f"The rows of the two patches of each pair must be of one shape (M, D), not {first.shape} and "
                f"{second.shape}."
            )
        number = len(first)
        rows = _as_rows(np.concatenate([first, second]), binary)
        return Descriptions("The first of the rows", rows, binary).distances(
            np.arange(number), np.arange(number, 2 * number)
        )
    if isinstance(source, str | Path) or callable(source) or hasattr(source, "describe"):
        raise CairnError("A descriptor is measured on patches: give them, too.")
    distances = as_array(source, "Distances")
    if distances.ndim != 1 or distances.dtype.kind not in "fiu":
        raise CairnError(f"Distances must be numbers of the shape (M,), not {distances.dtype} {distances.shape}.")
    if np.isnan(distances.astype(np.float64)).any():
        raise CairnError("A distance is not a number (NaN): leave its pair out.")
    return cast(NDArray[np.floating], distances)


def _as_rows(rows: NDArray[Any], binary: bool) -> NDArray[Any]:
    if rows.dtype.kind not in "fiub" or (binary and rows.dtype != np.uint8):
        raise CairnError(f"Rows must be {'packed bits (uint8)' if binary else 'numbers'}, not {rows.dtype}.")
    return rows


def _of_distances(distances: Any, same: Any, facts: dict[str, Any] | None = None) -> PatchEvaluation:
    labels = as_labels(same, len(distances))
    if labels.all() or not labels.any():
        raise CairnError(
            f"{np.count_nonzero(labels)} of {len(labels)} pairs match: an error rate needs matching and other ones."
        )
    false_rate, true_rate, _ = roc_curve(distances, labels)
    return PatchEvaluation(
        fpr95(distances, labels), auc(distances, labels), false_rate, true_rate, distances, labels, facts or {}
    )


def _descriptor(source: Any, binary: bool, patches: "Patches") -> "contract.Descriptor | Descriptions":
    """The descriptor of patches, or rows of all of them."""
    from eval.descriptions import Descriptions

    if isinstance(source, Descriptions):
        return source
    if isinstance(source, list) or np.ndim(source) == 2:
        return Descriptions("rows", _as_rows(as_array(source, "rows"), binary), binary)
    if binary:
        raise CairnError("binary is for rows: a descriptor defines its comparison, so leave it out.")
    if isinstance(source, str | Path | Descriptor) or hasattr(source, "patch_size"):
        return contract_of(source)
    function = getattr(source, "describe", source)
    if callable(function):
        return _Function(function, patches)
    raise CairnError("A descriptor is a name, a file (.npz), what has describe(), or a function of patches.")


class _Function:
    """A function of patches with the interface of descriptors."""

    extent, fingerprint = 1.0, ""

    def __init__(self, function: Callable[[NDArray[Any]], Any], patches: "Patches") -> None:
        one = patches.read(np.zeros(1, np.int64)).astype(np.float32)  # as all that follow
        self._function = function
        self.name = str(getattr(function, "__name__", "descriptor"))
        self.patch_size = one.shape[1]
        self.dim = 0
        self.dim = self.describe(one).shape[1]
        self.bytes = 4 * self.dim

    def describe(self, patches: NDArray[Any]) -> NDArray[np.float32]:
        rows = np.asarray(self._function(patches))
        if (
            rows.ndim != 2
            or len(rows) != len(patches)
            or rows.dtype.kind not in "fiub"
            or self.dim not in (0, rows.shape[1])
        ):
            raise CairnError(
                f"The function gives {rows.dtype} of the shape {rows.shape} for patches of the shape {patches.shape}: "
                "it must give rows of numbers (N, D), one for each patch."
            )
        return rows.astype(np.float32)

    def describe_both(self, patches: NDArray[Any]) -> "contract.Both":
        return self.describe(patches), None
