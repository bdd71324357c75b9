"""The stages of learning, with labels and without: pooling regions, then a projection; or a whitening."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic

from index.errors import CairnError
from index.progress import Progress
from learning.convex.records import Kind, ModelRecords
from learning.convex.study import Study
from retrieval.descriptors.bases import NESTED
from retrieval.descriptors.learnt import BASES, LearntModel, Pooling
from retrieval.descriptors.nested import NestedSift

STAGES = ("pooling", "projection", "both", "whitening")


def check_stages(stage: str, base: str, dim: int, max_pooled_dim: int, orientations: int) -> None:
    """Raise a CairnError if options of learning are unknown or incompatible."""
    for value, known, what in ((stage, STAGES, "stage"), (base, BASES, "base")):
        if value not in known:
            raise CairnError(f"There is no {what} {value!r}; choose one of {', '.join(known)}.")
    if stage == "whitening" and base == "pooled":
        raise CairnError("A whitening is learnt of rows that are known: choose the base rootsift, sift or nested.")
    if stage == "pooling" and base != "pooled":
        raise CairnError(f"Pooling regions are not learnt for the base {base}: choose the stage projection.")
    if dim < 1 or max_pooled_dim < orientations:
        raise CairnError("The wanted dimensions must be positive, those of a pooled descriptor 8 at least.")


def check_pooling(stage: str, base: str, pooling: Pooling | None) -> None:
    """Raise CairnError if a projection of pooling regions is requested without pooling regions."""
    if stage == "projection" and base == "pooled" and pooling is None:
        raise CairnError("To learn a projection alone, name the descriptor file whose pooling regions it projects.")


class Learner(ABC, Generic[Kind]):
    """One run: learns each stage, and returns the record of the chosen model."""

    def __init__(self, work: Path, kind: type[Kind], stage: str, hours: float, workers: int, tell: Progress) -> None:
        self.workers = workers
        self.tell = tell
        self.records = ModelRecords(work, kind)
        self.study = Study(self.records, hours_of_stages(stage, hours), workers, tell)

    @abstractmethod
    def learn_pooling(self) -> tuple[Pooling, Kind]:
        """Select pooling regions."""

    @abstractmethod
    def learn_projection(self, model: LearntModel) -> tuple[LearntModel, Kind]:
        """Learn a projection of a descriptor's rows."""

    @abstractmethod
    def learn_whitening(self, model: LearntModel) -> tuple[LearntModel, Kind]:
        """Learn a whitening of a descriptor's rows."""

    @abstractmethod
    def with_moments(self, model: LearntModel) -> LearntModel:
        """Add the mean and covariance of training patches' descriptors, for learning codes."""


def learn_stages(
    learner: Learner[Kind], stage: str, base: str, pooling: Pooling | None
) -> tuple[LearntModel, Kind | None, Kind | None]:
    """Learn the requested stages; return the descriptor, and models of pooling and projection or whitening, if any."""
    chosen: Kind | None = None
    projected: Kind | None = None
    if base != "pooled":
        pooling = None
    elif stage != "projection":
        pooling, chosen = learner.learn_pooling()
    model = LearntModel(base, pooling, base_model=NestedSift() if base == NESTED else None)
    if stage == "whitening":
        model, projected = learner.learn_whitening(model)
    elif stage != "pooling":
        model, projected = learner.learn_projection(model)
    return model, chosen, projected


def hours_of_stages(stage: str, hours: float) -> dict[str, float]:
    """Divide the time for learning: by stage, the hours after which no further model is begun; 0: no limit."""
    return {"pooling": hours * (0.5 if stage == "both" else 1), "projection": hours, "whitening": hours}
