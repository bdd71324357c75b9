"""Errors of binary codes of a descriptor by length (Simonyan14 figure 6)."""

from collections.abc import Sequence
from pathlib import Path

from eval.patches import evaluate_patches
from index.errors import CairnError
from index.progress import Progress, silent
from learning.codes.binary import centred_code
from retrieval.descriptors.contract import check_distance
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel

LENGTHS = (64, 128, 256, 512, 1024)
"""Default lengths in bits."""


def errors_of_codes(
    folder: Path,
    path: Path,
    model: LearntModel,
    lengths: Sequence[int],
    pairs: str | None,
    seed: int,
    progress: Progress = silent,
) -> tuple[list[int], list[float], float]:
    """Measure binary codes of a descriptor on labelled pairs. Returns the possible lengths (not below its dimension),
    their false positives at 95% recall, and those of the descriptor itself.
    """
    check_distance(LearntDescriptor(model))
    if model.code is not None:
        raise CairnError(f"{path} is compressed already: name the descriptor that it was made of.")
    if model.mean is None:
        raise CairnError(
            "{path} has no mean, which codes are centred by: learn it again with {cairn learn descriptor}.", path=path
        )
    possible = [bits for bits in lengths if bits >= len(model.mean)]
    if not possible:
        raise CairnError(
            "{path} has {mean} dimensions: name a {--length} of as many bits at least.", path=path, mean=len(model.mean)
        )
    parent = evaluate_patches(folder, LearntDescriptor(model), pairs, progress).fpr95
    errors = []
    for bits in possible:
        code = centred_code(model.mean, bits, seed=seed)
        errors.append(evaluate_patches(folder, LearntDescriptor(model.with_code(code)), pairs, progress).fpr95)
    return possible, errors, parent
