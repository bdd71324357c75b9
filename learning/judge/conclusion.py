"""Conclusion on a learnt descriptor: by searches if they were measured, else by nearest neighbours."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.progress import Progress, silent
from index.text import printable
from learning.judge.judging import JudgeOptions, judge
from learning.judge.verdict import RetrievalVerdict
from learning.latent.verdict import Verdict
from learning.mining.matches import MinedMatches
from learning.mining.photo_source import PhotoSource
from retrieval.descriptors.learnt import LearntModel, save_model


@dataclass(frozen=True)
class Conclusion:
    """The verdict of nearest neighbours on held-out image pairs, and the verdict of retrieval, which decides."""

    nearest: Verdict
    retrieval: RetrievalVerdict | None  # None: not measured
    why_not: str = ""  # reason why not, as the end of a sentence

    @property
    def outcome(self) -> str:
        """One of `judge.verdict.OUTCOMES` or, if searches were not measured, of `Verdict.outcome`."""
        return (self.retrieval or self.nearest).outcome

    @property
    def sentence(self) -> str:
        """Advice for the user."""
        if self.retrieval is not None:
            return self.retrieval.sentence
        return (
            f"{self.nearest.sentence} What searches find may differ, and was not measured"
            f"{': ' if self.why_not else ''}{self.why_not.rstrip('.')}."
        )

    @property
    def details(self) -> list[str]:
        """The figures, in sentences: nearest neighbours, then searches."""
        return [*self.nearest.details, *(self.retrieval.details if self.retrieval is not None else [])]

    def as_json(self) -> dict[str, Any]:
        """Return the figures of nearest neighbours, with the outcome and its basis."""
        told_by = "nearest neighbours" if self.retrieval is None else "retrieval"
        report = {"outcome": self.outcome, "told_by": told_by, "nearest_neighbours": self.nearest.outcome}
        return {**self.nearest.as_json(), **report}

    def retrieval_json(self) -> dict[str, Any]:
        """Return the figures of searches, or the reason why they are missing."""
        if self.retrieval is None:
            return {"measured": False, "reason": self.why_not}
        return {"measured": True, **self.retrieval.as_json()}


def judge_searches(
    source: PhotoSource | None,
    matches: MinedMatches,
    model: LearntModel,
    work: Path,
    options: JudgeOptions,
    *,
    held_out: float,
    workers: int = 1,
    progress: Progress = silent,
) -> tuple[RetrievalVerdict | None, str]:
    """Judge a descriptor learnt from mined matches by searches; None and a reason if its photos are unavailable.

    `held_out` is the split of the image pairs, with the seed; see `MinedMatches.pair_split`.
    """
    if source is None or source.collection is None:
        return None, "a file of matches has no photos to search, so learn from the collection"
    training, _ = matches.pair_split(held_out, options.seed)
    work.mkdir(parents=True, exist_ok=True)
    descriptor = work / f"{model.fingerprint[:16]}.npz"
    save_model(descriptor, model)
    try:
        verdict = judge(
            source.collection,
            str(descriptor),
            paths_of(source, matches, training),
            work,
            options,
            needed=paths_of(source, matches, np.arange(len(matches.pairs))),
            workers=workers,
            progress=progress,
        )
    except CairnError as error:  # keep the learnt descriptor
        return None, str(error)
    return verdict, ""


def paths_of(source: PhotoSource, matches: MinedMatches, pairs: NDArray[np.integer]) -> set[str]:
    """Paths of the photos of image pairs, by their stems; all photos of a stem count as training photos, to be safe."""
    names = set(matches.names[np.unique(matches.pairs[pairs])].tolist())
    return {str(path) for path in source.paths if printable(path.stem) in names}
