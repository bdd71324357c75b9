"""The stages of learning, with labels and without: pooling regions, then a projection; or a whitening."""

from typing import Protocol, TypeVar

from index.errors import CairnError
from retrieval.descriptors.learnt import BASES, LearntModel, Pooling

STAGES = ("pooling", "projection", "both", "whitening")


def check_stages(stage: str, base: str, dim: int, max_pooled_dim: int, orientations: int) -> None:
    """Raise a CairnError where options of learning do not exist or do not go together."""
    for value, known, what in ((stage, STAGES, "stage"), (base, BASES, "base")):
        if value not in known:
            raise CairnError(f"There is no {what} {value!r}; choose one of {', '.join(known)}.")
    if stage == "whitening" and base == "pooled":
        raise CairnError("A whitening is learnt of rows that are known: choose the base rootsift or sift.")
    if stage == "pooling" and base != "pooled":
        raise CairnError(f"Pooling regions are not learnt for the base {base}: choose the stage projection.")
    if dim < 1 or max_pooled_dim < orientations:
        raise CairnError("The wanted dimensions must be positive, those of a pooled descriptor 8 at least.")


def check_pooling(stage: str, base: str, pooling: Pooling | None) -> None:
    """Raise a CairnError where a projection of pooling regions is to be learnt, and there are none."""
    if stage == "projection" and base == "pooled" and pooling is None:
        raise CairnError("To learn a projection alone, name the descriptor file whose pooling regions it projects.")


Chosen = TypeVar("Chosen", covariant=True)


class Learner(Protocol[Chosen]):
    """What learns each stage, and gives the record of the model that it has chosen."""

    def learn_pooling(self) -> tuple[Pooling, Chosen]:
        """Select pooling regions."""

    def learn_projection(self, model: LearntModel) -> tuple[LearntModel, Chosen]:
        """Learn a projection of a descriptor's rows."""

    def learn_whitening(self, model: LearntModel) -> tuple[LearntModel, Chosen]:
        """Learn a whitening of a descriptor's rows."""


def learn_stages(
    learner: Learner[Chosen], stage: str, base: str, pooling: Pooling | None
) -> tuple[LearntModel, Chosen | None, Chosen | None]:
    """Learn the stages that are wanted, one upon the other.

    Parameters
    ----------
    learner : Learner
        What learns each.
    stage : str
        One of `STAGES`.
    base : str
        One of `retrieval.descriptors.learnt.BASES`.
    pooling : Pooling or None
        With the stage "projection": the pooling regions whose descriptor is projected.

    Returns
    -------
    LearntModel, record or None, record or None
        The descriptor, and of each stage the model that was chosen, where it was learnt.
    """
    chosen: Chosen | None = None
    projected: Chosen | None = None
    if base != "pooled":
        pooling = None
    elif stage != "projection":
        pooling, chosen = learner.learn_pooling()
    model = LearntModel(base, pooling)
    if stage == "whitening":
        model, projected = learner.learn_whitening(model)
    elif stage != "pooling":
        model, projected = learner.learn_projection(model)
    return model, chosen, projected


def hours_of_stages(stage: str, hours: float) -> dict[str, float]:
    """Divide the time for learning: by stage, after how many hours no further model of it is begun; 0: no limit."""
    return {"pooling": hours * (0.5 if stage == "both" else 1), "projection": hours, "whitening": hours}
