"""Measurement of a descriptor on HPatches, as a function of `import cairn`."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eval.hpatches.options import HPatchesChoices
from index.docstrings import documented
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from learning.library.paths import AnyPath, as_path
from retrieval.library.parts.descriptor import contract_of
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from eval.hpatches.run import HPatchesReport

TITLES = {
    "describe": "Describing",
    "verification": "Verification",
    "matching": "Matching",
    "retrieval": "Retrieval",
}
"""Titles of the steps of the progress."""


@documented
@dataclass(frozen=True, eq=False)
class HPatchesEvaluation:
    """How good a descriptor is on HPatches (Balntas, Lenc, Vedaldi, Mikolajczyk, CVPR 2017)."""

    verification: Annotated[float | None, "Mean average precision, 0 to 1; None if it was not measured."]
    matching: Annotated[float | None, "Mean average precision of this task."]
    retrieval: Annotated[float | None, "Mean average precision of this task."]
    comparable_with_published: Annotated[bool, "Whether the benchmark's own lists of pairs were used, all of them."]
    report: Annotated[
        "HPatchesReport", "All figures, by noise and kind of sequence; `to_dict` gives them as plain values."
    ] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, as ``cairn evaluate hpatches --json`` prints them."""
        return self.report.as_json()


@takes_options(HPatchesChoices)
def evaluate_hpatches(
    root: AnyPath,
    descriptor: Any = "rootsift",
    *,
    descriptions: AnyPath | None = None,
    distance: str = "l2",
    progress: Telling = None,
    **options: Any,
) -> HPatchesEvaluation:
    """Measure a descriptor, or rows that any program made, on HPatches: verification, matching, retrieval of patches.

    Parameters
    ----------
    root : path
        Folder of the set, or of several.
    descriptor : str, path, or descriptor
        A name, a file (.npz), or a descriptor.
    descriptions : path, optional
        In place of a descriptor, a folder with ``SEQUENCE/ref.csv``, ``SEQUENCE/e1.csv`` and so on (or .npy): a row for
        each patch of the image of that name.
    distance : {"l2", "l1", "hamming"}
        How these are compared.
    progress : None, bool or callable
        Progress: none, bars, or a function of (step, done, of).
    {options}

    Returns
    -------
    HPatchesEvaluation

    Raises
    ------
    CairnError
        The set, the descriptor or a file is missing, or does not fit.
    """
    from eval.hpatches.rows import DISTANCES, describe_sequences, read_sequences
    from eval.hpatches.run import evaluate_hpatches as measure
    from index.text import one_of

    if distance not in DISTANCES:
        raise CairnError(f"Descriptions are compared by {one_of(DISTANCES)}, and not by {distance!r:.40}.")
    choices = build(HPatchesChoices, options)
    with telling(progress, TITLES) as tell:
        if descriptions is not None:
            folder = as_path(descriptions, "descriptions")
            describe: Any = partial(read_sequences, folder, distance=distance, progress=tell)
        else:
            describe = partial(describe_sequences, descriptor=contract_of(descriptor), progress=tell)
        report = measure(Path(as_path(root, "root")), describe, choices, tell)
    return HPatchesEvaluation(
        report.verification.mean("imbalanced") if report.verification is not None else None,
        report.matching.mean if report.matching is not None else None,
        report.retrieval.mean if report.retrieval is not None else None,
        report.is_published,
        report,
    )
