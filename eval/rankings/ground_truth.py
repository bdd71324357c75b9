"""The ground truth that a ranking is scored by, whichever form it has."""

from pathlib import Path

from eval.rankings.judged import Protocols
from index.errors import CairnError
from learning.labels.ground_truth import read_ground_truth

OXFORD = "oxford"


def read_protocols(path: Path) -> Protocols:
    """Read a ground truth: a folder in the layout of Oxford5K.

    Raises
    ------
    CairnError
        It is not there, or damaged.
    """
    path = Path(path)
    if path.is_file():
        raise CairnError(f"{path} is no ground truth: give a folder in the layout of Oxford5K.")
    return {OXFORD: read_ground_truth(path)}
