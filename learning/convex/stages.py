"""What learning with labels and without have in common: the stages, and how a model is finished."""

from index.errors import CairnError
from retrieval.descriptors.learnt import BASES, Pooling

STAGES = ("pooling", "projection", "both")


def check_stages(stage: str, base: str, dim: int, max_pooled_dim: int, orientations: int) -> None:
    """Raise a CairnError where options of learning do not exist or do not go together."""
    for value, known, what in ((stage, STAGES, "stage"), (base, BASES, "base")):
        if value not in known:
            raise CairnError(f"There is no {what} {value!r}; choose one of {', '.join(known)}.")
    if stage == "pooling" and base != "pooled":
        raise CairnError(f"Pooling regions are not learnt for the base {base}: choose the stage projection.")
    if dim < 1 or max_pooled_dim < orientations:
        raise CairnError("The wanted dimensions must be positive, those of a pooled descriptor 8 at least.")


def check_pooling(stage: str, base: str, pooling: Pooling | None) -> None:
    """Raise a CairnError where a projection of pooling regions is to be learnt, and there are none."""
    if stage == "projection" and base == "pooled" and pooling is None:
        raise CairnError("To learn a projection alone, name the descriptor file whose pooling regions it projects.")
