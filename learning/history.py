"""What the alternation of the latent learner went through (Simonyan14 section 9), step by step."""

from dataclasses import dataclass

STEPS = ("negatives", "rings", "parameters", "positives", "selection")
"""Kinds of steps: negatives looked for or rings dropped, which begin a round, and the three that repeat."""


@dataclass(frozen=True)
class LogEntry:
    """The state after one step.

    Within a round no step raises the objective. A round begins with other negatives, or with fewer rings,
    and so with another objective.
    """

    stage: str  # pooling or projection
    round: int  # from 0
    step: str  # one of STEPS: what was just done
    objective: float  # of equation 16 on the training features, after the step
    recall: float | None  # share of training features for which equation 15 holds, where it was measured
    validation: float | None  # the same of validation features
